"""Recursive halving and doubling: partners at a distance of N/2, N/4, ... exchange halves, then back.

After Rabenseifner's all-reduce (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
MPICH", 2005). If N is no power of two, the first 2(N - p) ranks, p the power of two below, pair up: the even one hands
its data to its odd neighbour before and gets its part of the result from it after (a fold); p ranks take part between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from workloads.collectives.registry import Lowering
from workloads.collectives.schedule import Piece, Receipts, Schedule, split
from workloads.protocol import Collective

CHANNEL = "halving-doubling"


@dataclass
class _Exchange:
    """A collective under construction.

    cuts: participant k's segment of the tensor is cuts[k] to cuts[k + 1].
    received: by position in the group, the moves received so far; a rank sends only after all of them.
    """

    schedule: Schedule
    ranks: int
    cuts: Sequence[int]
    step: int = 0
    received: dict[int, Receipts] = field(default_factory=dict)

    def fold(self, pieces: Sequence[Piece], *, reduce: bool) -> None:
        """The even rank of folded pair i sends pieces[i] to the odd one."""
        self._round([(2 * i, 2 * i + 1, pieces[i]) for i in range(_folded(self.ranks))], reduce=reduce)

    def unfold(self, pieces: Sequence[Piece]) -> None:
        """The odd rank of folded pair i sends pieces[i] to the even one."""
        self._round([(2 * i + 1, 2 * i, pieces[i]) for i in range(_folded(self.ranks))], reduce=False)

    def halve(self) -> None:
        """Partners keep the half that their own segment is in and send the other, to be reduced."""
        for distance in reversed(_distances(self.ranks)):
            self._round(self._exchange(distance, send_own=False), reduce=True)

    def double(self) -> None:
        """Partners send each other all that they have."""
        for distance in _distances(self.ranks):
            self._round(self._exchange(distance, send_own=True), reduce=False)

    def _exchange(self, distance: int, *, send_own: bool) -> list[tuple[int, int, Piece]]:
        messages = []
        for participant in range(len(self.cuts) - 1):
            partner = participant ^ distance
            first = (participant if send_own else partner) // distance * distance
            piece = Piece(self.cuts[first], self.cuts[first + distance])
            messages.append((_position(participant, self.ranks), _position(partner, self.ranks), piece))
        return messages

    def _round(self, messages: Sequence[tuple[int, int, Piece]], *, reduce: bool) -> None:
        """Messages that cross each other: what arrives in a round does not delay what is sent in it."""
        before = dict(self.received)
        for src, dst, piece in messages:
            after = before.get(src, ())
            receipt = self.schedule.send(self.step, src, dst, piece, channel=CHANNEL, after=after, reduce=reduce)
            if piece.bytes:
                self.received[dst] = self.received.get(dst, ()) + receipt
        self.step += bool(messages)


def _all_reduce(schedule: Schedule, collective: Collective) -> None:
    n = len(collective.group)
    whole = Piece(0, collective.bytes)
    exchange = _Exchange(schedule, n, _cuts(split(whole, _participants(n))))
    exchange.fold([whole] * _folded(n), reduce=True)
    exchange.halve()
    exchange.double()
    exchange.unfold([whole] * _folded(n))


def _reduce_scatter(schedule: Schedule, collective: Collective) -> None:
    n = len(collective.group)
    whole = Piece(0, collective.bytes)
    blocks = split(whole, n)
    exchange = _Exchange(schedule, n, _cuts(_segments(blocks)))
    exchange.fold([whole] * _folded(n), reduce=True)
    exchange.halve()
    exchange.unfold(blocks[: 2 * _folded(n) : 2])


def _all_gather(schedule: Schedule, collective: Collective) -> None:
    n = len(collective.group)
    whole = Piece(0, collective.bytes)
    blocks = split(whole, n)
    exchange = _Exchange(schedule, n, _cuts(_segments(blocks)))
    exchange.fold(blocks[: 2 * _folded(n) : 2], reduce=False)
    exchange.double()
    exchange.unfold([whole] * _folded(n))


def _participants(ranks: int) -> int:
    """The largest power of two that is not above `ranks`."""
    return 1 << (ranks.bit_length() - 1)


def _folded(ranks: int) -> int:
    """How many pairs are folded."""
    return ranks - _participants(ranks)


def _position(participant: int, ranks: int) -> int:
    folded = _folded(ranks)
    return 2 * participant + 1 if participant < folded else participant + folded


def _distances(ranks: int) -> list[int]:
    return [1 << bit for bit in range(ranks.bit_length() - 1)]


def _segments(blocks: Sequence[Piece]) -> list[Piece]:
    """By participant, the blocks of the ranks that it stands for: two of a folded pair, else one."""
    folded = _folded(len(blocks))
    pairs = [Piece(blocks[2 * i].start, blocks[2 * i + 1].stop) for i in range(folded)]
    return pairs + list(blocks[2 * folded :])


def _cuts(segments: Sequence[Piece]) -> list[int]:
    return [0, *(segment.stop for segment in segments)]


def _all_reduce_steps(collective: Collective) -> int:
    n = len(collective.group)
    return 2 * len(_distances(n)) + (2 if _folded(n) else 0)


def _one_way_steps(collective: Collective) -> int:
    """log2 p, plus fold and unfold: both are on one path only if some pair's data ends at another pair."""
    n = len(collective.group)
    both = 2 * _folded(n) > _participants(n)
    return len(_distances(n)) + (2 if both else 1 if _folded(n) else 0)


def _all_reduce_sent(collective: Collective) -> Sequence[Fraction]:
    n = len(collective.group)
    p = _participants(n)
    shares = [Fraction(2 * (p - 1), p) + (1 if position < 2 * _folded(n) else 0) for position in range(n)]
    return _with_folded(shares, Fraction(1))


def _reduce_scatter_sent(collective: Collective) -> Sequence[Fraction]:
    """All but the rank's own block, also for the odd rank of a folded pair, which sends its partner's block last."""
    n = len(collective.group)
    return _with_folded([Fraction(n - 1, n)] * n, Fraction(1))


def _all_gather_sent(collective: Collective) -> Sequence[Fraction]:
    """What a participant holds before each exchange; of a folded pair, then the whole."""
    n = len(collective.group)
    cuts = _cuts(_segments(split(Piece(0, n), n)))
    shares = [Fraction(0)] * n
    for participant in range(_participants(n)):
        starts = [(participant // distance * distance, distance) for distance in _distances(n)]
        held = sum(cuts[start + distance] - cuts[start] for start, distance in starts)
        shares[_position(participant, n)] = Fraction(held, n) + (1 if participant < _folded(n) else 0)
    return _with_folded(shares, Fraction(1, n))


def _with_folded(shares: Sequence[Fraction], even: Fraction) -> list[Fraction]:
    """The shares, with that of the even rank of each folded pair replaced."""
    folded = 2 * _folded(len(shares))
    return [even if position < folded and position % 2 == 0 else share for position, share in enumerate(shares)]


LOWERINGS = (
    Lowering(
        "all-reduce",
        "halving-doubling",
        "recursive halving, then doubling: 2 log2 N steps, 2 more if N is no power of two",
        _all_reduce,
        _all_reduce_steps,
        _all_reduce_sent,
    ),
    Lowering(
        "reduce-scatter",
        "halving-doubling",
        "recursive halving: log2 N steps, up to 2 more if N is no power of two",
        _reduce_scatter,
        _one_way_steps,
        _reduce_scatter_sent,
    ),
    Lowering(
        "all-gather",
        "halving-doubling",
        "recursive doubling: log2 N steps, up to 2 more if N is no power of two",
        _all_gather,
        _one_way_steps,
        _all_gather_sent,
    ),
)
