"""Before time zero: does every link have the rate that it should, and what can this machine carry?

Flows are laid so that each directed link carries one flow at a time, and as many links as possible are covered at once.
A link is as good as the best flow that crossed it. Where a flow came in low, further flows part the links it crossed,
until the one to blame stands alone or cannot be told from its neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from controllers.paths import Forwarder
from controllers.tables import Tables
from emu.measurement import LinkCalibration
from emu.packet.lanes import LaneKey, Lanes, Part
from emu.packet.loop import Loop
from topologies.fabric import Fabric, Port

GOOD = 0.97
"""A flow at this share of its path's rate clears every link that it crossed."""
_WARM_UP, _WINDOW = 0.35, 0.8
_ENDLESS = 1 << 50
_MAX_ROUNDS = 6

Pair = tuple[Port, Port]


class Rates:
    """Measures flows that run side by side."""

    def __init__(self, loop: Loop, lanes: Lanes) -> None:
        self._loop, self._lanes = loop, lanes

    def measure(self, pairs: Sequence[Pair], warm_up: float = _WARM_UP, window: float = _WINDOW) -> list[float]:
        """Payload bit/s of one endless flow for each pair, all at once, over `window` seconds after `warm_up`."""
        keys = [LaneKey(src, dst, "calibration") for src, dst in pairs]
        self._lanes.open_all(keys)
        parts = [Part(_ENDLESS, lambda _: None) for _ in keys]
        for key, part in zip(keys, parts, strict=True):
            lane = self._lanes.get(key)
            if lane is not None:
                self._lanes.send(lane, part)
        self._turn(warm_up)
        before, began = [part.unread for part in parts], time.monotonic()
        self._turn(window)
        took = time.monotonic() - began
        rates = [(old - part.unread) * 8 / took for old, part in zip(before, parts, strict=True)]
        for key in keys:
            self._lanes.close(key)
        return rates

    def _turn(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._loop.turn(end)


@dataclass
class LinkCalibrator:
    """Calibrates the links of one lab. `efficiency`: payload over line rate, as a full frame has it."""

    fabric: Fabric
    rates: Rates
    declared: Mapping[Port, int]
    efficiency: float
    best: dict[Port, float] = field(default_factory=dict)
    _suspects: list[set[Port]] = field(default_factory=list)

    def run(self, tables: Tables, rounds: int = _MAX_ROUNDS) -> None:
        """Load the links that these tables use and that are not cleared yet."""
        forwarder = Forwarder(self.fabric, tables)
        paths = _candidate_paths(self.fabric, forwarder)
        for _ in range(rounds):
            chosen = self._choose(paths)
            if not chosen:
                return
            measured = self.rates.measure(chosen)
            for pair, goodput in zip(chosen, measured, strict=True):
                self._note(paths[pair], goodput)

    def report(self, configured: Mapping[Port, int | None]) -> list[LinkCalibration]:
        """One row for each shaped link. A link behind a slow flow that others cleared is not blamed."""
        return [
            LinkCalibration(str(port), rate, configured.get(port), self._measured(port))
            for port, rate in self.declared.items()
        ]

    def _measured(self, port: Port) -> float | None:
        """The rate that the best flow over this link showed, as far as it tells about this link."""
        share = self.best.get(port)
        return None if share is None else share * self.declared[port]

    def _choose(self, paths: Mapping[Pair, tuple[Port, ...]]) -> list[Pair]:
        """Greedy: pairs that share no link, those that cover the most links of interest first."""
        wanted = self._wanted()
        chosen: list[Pair] = []
        taken: set[Port] = set()
        ranked = sorted(paths, key=lambda pair: (-self._worth(paths[pair], wanted), len(paths[pair]), pair))
        for pair in ranked:
            path = paths[pair]
            if self._worth(path, wanted) and taken.isdisjoint(path):
                chosen.append(pair)
                taken.update(path)
        return chosen

    def _wanted(self) -> set[Port]:
        untouched = {port for port in self.declared if port not in self.best}
        return untouched | set().union(*(s for s in self._suspects if len(s) > 1), set())

    def _worth(self, path: Sequence[Port], wanted: Collection[Port]) -> int:
        """How many links of interest a flow on this path would fill."""
        rate = min(self.declared[port] for port in path if port in self.declared)
        return sum(port in wanted and self.declared[port] == rate for port in path)

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
        """Sets of links of which at least one is slow; a set of one names it."""
        unique: list[set[Port]] = []
        for suspects in sorted(self._suspects, key=len):
            if not any(known <= suspects for known in unique):
                unique.append(suspects)
        return unique


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
