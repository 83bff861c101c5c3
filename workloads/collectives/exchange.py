"""Exchanges without forwarding: all-to-all, exchange, permutation, incast, and broadcast to each rank directly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from workloads.collectives.registry import Lowering
from workloads.collectives.schedule import Piece, Receipts, Schedule, split
from workloads.protocol import Collective

ALL_TO_ALL = "all-to-all"
DIRECT = "direct"


def _all_to_all_direct(schedule: Schedule, collective: Collective) -> None:
    """Every rank sends block j of its tensor to rank j, all at once, its next neighbour's first."""
    n = len(collective.group)
    blocks = split(Piece(0, collective.bytes), n)
    for distance in range(1, n):
        for rank in range(n):
            peer = (rank + distance) % n
            schedule.send(0, rank, peer, blocks[peer], channel=ALL_TO_ALL)


def _all_to_all_pairwise(schedule: Schedule, collective: Collective) -> None:
    """N-1 rounds; a rank starts a round when it has received its block of the round before."""
    n = len(collective.group)
    blocks = split(Piece(0, collective.bytes), n)
    received: list[Receipts] = [()] * n
    for distance in range(1, n):
        sent = [
            schedule.send(
                distance - 1,
                rank,
                (rank + distance) % n,
                blocks[(rank + distance) % n],
                channel=ALL_TO_ALL,
                after=received[rank],
            )
            for rank in range(n)
        ]
        received = [sent[rank - distance] for rank in range(n)]


def _all_to_all_sent(collective: Collective) -> Sequence[Fraction]:
    n = len(collective.group)
    return [Fraction(n - 1, n)] * n


def _all_to_all_pairs(collective: Collective) -> Iterator[tuple[int, int, int]]:
    blocks = split(Piece(0, collective.bytes), len(collective.group))
    sizes = [block.bytes for block in blocks]
    return ((src, dst, size) for src in range(len(sizes)) for dst, size in enumerate(sizes) if src != dst)


def _permutation(schedule: Schedule, collective: Collective) -> None:
    """Rank i of the group sends the whole to rank i+1: the group's order makes the permutation."""
    n = len(collective.group)
    for rank in range(n):
        schedule.send(0, rank, (rank + 1) % n, Piece(0, collective.bytes), channel=DIRECT)


def _permutation_sent(collective: Collective) -> Sequence[Fraction]:
    return [Fraction(1)] * len(collective.group)


def _incast(schedule: Schedule, collective: Collective) -> None:
    """Every other rank sends the whole to the root at once."""
    for rank in range(len(collective.group)):
        if rank != collective.root:
            schedule.send(0, rank, collective.root, Piece(0, collective.bytes), channel=DIRECT)


def _incast_sent(collective: Collective) -> Sequence[Fraction]:
    return [Fraction(rank != collective.root) for rank in range(len(collective.group))]


def _exchange(schedule: Schedule, collective: Collective) -> None:
    """Every pair of the matrix at once; the tensor is the senders' bytes one after the other."""
    start = 0
    for src, dst, size in collective.matrix:
        schedule.send(0, src, dst, Piece(start, start + size), channel=DIRECT)
        start += size


def _exchange_sent(collective: Collective) -> Sequence[Fraction]:
    sent = Counter[int]()
    for src, _, size in collective.matrix:
        sent[src] += size
    return [Fraction(sent[rank], collective.bytes) for rank in range(len(collective.group))]


def _broadcast(schedule: Schedule, collective: Collective) -> None:
    """The root sends the whole to every other rank at once."""
    n = len(collective.group)
    for distance in range(1, n):
        target = (collective.root + distance) % n
        schedule.send(0, collective.root, target, Piece(0, collective.bytes), channel=DIRECT)


def _broadcast_sent(collective: Collective) -> Sequence[Fraction]:
    n = len(collective.group)
    return [Fraction((n - 1) * (rank == collective.root)) for rank in range(n)]


def _one_step(collective: Collective) -> int:
    return 1


LOWERINGS = (
    Lowering(
        "all-to-all",
        "pairwise",
        "N-1 rounds, in round r with the ranks at distance r: S/N to each",
        _all_to_all_pairwise,
        steps=lambda collective: len(collective.group) - 1,
        sent=_all_to_all_sent,
        default=True,
        pairs=_all_to_all_pairs,
    ),
    Lowering(
        "all-to-all",
        "direct",
        "N(N-1) messages of S/N, all at once",
        _all_to_all_direct,
        _one_step,
        _all_to_all_sent,
        pairs=_all_to_all_pairs,
    ),
    Lowering(
        "exchange",
        "direct",
        "every pair of a matrix (as MPI's Alltoallv), all at once",
        _exchange,
        _one_step,
        _exchange_sent,
        default=True,
    ),
    Lowering(
        "broadcast",
        "direct",
        "the root sends S to every other rank, all at once (unicast): N - 1 times S from one rank",
        _broadcast,
        _one_step,
        _broadcast_sent,
    ),
    Lowering(
        "permutation",
        "direct",
        "every rank sends S to the next of the group, all at once",
        _permutation,
        _one_step,
        _permutation_sent,
        default=True,
    ),
    Lowering(
        "incast",
        "direct",
        "every rank sends S to the root, all at once",
        _incast,
        _one_step,
        _incast_sent,
        default=True,
    ),
)
