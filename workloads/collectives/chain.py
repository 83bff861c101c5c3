"""Chain broadcast: from the root through all ranks in the group's order, pipelined in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from workloads.collectives.registry import Lowering
from workloads.collectives.schedule import Piece, Receipts, Schedule, split
from workloads.protocol import Collective

CHANNEL = "chain"


def _broadcast(schedule: Schedule, collective: Collective) -> None:
    n = len(collective.group)
    order = [(collective.root + i) % n for i in range(n)]
    for number, chunk in enumerate(split(Piece(0, collective.bytes), collective.chunks)):
        received: Receipts = ()
        for hop in range(n - 1):
            received = schedule.send(number + hop, order[hop], order[hop + 1], chunk, channel=CHANNEL, after=received)


def _steps(collective: Collective) -> int:
    return len(collective.group) - 2 + min(collective.chunks, collective.bytes)


def _sent(collective: Collective) -> Sequence[Fraction]:
    n = len(collective.group)
    last = (collective.root - 1) % n
    return [Fraction(rank != last) for rank in range(n)]


LOWERINGS = (
    Lowering(
        "broadcast",
        "chain",
        "from rank to rank, pipelined in chunks: N - 2 + chunks steps, every rank but the last sends S",
        _broadcast,
        _steps,
        _sent,
        default=True,
    ),
)
