"""The messages of collectives as arrays: who sends how much to whom, and what each message waits for.

A shape speaks of positions in the group, so that all groups of one size share it. Its messages have numbers (tags), its
lanes are the pairs of positions that exchange messages over one channel. Rings and all-to-alls are computed from the
tags; whatever else there is comes from the moves of `workloads.collectives`, so every algorithm has a shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from emu.model.maxmin import Ints
from workloads.collectives import moves_of
from workloads.collectives.schedule import Move, Piece, split
from workloads.protocol import Collective

_KEPT = 64
"""Shapes that are remembered: collectives of a run repeat a few of them."""


class Shape(Protocol):
    """What all shapes offer.

    messages: how many. src, dst: by lane, positions in the group. channels: the name of each channel, and its lanes.
    """

    messages: int
    src: Ints
    dst: Ints
    channels: Sequence[tuple[str, Ints]]

    def first(self) -> Ints:
        """The messages that wait for nothing."""
        ...

    def waits(self) -> Ints:
        """By message, for how many others it waits; a fresh array, empty if `next` does not need it."""
        ...

    def next(self, tags: Ints, waits: Ints) -> Ints:
        """The messages that may begin because these were received, each once; `waits` is brought up to date."""
        ...

    def lanes(self, tags: Ints) -> Ints:
        """The lane of each message."""
        ...

    def sizes(self, tags: Ints) -> Ints:
        """The bytes of each message."""
        ...

    def totals(self) -> Ints:
        """By lane, the bytes of all its messages."""
        ...


def shape_of(collective: Collective) -> Shape:
    """The shape of a collective that `workloads.collectives.check` accepts; equal but for its ranks, the same."""
    return _shape(replace(collective, id="", phase="", label="", merged=1, group=tuple(range(len(collective.group)))))


@lru_cache(maxsize=_KEPT)
def _shape(collective: Collective) -> Shape:
    n = len(collective.group)
    if n > 1 and collective.bytes >= n:  # smaller ones have messages that are not sent at all
        if collective.algorithm == "ring":
            return Ring(collective)
        if collective.kind == "all-to-all":
            return AllToAll(n, _pieces(collective), paired=collective.algorithm == "pairwise")
    return Graph(moves_of(collective))


def _pieces(collective: Collective) -> Ints:
    parts = split(Piece(0, collective.bytes), len(collective.group))
    return np.array([part.bytes for part in parts], dtype=np.int64)


def _groups(names: Sequence[str]) -> Sequence[tuple[str, Ints]]:
    """The lanes of each channel."""
    by_name: dict[str, list[int]] = {}
    for lane, name in enumerate(names):
        by_name.setdefault(name, []).append(lane)
    return [(name, np.array(lanes, dtype=np.int64)) for name, lanes in by_name.items()]


class Ring:
    """Messages around a ring (`workloads.collectives.ring`): tag step * n + rank, sent by that rank to the next."""

    def __init__(self, collective: Collective) -> None:
        n = len(collective.group)
        self._offsets = {"all-reduce": (-1, 0), "all-gather": (0,), "reduce-scatter": (-1,)}[collective.kind]
        self.n, self.pieces = n, _pieces(collective)
        self._twice: Ints = np.concatenate((self.pieces, self.pieces))
        self.steps = len(self._offsets) * (n - 1)
        self.messages = self.steps * n
        self.src: Ints = np.arange(n, dtype=np.int64)
        self.dst: Ints = (self.src + 1) % n
        self.channels: Sequence[tuple[str, Ints]] = [("ring", self.src)]

    def first(self) -> Ints:
        """Every rank begins."""
        return self.src

    def waits(self) -> Ints:
        """Each waits for one at most."""
        return np.empty(0, dtype=np.int64)

    def next(self, tags: Ints, waits: Ints) -> Ints:
        """What a rank received it sends on in the next step."""
        step, rank = tags // self.n + 1, tags % self.n
        onward: Ints = step * self.n + (rank + 1) % self.n
        return onward[step < self.steps]

    def lanes(self, tags: Ints) -> Ints:
        """The sending rank."""
        return tags % self.n

    def sizes(self, tags: Ints) -> Ints:
        """The piece that is sent: the rank's first one is its own or the one before, then what it received."""
        step, rank = tags // self.n, tags % self.n
        phase, step = np.divmod(step, self.n - 1)
        offset = np.array(self._offsets, dtype=np.int64)[phase]
        sizes: Ints = self.pieces[(rank + offset - step) % self.n]
        return sizes

    def of_step(self, step: int) -> Ints:
        """By rank, the bytes that it sends in a step."""
        phase, step = divmod(step, self.n - 1)
        start = (self._offsets[phase] - step) % self.n
        sizes: Ints = self._twice[start : start + self.n]
        return sizes

    def totals(self) -> Ints:
        """All pieces but one in each phase."""
        kept = [self.pieces[(self.src + offset + 1) % self.n] for offset in self._offsets]
        total: Ints = len(kept) * self.pieces.sum() - np.sum(kept, axis=0)
        return total


class AllToAll:
    """Every rank to every other (`workloads.collectives.exchange`): tag (distance - 1) * n + rank, a lane for each."""

    def __init__(self, n: int, pieces: Ints, *, paired: bool) -> None:
        self.n, self._pieces, self._paired = n, pieces, paired
        self.messages = n * (n - 1)
        every = np.arange(self.messages, dtype=np.int64)
        self.src: Ints = every % n
        self.dst: Ints = (every // n + 1 + every % n) % n
        self.channels: Sequence[tuple[str, Ints]] = [("all-to-all", every)]

    def first(self) -> Ints:
        """All, or one for each rank."""
        return np.arange(self.n if self._paired else self.messages, dtype=np.int64)

    def waits(self) -> Ints:
        """Each waits for one at most."""
        return np.empty(0, dtype=np.int64)

    def next(self, tags: Ints, waits: Ints) -> Ints:
        """In rounds, a rank that received its block begins the next round."""
        if not self._paired:
            return tags[:0]
        distance, rank = tags // self.n + 1, tags % self.n
        onward: Ints = distance * self.n + (rank + distance) % self.n
        return onward[distance < self.n - 1]

    def lanes(self, tags: Ints) -> Ints:
        """Its own."""
        return tags

    def sizes(self, tags: Ints) -> Ints:
        """The receiver's block."""
        return self._pieces[self.dst[tags]]

    def totals(self) -> Ints:
        """One message each."""
        return self._pieces[self.dst]


class Graph:
    """Messages with any dependencies, from moves."""

    def __init__(self, moves: Sequence[Move]) -> None:
        ends: dict[tuple[int, int, str], int] = {}
        lanes = [ends.setdefault((move.src, move.dst, move.channel), len(ends)) for move in moves]
        self.messages = len(moves)
        self.src = np.array([src for src, _, _ in ends], dtype=np.int64)
        self.dst = np.array([dst for _, dst, _ in ends], dtype=np.int64)
        self.channels = _groups([channel for _, _, channel in ends])
        self._lanes = np.array(lanes, dtype=np.int64)
        self._sizes = np.array([move.piece.bytes for move in moves], dtype=np.int64)
        self._waits = np.array([len(move.after) for move in moves], dtype=np.int64)
        before = np.array([other for move in moves for other in move.after], dtype=np.int64)
        after = np.repeat(np.arange(len(moves)), self._waits)
        order = np.argsort(before, kind="stable")
        self._followers: Ints = after[order]
        self._starts: Ints = np.searchsorted(before[order], np.arange(len(moves) + 1))

    def first(self) -> Ints:
        """The moves without any before them."""
        return np.flatnonzero(self._waits == 0)

    def waits(self) -> Ints:
        """By move, how many are before it."""
        return self._waits.copy()

    def next(self, tags: Ints, waits: Ints) -> Ints:
        """The moves of which these were the last ones before."""
        starts = self._starts[tags]
        counts = self._starts[tags + 1] - starts
        if not counts.any():
            return tags[:0]
        places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
        found, last, times = np.unique(self._followers[places][::-1], return_index=True, return_counts=True)
        waits[found] -= times
        free = waits[found] == 0  # below: in the order in which the last one before each was received
        freed: Ints = found[free][np.argsort(-last[free])]
        return freed

    def lanes(self, tags: Ints) -> Ints:
        """From the moves."""
        return self._lanes[tags]

    def sizes(self, tags: Ints) -> Ints:
        """From the moves."""
        return self._sizes[tags]

    def totals(self) -> Ints:
        """The moves of each lane, added up."""
        total = np.zeros(len(self.src), dtype=np.int64)
        np.add.at(total, self._lanes, self._sizes)
        return total
