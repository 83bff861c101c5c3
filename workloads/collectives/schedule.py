"""Schedules: which rank sends which bytes of its buffer to which, and what it must have received before.

A schedule speaks of positions in the group, 0..n-1, and of byte ranges of the tensor. It knows neither hosts nor time.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple


class Piece(NamedTuple):
    """The bytes `start` up to, not including, `stop` of a tensor."""

    start: int
    stop: int

    @property
    def bytes(self) -> int:
        """How many bytes there are."""
        return self.stop - self.start


Receipts = tuple[int, ...]
"""Indices of moves: what has to be received."""


class Move(NamedTuple):
    """One message.

    step: the round of the algorithm; for people and ids, not for ordering.
    reduce: the receiver adds the bytes to its own instead of keeping the new ones.
    after: the moves, by index, that must have been received before this one may start.
    """

    step: int
    src: int
    dst: int
    piece: Piece
    channel: str
    reduce: bool
    after: Receipts


class Schedule:
    """The moves of one collective, in an order in which every move comes after those that it waits for."""

    def __init__(self) -> None:
        self.moves: list[Move] = []

    def send(
        self, step: int, src: int, dst: int, piece: Piece, *, channel: str, after: Receipts = (), reduce: bool = False
    ) -> Receipts:
        """Add a move and return what to wait for to have received it.

        Nothing is sent for an empty piece: whoever would wait for it waits for what it would have waited for.
        """
        if not piece.bytes:
            return after
        self.moves.append(Move(step, src, dst, piece, channel, reduce, after))
        return (len(self.moves) - 1,)


def split(piece: Piece, parts: int) -> tuple[Piece, ...]:
    """Cut a piece into `parts` whose sizes differ by one byte at most and sum exactly."""
    cuts = [piece.start + piece.bytes * i // parts for i in range(parts + 1)]
    return tuple(Piece(start, stop) for start, stop in itertools.pairwise(cuts))
