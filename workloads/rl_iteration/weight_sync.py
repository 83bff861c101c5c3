"""The weight-sync phase: the new weights from the training ranks to every generation rank, as one broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workloads.models import weights_bytes
from workloads.protocol import Algorithm
from workloads.rl_iteration.rounds import Maker
from workloads.rl_iteration.shape import RlIteration, SyncAlgorithm
from workloads.step_kinds import CollectiveStep

WEIGHTS = "weights"
_ALGORITHMS: dict[SyncAlgorithm, Algorithm] = {"two-level": "two-level", "chain": "chain", "unicast": "direct"}


def weight_sync_step(shape: RlIteration, maker: Maker, after: Sequence[str]) -> CollectiveStep:
    """Full tensors to every generation rank, which keeps what it needs (as ROLL and checkpoint-engine send them).

    Chain and unicast start from the first training rank; the two-level tree from all, since data-parallel replicas
    hold the same weights.
    """
    sync = shape.weight_sync
    size = weights_bytes(shape.model, shape.dtype)
    pods = _pods(shape) if sync.algorithm == "two-level" else (shape.training.ranks[:1], shape.generation)
    ranks = tuple(rank for pod in pods for rank in pod)
    step = maker.collective("broadcast", WEIGHTS, size=size, ranks=ranks, after=after)
    sizes = tuple(map(len, pods)) if sync.algorithm == "two-level" else ()
    return replace(step, algorithm=_ALGORITHMS[sync.algorithm], chunks=sync.chunks, pods=sizes)


def _pods(shape: RlIteration) -> tuple[tuple[int, ...], ...]:
    """The training ranks, then the pods of the generation ranks, each in the order of its chain.

    The chains begin at different places of their pods, so that switches which choose a way by a host's place in its
    pod, as in a fat-tree with two-level routing, do not send all heads' traffic one way.
    """
    ranks, width = shape.generation, shape.weight_sync.pod
    pods = [ranks[start : start + width] for start in range(0, len(ranks), width)]
    turned = (pod[place % len(pod) :] + pod[: place % len(pod)] for place, pod in enumerate(pods))
    return shape.training.ranks, *turned
