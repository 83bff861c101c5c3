"""Before time zero: does every link have the rate that it should, and what can this machine carry?

Flows are laid so that each directed link carries one flow at a time, and as many links as possible are covered at once.
A link is as good as the best flow that crossed it. Where a flow came in low, further flows part the links it crossed,
until the one to blame stands alone or cannot be told from its neighbours; and since any one flow may have been low by
chance, a link is only blamed when several flows over it were low and none was not.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from controllers.paths import Forwarder
from controllers.tables import Tables
from emu.measurement import LinkCalibration
from emu.packet.lanes import LaneKey, Lanes, Part
from emu.packet.loop import Loop
from topologies.fabric import Fabric, Port

GOOD = 0.97
"""A flow at this share of its path's rate clears every link that it crossed."""
_WARM_UP, _WINDOW = 0.35, 0.8
_WARM_UP_FRAMES, _WINDOW_FRAMES = 20, 100
"""On a slow link it takes longer: TCP's window must have opened, and one frame more or less must not matter."""
_ENDLESS = 1 << 50
_MAX_ROUNDS = 8
"""One over all links, three to find one of six, one or two to confirm it, and some where the machine disturbs."""
_PARTED_AT_ONCE = 16
_ENOUGH = 4
"""Low flows over the same links before one of these is blamed."""

Pair = tuple[Port, Port]
Paths = Mapping[Pair, tuple[Port, ...]]


class Rates:
    """Measures flows that run side by side."""

    def __init__(self, loop: Loop, lanes: Lanes) -> None:
        self._loop, self._lanes = loop, lanes

    def measure(self, pairs: Sequence[Pair], warm_up: float = _WARM_UP, window: float = _WINDOW) -> list[float]:
        """Payload bit/s of one endless flow for each pair, all at once, over `window` seconds after `warm_up`.

        A flow is timed from one of its reads to another, so that it does not matter how much a read brings.
        """
        keys = [LaneKey(src, dst, "calibration") for src, dst in pairs]
        self._lanes.open_all(keys)
        parts = [Part(_ENDLESS, lambda _: None) for _ in keys]
        for key, part in zip(keys, parts, strict=True):
            lane = self._lanes.get(key)
            if lane is not None:
                self._lanes.send(lane, part)
        self._turn(warm_up)
        before = [_Reading.of(part) for part in parts]
        self._turn(window)
        rates = [_Reading.of(part).rate_since(old) for old, part in zip(before, parts, strict=True)]
        for key in keys:
            self._lanes.close(key)
        return rates

    def _turn(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._loop.turn(end)


class _Reading(NamedTuple):
    """How much of a part is unread, and when it was last read from."""

    unread: int
    at: float

    @classmethod
    def of(cls, part: Part) -> _Reading:
        return cls(part.unread, part.lane.last_read if part.lane else 0.0)

    def rate_since(self, before: _Reading) -> float:
        """Payload bit/s from read to read; 0 if nothing was read in between."""
        return (before.unread - self.unread) * 8 / (self.at - before.at) if self.at > before.at else 0.0


@dataclass
class LinkCalibrator:
    """Calibrates the links of one lab. A full frame is `frame` bytes, of which the share `efficiency` is payload."""

    fabric: Fabric
    rates: Rates
    declared: Mapping[Port, int]
    efficiency: float
    frame: int
    best: dict[Port, float] = field(default_factory=dict)
    _suspects: list[set[Port]] = field(default_factory=list)
    """By flow that came in low: the links that it crossed and that no other flow has cleared."""

    def run(self, tables: Tables, rounds: int = _MAX_ROUNDS) -> None:
        """Load the links that these tables use and that are not cleared yet."""
        forwarder = Forwarder(self.fabric, tables)
        paths = _candidate_paths(self.fabric, forwarder)
        for _ in range(rounds):
            chosen = self._choose(paths)
            if not chosen:
                return
            frame = max(self._frame_time(paths[pair]) for pair in chosen)
            measured = self.rates.measure(
                chosen, max(_WARM_UP, _WARM_UP_FRAMES * frame), max(_WINDOW, _WINDOW_FRAMES * frame)
            )
            for pair, goodput in zip(chosen, measured, strict=True):
                self._note(paths[pair], goodput)

    def report(self, configured: Mapping[Port, int | None]) -> list[LinkCalibration]:
        """One row for each shaped link. A link behind a slow flow that others cleared is not blamed."""
        return [
            LinkCalibration(str(port), rate, configured.get(port), self._measured(port))
            for port, rate in self.declared.items()
        ]

    def _frame_time(self, path: Sequence[Port]) -> float:
        """Seconds that a full frame takes on the slowest link of a path."""
        slowest = min(self.declared[port] for port in path if port in self.declared)
        return self.frame * 8 / slowest

    def _measured(self, port: Port) -> float | None:
        """The rate that the best flow over this link showed, as far as it tells about this link.

        Nothing is told by low flows alone that a slower link on their way explains.
        """
        share = self.best.get(port)
        if share is None or (share < GOOD and not any(port in suspects for suspects in self.blamed())):
            return None
        return share * self.declared[port]

    def _choose(self, paths: Paths) -> list[Pair]:
        """Pairs that share no link: those that part or confirm suspects first, then those that cover the most links."""
        chosen: list[Pair] = []
        taken: set[Port] = set()
        parted: set[Port] = set()
        for suspects in self._smallest()[:_PARTED_AT_ONCE]:
            parted |= suspects
            _take(self._telling(suspects, paths), paths, chosen, taken, most=1)
        worth = {pair: self._news(path, parted) for pair, path in paths.items()}
        covering = sorted((pair for pair in paths if worth[pair]), key=lambda p: (-worth[p], len(paths[p]), p))
        _take(covering, paths, chosen, taken)
        return chosen

    def _telling(self, suspects: set[Port], paths: Paths) -> list[Pair]:
        """The pairs whose flow would tell most about suspects: few others on the way, and half of the suspects.

        Only where no pair parts them: one over all of them, unless that is certain already.
        """
        inside = {pair: count for pair, path in paths.items() if (count := self._worth(path, suspects))}
        pairs = [pair for pair, count in inside.items() if count < len(suspects)]
        if not pairs and self._low_flows(suspects) < _ENOUGH:
            pairs = list(inside)
        others = {pair: len(self._uncleared(paths[pair]) - suspects) for pair in pairs}
        return sorted(pairs, key=lambda p: (others[p], abs(2 * inside[p] - len(suspects)), len(paths[p]), p))

    def _uncleared(self, path: Sequence[Port]) -> set[Port]:
        return {port for port in path if port in self.declared and self.best.get(port, 0.0) < GOOD}

    def _news(self, path: Sequence[Port], suspects: set[Port]) -> int:
        """How many links a flow would be the first to fill, or, if it avoids the suspects, could clear."""
        news = self._worth(path, {port for port in path if port not in self.best})
        return news if suspects & set(path) else news + self._worth(path, self._uncleared(path) & self.best.keys())

    def _worth(self, path: Sequence[Port], wanted: Collection[Port]) -> int:
        """How many links of interest a flow on this path would fill."""
        rate = min(self.declared[port] for port in path if port in self.declared)
        return sum(port in wanted and self.declared.get(port) == rate for port in path)

    def _note(self, path: Sequence[Port], goodput: float) -> None:
        links = [port for port in path if port in self.declared]
        rate = min(self.declared[port] for port in links)
        share = goodput / self.efficiency / rate
        binding = [port for port in links if self.declared[port] == rate]
        for port in binding:
            self.best[port] = max(self.best.get(port, 0.0), share)
        if share < GOOD:
            self._suspects.append(set(binding))
        cleared = {port for port, best in self.best.items() if best >= GOOD}
        self._suspects = [rest for suspects in self._suspects if (rest := suspects - cleared)]

    def blamed(self) -> list[set[Port]]:
        """Sets of links of which at least one is slow, by the word of several flows; a set of one names it."""
        return [suspects for suspects in self._smallest() if self._low_flows(suspects) >= _ENOUGH]

    def _smallest(self) -> list[set[Port]]:
        """The suspicions that no narrower one explains."""
        unique: list[set[Port]] = []
        for suspects in sorted(self._suspects, key=len):
            if not any(known <= suspects for known in unique):
                unique.append(suspects)
        return unique

    def _low_flows(self, suspects: set[Port]) -> int:
        return sum(suspects <= links for links in self._suspects)


def _take(ranked: Iterable[Pair], paths: Paths, chosen: list[Pair], taken: set[Port], most: int | None = None) -> None:
    """Move the first pairs, `most` of them, whose paths are free from `ranked` to `chosen`."""
    free = (pair for pair in ranked if taken.isdisjoint(paths[pair]))
    for pair in islice(free, most):
        chosen.append(pair)
        taken.update(paths[pair])


def _candidate_paths(fabric: Fabric, forwarder: Forwarder) -> dict[Pair, tuple[Port, ...]]:
    nics = fabric.all_nics
    pairs = ((a, b) for a in nics for b in nics if a.node != b.node)
    found = ((pair, forwarder.path(*pair)) for pair in pairs)
    return {pair: path for pair, path in found if path is not None}


def farthest_permutation(fabric: Fabric, tables: Tables) -> list[Pair]:
    """Every NIC sends to one other and receives from one other where the tables allow it, far ones first."""
    paths = _candidate_paths(fabric, Forwarder(fabric, tables))
    free = set(fabric.all_nics)
    chosen: list[Pair] = []
    senders: set[Port] = set()
    for src, dst in sorted(paths, key=lambda pair: (-len(paths[pair]), pair)):
        if src not in senders and dst in free:
            chosen.append((src, dst))
            senders.add(src)
            free.discard(dst)
    return chosen
