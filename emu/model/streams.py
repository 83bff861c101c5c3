"""Bits in motion as arrays: what is left of each stream, how fast it drains, when it will be over.

A stream is what one message sends over one path. Rates change only where streams came or went, or links went dark: in
the set of streams that are joined to the change by shared links. All others keep their rates and the instants at which
they will be over, so that sums do not drift.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from emu.model.maxmin import AnyInts, Bools, Floats, Ints, Links, fill
from emu.model.network import Network

_SIZE_TOLERANCE = 1e-9
"""A stream with less than this part of its size left is drained: what remains is the noise of summing up."""
_TIME_TOLERANCE = 1e-12
"""So is one that would end within this part of the time since zero: instants are no finer than that."""
_SAME_RATE = 1e-12
"""Rates that differ by less, relatively, are the same: the stream's end is not computed anew."""
_GROUPED = 256
"""From so many streams on, it pays to look for equal ones."""
_BOOKED = 1 << 20
"""So many links of paths are kept before what they carried is added up."""

_SIZE, _LEFT, _MARK, _RATE, _SINCE, _END, _FIRST, _HELD = range(8)
_OWNER, _TAG, _CONNECTION, _PAIR = range(4)


@dataclass(frozen=True, slots=True)
class Batch:
    """Streams that begin together. All arrays have one entry for each.

    owner, tag: whose they are, and which of its messages. connection: number of the connection, -1 for none.
    pair: a number that is the same for streams from one NIC to one NIC. bits: payload. paths: padded.
    """

    owner: Ints
    tag: Ints
    connection: Ints
    pair: Ints
    bits: Floats
    paths: Links


@dataclass(frozen=True, slots=True)
class Drained:
    """Streams that were taken out. left: bits that had not moved; first: when their first bit moved, NaN if none did.

    size: bits that they had to move.
    """

    owner: Ints
    tag: Ints
    connection: Ints
    left: Floats
    first: Floats
    size: Floats
    paths: Links

    def __len__(self) -> int:
        return len(self.owner)


class Streams:
    """Streams that share the links of a network max-min fairly, in the order in which they came."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._floats: Floats = np.empty((8, 0))
        self._ints: Ints = np.empty((4, 0), dtype=np.int64)
        self._paths: Links = np.empty((0, 0), dtype=np.int32)
        self._carried = np.zeros(network.padding + 1)
        self._booked: list[tuple[Links, npt.NDArray[np.floating[Any]]]] = []
        self._booked_size = 0
        self._gone: list[tuple[Ints, Floats, Links]] = []
        """Pair, rate and path of each stream that left since rates were computed."""
        self._stale = False
        self._all_stale = False
        self.computed = 0
        """How many rates were computed so far."""

    def __len__(self) -> int:
        return int(self._floats.shape[1])

    # -- which streams ------------------------------------------------------------------------------------------------

    def add(self, batch: Batch, now: float) -> None:
        """Let streams flow from now on."""
        count = len(batch.owner)
        if not count:
            return
        columns = np.full((8, count), np.nan)
        columns[_SIZE] = columns[_LEFT] = columns[_MARK] = batch.bits
        columns[_SINCE], columns[_END], columns[_HELD] = now, np.inf, 0.0
        self._floats = np.concatenate((self._floats, columns), axis=1)
        numbers = np.stack((batch.owner, batch.tag, batch.connection, batch.pair))
        self._ints = np.concatenate((self._ints, numbers), axis=1)
        self._paths = _stacked(self._paths, batch.paths, self._network.padding)
        self._stale = True

    def adopt(self, other: Streams, connections: Ints, elapsed: float, now: float) -> None:
        """Let all streams of another go on here, as they are after `elapsed` of their seconds.

        connections: their numbers here. What they have carried is added too.
        """
        self._carried[:-1] += other.carried(elapsed)
        columns = other._floats.copy()
        columns[_LEFT] = columns[_MARK]
        columns[_FIRST] += now - elapsed
        columns[_RATE], columns[_SINCE], columns[_END] = np.nan, now, np.inf
        numbers = other._ints.copy()
        numbers[_CONNECTION] = connections
        self._floats = np.concatenate((self._floats, columns), axis=1)
        self._ints = np.concatenate((self._ints, numbers), axis=1)
        self._paths = _stacked(self._paths, other._paths, self._network.padding)
        self._stale = True

    def take(self, gone: Bools, now: float) -> Drained:
        """Take streams out as they are at `now`."""
        rate, since = self._floats[_RATE, gone], self._floats[_SINCE, gone]
        left = self._floats[_LEFT, gone] - np.nan_to_num(rate) * (now - since)
        return self._take(gone, np.maximum(left, 0.0))

    def owned(self, owner: int) -> Bools:
        """Which streams are one owner's."""
        rows: Bools = self._ints[_OWNER] == owner
        return rows

    def tags(self, rows: Bools | None = None) -> Ints:
        """The tags of these streams, or of all."""
        tags: Ints = self._ints[_TAG] if rows is None else self._ints[_TAG, rows]
        return tags

    def left(self, rows: Bools, now: float) -> tuple[Ints, Floats]:
        """The tags of streams, and the bits of each that have not moved by now."""
        rate, since = np.nan_to_num(self._floats[_RATE, rows]), self._floats[_SINCE, rows]
        return self._ints[_TAG, rows], np.maximum(0.0, self._floats[_LEFT, rows] - rate * (now - since))

    # -- time ---------------------------------------------------------------------------------------------------------

    def next_end(self, now: float) -> float:
        """When the next stream is drained if nothing changes; inf if none ever is."""
        self._refresh(now)
        return float(self._floats[_END].min(initial=np.inf))

    def drain(self, then: float) -> Drained | None:
        """Take out what is drained at `then`, at most `next_end`; None if nothing is."""
        self._refresh(then)
        end = self._floats[_END]
        with np.errstate(divide="ignore", invalid="ignore"):
            slack = self._floats[_SIZE] * _SIZE_TOLERANCE / self._floats[_RATE] + then * _TIME_TOLERANCE
            drained = (end <= then) | ((end < np.inf) & (end - then <= slack))
        if not drained.any():
            return None
        return self._take(drained, np.zeros(int(drained.sum())))

    def carried(self, now: float) -> Floats:
        """Payload bits that each link has carried so far."""
        self._settle(now)
        self._add_up()
        return self._carried[:-1].copy()

    # -- circuits -----------------------------------------------------------------------------------------------------

    def darkness_changed(self) -> None:
        """The network's dark links changed: streams that cross them stand still."""
        self._stale = self._all_stale = True

    def reroute(self, paths_of: Callable[[Ints, Ints], Links], now: float) -> None:
        """The network's routes changed: streams take the paths that `paths_of(owners, tags)` gives them now."""
        self._settle(now)
        self._paths = paths_of(self._ints[_OWNER], self._ints[_TAG])
        self.darkness_changed()

    def hold(self, owner: int, tags: Ints, *, held: bool) -> None:
        """Let streams stand still, or go on."""
        rows = self.owned(owner)
        rows[rows] = np.isin(self._ints[_TAG, rows], tags)
        self._floats[_HELD, rows] = float(held)
        self._stale = self._all_stale = True

    def unreachable(self) -> tuple[Ints, Ints]:
        """Owner and tag of the streams that do not move."""
        rows = ~(self._floats[_RATE] > 0)
        return self._ints[_OWNER, rows], self._ints[_TAG, rows]

    def crossing(self, links: Bools) -> tuple[Ints, Ints]:
        """Owner and tag of the streams that cross any of these links (one place more than there are, for padding)."""
        rows = links[self._paths].any(axis=1)
        return self._ints[_OWNER, rows], self._ints[_TAG, rows]

    # -- rates --------------------------------------------------------------------------------------------------------

    def _refresh(self, now: float) -> None:
        """Compute the rates that changed."""
        if not self._stale:
            return
        new = np.isnan(self._floats[_RATE])
        rates = None if self._all_stale else self._taken_over(new)
        if rates is not None:
            self._set(np.flatnonzero(new), rates, now)
        else:
            rows = np.flatnonzero(self._changed(new))
            self._set(rows, self._fair(rows), now)
        self._gone.clear()
        self._stale = self._all_stale = False

    def _taken_over(self, new: Bools) -> Floats | None:
        """If as many streams came as went between each two NICs: the rates that those that came take over, in order."""
        if sum(len(pairs) for pairs, _, _ in self._gone) != int(new.sum()) or not self._gone:
            return None
        gone = np.concatenate([pairs for pairs, _, _ in self._gone])
        came = self._ints[_PAIR, new]
        before, after = np.argsort(gone, kind="stable"), np.argsort(came, kind="stable")
        if not np.array_equal(gone[before], came[after]):
            return None
        rates = np.empty(len(came))
        rates[after] = np.concatenate([rates for _, rates, _ in self._gone])[before]
        return None if np.isnan(rates).any() else rates

    def _changed(self, new: Bools) -> Bools:
        """The streams whose rates may be others now: those that share links with what came or went, and so on."""
        if self._all_stale:
            return np.ones(len(self), dtype=np.bool_)
        touched = np.zeros(self._network.padding + 1, dtype=np.bool_)
        touched[self._paths[new]] = True
        for _, _, paths in self._gone:
            touched[paths] = True
        rows = new
        while True:
            touched[-1] = False
            found = touched[self._paths].any(axis=1) | rows
            fresh = found & ~rows
            rows = found
            if not fresh.any() or rows.all():
                return rows
            touched[self._paths[fresh]] = True

    def _set(self, at: Ints, rate: Floats, now: float) -> None:
        """Give streams their rates, and new ends where a rate is another than before."""
        with np.errstate(invalid="ignore"):
            other = ~(np.abs(rate - self._floats[_RATE, at]) <= _SAME_RATE * rate)
        at, rate = at[other], rate[other]
        values = self._floats[:, at]
        left = np.maximum(values[_LEFT] - np.nan_to_num(values[_RATE]) * (now - values[_SINCE]), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            end = np.where(left > 0, now + left / rate, now)
        values[_LEFT], values[_RATE], values[_SINCE], values[_END] = left, rate, now, end
        values[_FIRST] = np.where(np.isnan(values[_FIRST]) & (rate > 0), now, values[_FIRST])
        self._floats[:, at] = values

    def _fair(self, at: Ints) -> Floats:
        """The max-min fair rates of streams that share links with no others."""
        self.computed += len(at)
        paths = self._paths[at]
        rates = np.zeros(len(at))
        flowing = ~self._network.dark[paths].any(axis=1) & (paths < self._network.padding).any(axis=1)
        flowing &= self._floats[_HELD, at] == 0
        pairs = self._ints[_PAIR, at[flowing]]
        if len(pairs) >= _GROUPED:
            _, one, group, counts = np.unique(pairs, return_index=True, return_inverse=True, return_counts=True)
            if 2 * len(one) <= len(pairs):
                shares = fill(paths[flowing][one], self._network.capacities, counts.astype(np.float64))
                rates[flowing] = shares[group]
                return rates
        rates[flowing] = fill(paths[flowing], self._network.capacities)
        return rates

    # -- bookkeeping --------------------------------------------------------------------------------------------------

    def _take(self, gone: Bools, left: Floats) -> Drained:
        floats, ints, paths = self._floats[:, gone], self._ints[:, gone], self._paths[gone]
        self.book(paths, floats[_MARK] - left)
        self._gone.append((ints[_PAIR], floats[_RATE], paths))
        self._stale = True
        stay = ~gone
        self._floats, self._ints, self._paths = self._floats[:, stay], self._ints[:, stay], self._paths[stay]
        return Drained(ints[_OWNER], ints[_TAG], ints[_CONNECTION], left, floats[_FIRST], floats[_SIZE], paths)

    def _settle(self, now: float) -> None:
        """Charge to the links what every stream has moved until now."""
        if not len(self):
            return
        rate, since = np.nan_to_num(self._floats[_RATE]), self._floats[_SINCE]
        left = np.maximum(self._floats[_LEFT] - rate * (now - since), 0.0)
        self.book(self._paths, self._floats[_MARK] - left)
        self._floats[_MARK] = left

    def book(self, paths: Links, bits: npt.NDArray[np.floating[Any]]) -> None:
        """Add to what links have carried: payload bits over each path."""
        self._booked.append((paths, bits))
        self._booked_size += paths.size
        if self._booked_size > _BOOKED:
            self._add_up()

    def _add_up(self) -> None:
        for paths, bits in self._booked:
            weights = np.repeat(bits, paths.shape[1])
            self._carried += np.bincount(paths.ravel(), weights=weights, minlength=self._carried.size)
        self._booked.clear()
        self._booked_size = 0


def _stacked(above: AnyInts, below: AnyInts, padding: int) -> Links:
    """The rows of both, padded to one width."""
    if above.shape[1] == below.shape[1]:
        return np.concatenate((above, below)).astype(np.int32, copy=False)
    stacked = np.full((len(above) + len(below), max(above.shape[1], below.shape[1])), padding, dtype=np.int32)
    stacked[: len(above), : above.shape[1]] = above
    stacked[len(above) :, : below.shape[1]] = below
    return stacked
