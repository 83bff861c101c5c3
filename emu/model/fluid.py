"""The streams in motion as arrays: what is left of each, at which rate it drains, what each link has carried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from emu.model.maxmin import Bools, Floats, Ints, fill, padded
from emu.model.network import Network, Path
from emu.stripes import Stripe
from topologies.fabric import Port
from workloads.protocol import TaskId

_SIZE_TOLERANCE = 1e-9
"""A stream with less than this part of its size left is drained: what remains is the noise of summing up."""

_TIME_TOLERANCE = 1e-12
"""So is one that would end within this part of the time since zero: instants are no finer than that."""


class Connection(NamedTuple):
    """What stripes share, one after the other: those of `new` connections have a channel of their own."""

    src: Port
    dst: Port
    kind: str
    channel: str


@dataclass(slots=True, eq=False)
class Stream:
    """One stripe of a transfer on its connection.

    left: payload bits to go, as of when the stream was last outside the fluid.
    path: where it goes, None while no epoch gives it a path.
    first: when its first bit moved; NaN before.
    """

    transfer: TaskId
    stripe: Stripe
    connection: Connection
    left: float
    path: Path | None = None
    first: float = float("nan")
    active: bool = False
    over: bool = False


class Fluid:
    """Streams that share the links of a network max-min fairly.

    All arrays are parallel to `streams`, which stays in the order of arrival. Rates are computed only when asked for
    after something changed.
    """

    def __init__(self, network: Network) -> None:
        self.streams: list[Stream] = []
        self._network = network
        self._links = len(network.ports)
        self._carried = np.zeros(self._links + 1)
        self._stale = False
        self._size = np.empty(0)
        self._left = np.empty(0)
        self._mark = np.empty(0)  # what was left when the stream took its path
        self._rate = np.empty(0)
        self._first = np.empty(0)
        self._paths = padded([], self._links)

    # -- which streams ------------------------------------------------------------------------------------------------

    def add(self, streams: Sequence[Stream]) -> None:
        """Let streams flow, on the paths that they have now."""
        if not streams:
            return
        for stream in streams:
            stream.active = True
            stream.path = self._network.path(stream.stripe.src, stream.stripe.dst)
        left = np.array([stream.left for stream in streams])
        self._paths = self._stacked(self._paths, padded([stream.path or () for stream in streams], self._links))
        self._size = np.concatenate((self._size, left))
        self._left = np.concatenate((self._left, left))
        self._mark = np.concatenate((self._mark, left))
        self._rate = np.concatenate((self._rate, np.zeros(len(streams))))
        self._first = np.concatenate((self._first, np.full(len(streams), np.nan)))
        self.streams += streams
        self._stale = True

    def remove(self, streams: Iterable[Stream]) -> None:
        """Take streams out; each then knows what is left of it and when its first bit moved."""
        gone = {id(stream) for stream in streams if stream.active}
        if gone:
            self._take(np.array([id(stream) in gone for stream in self.streams]))

    def left(self, stream: Stream) -> float:
        """Payload bits of a stream that have not moved yet."""
        return float(self._left[self.streams.index(stream)]) if stream.active else stream.left

    # -- time ---------------------------------------------------------------------------------------------------------

    def next_end(self, now: float) -> float:
        """When the next stream is drained if nothing changes; inf if none ever is."""
        if not self.streams:
            return float("inf")
        self._refresh(now)
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(self._left > 0, self._left / self._rate, 0.0)
        return now + float(times.min())

    def advance(self, now: float, then: float) -> list[Stream]:
        """Move time on to `then`, at most `next_end(now)`; returns the streams that are drained, taken out."""
        if not self.streams:
            return []
        self._refresh(now)
        self._left -= self._rate * (then - now)
        drained = self._left <= self._size * _SIZE_TOLERANCE + self._rate * then * _TIME_TOLERANCE
        if not drained.any():
            return []
        self._left[drained] = 0.0
        return self._take(drained)

    def carried(self) -> Floats:
        """Payload bits that each link has carried so far."""
        self._book(np.ones(len(self.streams), dtype=np.bool_))
        return self._carried[:-1].copy()

    # -- circuits -----------------------------------------------------------------------------------------------------

    def darkness_changed(self) -> None:
        """The network's dark links changed: streams that cross them stand still."""
        self._stale = True

    def reroute(self) -> None:
        """The network's routes changed: every stream takes the path that it has now."""
        self._book(np.ones(len(self.streams), dtype=np.bool_))
        for stream in self.streams:
            stream.path = self._network.path(stream.stripe.src, stream.stripe.dst)
        self._paths = padded([stream.path or () for stream in self.streams], self._links)
        self._stale = True

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _refresh(self, now: float) -> None:
        if not self._stale:
            return
        self._stale = False
        flowing = ~self._network.dark[self._paths].any(axis=1) & (self._paths < self._links).any(axis=1)
        self._rate = np.zeros(len(self.streams))
        self._rate[flowing] = fill(self._paths[flowing], self._network.capacities)
        self._first[np.isnan(self._first) & (self._rate > 0)] = now

    def _take(self, gone: Bools) -> list[Stream]:
        self._book(gone)
        taken = [self.streams[row] for row in np.flatnonzero(gone)]
        for stream, left, first in zip(taken, self._left[gone], self._first[gone], strict=True):
            stream.left, stream.first, stream.active = float(left), float(first), False
        stay = ~gone
        self.streams = [stream for stream in self.streams if stream.active]
        self._size, self._left, self._mark = self._size[stay], self._left[stay], self._mark[stay]
        self._rate, self._first, self._paths = self._rate[stay], self._first[stay], self._paths[stay]
        self._stale = True
        return taken

    def _book(self, rows: Bools) -> None:
        """Charge to the links of each stream's path what it moved since it took it."""
        moved = self._mark[rows] - self._left[rows]
        paths = self._paths[rows]
        weights = np.repeat(moved, paths.shape[1])
        self._carried += np.bincount(paths.ravel(), weights=weights, minlength=self._carried.size)
        self._mark[rows] = self._left[rows]

    def _stacked(self, *matrices: Ints) -> Ints:
        """The rows of all matrices, padded to one width."""
        width = max(matrix.shape[1] for matrix in matrices)
        stacked = np.full((sum(len(matrix) for matrix in matrices), width), self._links, dtype=np.int64)
        row = 0
        for matrix in matrices:
            stacked[row : row + len(matrix), : matrix.shape[1]] = matrix
            row += len(matrix)
        return stacked
