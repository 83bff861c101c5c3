"""Connections: messages of one wait for each other, in the order in which they were asked for."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from emu.model.maxmin import Bools, Ints

_NONE = -1
_CHANNEL_BITS = 16
_MANY = 4096
"""From so many on, connections are kept in a sorted array of their own instead of a dictionary."""


class Waiting(NamedTuple):
    """A message that waits for its connection."""

    owner: int
    tag: int


class Connections:
    """Which connections there are, which are busy, and what waits for them.

    A connection joins two NICs by a channel; its number is the place in which it was first asked for.
    """

    def __init__(self) -> None:
        self._channels: dict[str, int] = {}
        self._few: dict[int, int] = {}
        self._many: list[tuple[Ints, int]] = []
        """Sorted keys, and the number of the first of them."""
        self._count = 0
        self._busy: Bools = np.zeros(0, dtype=np.bool_)
        self._place: Ints = np.zeros(0, dtype=np.int64)
        self._queues: dict[int, deque[Waiting]] = {}
        self._warm: Bools = np.zeros(0, dtype=np.bool_)

    def numbers(self, pairs: Ints, channel: str) -> Ints:
        """The numbers of the connections of these pairs of NICs by a channel; new ones are idle."""
        code = self._channels.setdefault(channel, len(self._channels))
        keys = pairs << _CHANNEL_BITS | code
        found = self._known(keys)
        new = np.unique(keys[found == _NONE])
        if new.size:
            self._add(new)
            found = self._known(keys)
        return found

    def take(self, connections: Ints, owner: int, tags: Ints) -> Bools:
        """Which messages may begin now, given theirs; the others wait. Messages on connection -1 always may."""
        kept: Bools = connections >= 0
        if not kept.any():
            return np.logical_not(kept)
        place = np.arange(len(connections))
        self._place[connections[kept][::-1]] = place[kept][::-1]  # of several for one connection the first
        begins: Bools = ~kept | (~self._busy[connections] & (self._place[connections] == place))
        self._busy[connections[begins & kept]] = True
        for row in np.flatnonzero(~begins):
            self._queues.setdefault(int(connections[row]), deque()).append(Waiting(owner, int(tags[row])))
        return begins

    def free(self, connections: Ints) -> list[Waiting]:
        """The messages on these connections are over; those that begin now instead, their connections taken."""
        kept = connections[connections >= 0]
        self._busy[kept] = False
        if not self._queues:
            return []
        waiting = [int(number) for number in kept if int(number) in self._queues]
        return [self._next(number) for number in waiting]

    def occupy(self, connections: Ints) -> None:
        """Messages that are under way already hold these."""
        self._busy[connections[connections >= 0]] = True

    def wait(self, connection: int, message: Waiting) -> None:
        """A message waits for a connection that is busy."""
        self._queues.setdefault(connection, deque()).append(message)

    def waiting(self) -> list[Waiting]:
        """All messages that wait, those of each connection in order."""
        return [message for queue in self._queues.values() for message in queue]

    def cold(self, connections: Ints) -> Bools:
        """Which connections have sent nothing until now; those with number -1 never have."""
        if not self._warm.size:
            return np.ones(len(connections), dtype=np.bool_)
        cold: Bools = (connections < 0) | ~self._warm[connections]
        return cold

    def warm_up(self, connections: Ints) -> Bools:
        """Which connections have sent nothing until now; from now on they have. Connection -1 never has."""
        cold = self.cold(connections)
        self._warm[connections[connections >= 0]] = True
        return cold

    def forget(self, owner: int, tags: frozenset[int] | None = None) -> None:
        """Messages of an owner (all, or those of `tags`) do not wait any more."""
        for number, queue in list(self._queues.items()):
            left = deque(one for one in queue if one.owner != owner or (tags is not None and one.tag not in tags))
            if left:
                self._queues[number] = left
            else:
                del self._queues[number]

    def _next(self, number: int) -> Waiting:
        queue = self._queues[number]
        first = queue.popleft()
        if not queue:
            del self._queues[number]
        self._busy[number] = True
        return first

    def _known(self, keys: Ints) -> Ints:
        if len(keys) < _MANY:
            found = np.array([self._few.get(int(key), _NONE) for key in keys], dtype=np.int64)
        else:
            few = np.array(sorted(self._few), dtype=np.int64)
            found = np.full(len(keys), _NONE, dtype=np.int64)
            there, at = _search(few, keys)
            found[there] = [self._few[int(key)] for key in few[at]]
        for known, first in self._many:
            there, at = _search(known, keys)
            found[there] = first + at
        return found

    def _add(self, keys: Ints) -> None:
        if len(keys) < _MANY:
            self._few.update(zip(keys.tolist(), range(self._count, self._count + len(keys)), strict=True))
        else:
            self._many.append((keys, self._count))
        self._count += len(keys)
        if self._count > len(self._busy):
            spare = max(2 * len(self._busy), self._count) - len(self._busy)
            self._busy = np.concatenate((self._busy, np.zeros(spare, dtype=np.bool_)))
            self._warm = np.concatenate((self._warm, np.zeros(spare, dtype=np.bool_)))
            self._place = np.concatenate((self._place, np.zeros(spare, dtype=np.int64)))


def _search(known: Ints, keys: Ints) -> tuple[Ints, Ints]:
    """Which keys are among the sorted ones, and where."""
    if not known.size:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    there = np.flatnonzero(known[place] == keys)
    return there, place[there]
