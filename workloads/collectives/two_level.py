"""Two-level broadcast: a binary tree of pods, a chain within each pod, pipelined in chunks.

The shape in which RFabric (OrchestrRL, arXiv 2601.01209) lays circuits for weight sync: from the training pod to
heads of generation pods, from there on within and among them. All ranks of the first pod hold the tensor, and each of
its children is fed by another of them; a pod further down feeds its children from the end of its chain, whose ranks
have least to send. So a pod needs one circuit for each neighbour in the tree, and with up to two pods below the first
and one below each of the others, no rank sends more than the tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from workloads.collectives.registry import Lowering
from workloads.collectives.schedule import Piece, Receipts, Schedule, split
from workloads.protocol import Collective

CHANNEL = "two-level"


def pod_members(collective: Collective) -> tuple[tuple[int, ...], ...]:
    """By pod, its positions in the group, from the root on and around."""
    n = len(collective.group)
    order = [(collective.root + i) % n for i in range(n)]
    cuts = accumulate(collective.pods or (1, n - 1), initial=0)
    return tuple(tuple(order[start:stop]) for start, stop in pairwise(cuts))


def _edges(collective: Collective) -> Iterator[tuple[int, int]]:
    """(sender, receiver), everyone's own edge before those to whom it sends."""
    pods = pod_members(collective)
    for number, pod in enumerate(pods[1:], start=1):
        yield _feeder(pods, number), pod[0]
        yield from pairwise(pod)


def _feeder(pods: Sequence[Sequence[int]], number: int) -> int:
    """Who sends to the head of a pod. Pods are in level order: those of pod i are 2 i + 1 and 2 i + 2.

    In the first pod they are half of it apart, so that they are not below one switch if it has several.
    """
    parent, which = divmod(number - 1, 2)
    pod = pods[parent]
    return pod[which * len(pod) // 2] if parent == 0 else pod[-1 - which % len(pod)]


def _broadcast(schedule: Schedule, collective: Collective) -> None:
    edges = list(_edges(collective))
    depths = _depths(collective)
    for number, chunk in enumerate(split(Piece(0, collective.bytes), collective.chunks)):
        received: dict[int, Receipts] = {}
        for sender, receiver in edges:
            step = number + depths[receiver] - 1
            after = received.get(sender, ())
            received[receiver] = schedule.send(step, sender, receiver, chunk, channel=CHANNEL, after=after)


def _depths(collective: Collective) -> dict[int, int]:
    """Hops from the first pod to everyone who receives."""
    depths: dict[int, int] = {}
    for sender, receiver in _edges(collective):
        depths[receiver] = 1 + depths.get(sender, 0)
    return depths


def _steps(collective: Collective) -> int:
    if len(collective.pods) == 1:
        return 0
    return max(_depths(collective).values()) - 1 + min(collective.chunks, collective.bytes)


def _sent(collective: Collective) -> Sequence[Fraction]:
    times = Counter(sender for sender, _ in _edges(collective))
    return [Fraction(times[rank]) for rank in range(len(collective.group))]


LOWERINGS = (
    Lowering(
        "broadcast",
        "two-level",
        "a tree of pods, whose first holds S, and a chain in each, pipelined in chunks",
        _broadcast,
        _steps,
        _sent,
    ),
)
