"""Ring algorithms: rank i talks to rank i+1 only; the tensor is cut into as many pieces as there are ranks.

Reduce-scatter leaves piece i at rank i, all-gather starts from there, all-reduce is one after the other (Patarasuk and
Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from workloads.collectives.registry import Lowering
from workloads.collectives.schedule import Piece, Receipts, Schedule, split
from workloads.protocol import Collective

CHANNEL = "ring"


def _reduce_scatter(schedule: Schedule, collective: Collective) -> None:
    n = len(collective.group)
    _circulate(schedule, _pieces(collective), [()] * n, first_step=0, offset=-1, reduce=True)


def _all_gather(schedule: Schedule, collective: Collective) -> None:
    n = len(collective.group)
    _circulate(schedule, _pieces(collective), [()] * n, first_step=0, offset=0, reduce=False)


def _all_reduce(schedule: Schedule, collective: Collective) -> None:
    n = len(collective.group)
    pieces = _pieces(collective)
    reduced = _circulate(schedule, pieces, [()] * n, first_step=0, offset=-1, reduce=True)
    _circulate(schedule, pieces, reduced, first_step=n - 1, offset=0, reduce=False)


def _circulate(
    schedule: Schedule,
    pieces: Sequence[Piece],
    ready: Sequence[Receipts],
    *,
    first_step: int,
    offset: int,
    reduce: bool,
) -> Sequence[Receipts]:
    """n-1 rounds: rank r first sends piece r + offset, then what it received in the round before.

    ready: by rank, what it waits for before its first send. Returns the same for what follows the last round.
    """
    n = len(pieces)
    for step in range(n - 1):
        sent = [
            schedule.send(
                first_step + step,
                rank,
                (rank + 1) % n,
                pieces[(rank + offset - step) % n],
                channel=CHANNEL,
                after=ready[rank],
                reduce=reduce,
            )
            for rank in range(n)
        ]
        ready = [sent[rank - 1] for rank in range(n)]
    return ready


def _pieces(collective: Collective) -> tuple[Piece, ...]:
    return split(Piece(0, collective.bytes), len(collective.group))


def _steps(collective: Collective) -> int:
    return len(collective.group) - 1


def _sent(collective: Collective) -> Sequence[Fraction]:
    n = len(collective.group)
    return [Fraction(n - 1, n)] * n


def _pairs(collective: Collective, offsets: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """A rank sends its neighbour all pieces but one in each round of the ring; `offsets`: those of `_circulate`."""
    pieces = _pieces(collective)
    n = len(pieces)
    for rank in range(n):
        kept = sum(pieces[(rank + offset + 1) % n].bytes for offset in offsets)
        yield rank, (rank + 1) % n, len(offsets) * collective.bytes - kept


LOWERINGS = (
    Lowering(
        "all-reduce",
        "ring",
        "reduce-scatter then all-gather around a ring: 2(N-1) steps of S/N",
        _all_reduce,
        steps=lambda collective: 2 * _steps(collective),
        sent=lambda collective: [2 * share for share in _sent(collective)],
        default=True,
        pairs=lambda collective: _pairs(collective, (-1, 0)),
    ),
    Lowering(
        "all-gather",
        "ring",
        "N-1 steps of S/N around a ring",
        _all_gather,
        _steps,
        _sent,
        default=True,
        pairs=lambda collective: _pairs(collective, (0,)),
    ),
    Lowering(
        "reduce-scatter",
        "ring",
        "N-1 steps of S/N around a ring",
        _reduce_scatter,
        _steps,
        _sent,
        default=True,
        pairs=lambda collective: _pairs(collective, (-1,)),
    ),
)
