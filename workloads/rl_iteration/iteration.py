"""Iterations put together: what waits for what."""

from __future__ import annotations

from collections.abc import Sequence

from workloads.cluster import Cluster
from workloads.rl_iteration.generation import SwitchingGroup, afd_steps
from workloads.rl_iteration.rounds import Maker, Naming
from workloads.rl_iteration.shape import RlIteration
from workloads.rl_iteration.training import training_steps
from workloads.rl_iteration.weight_sync import weight_sync_step
from workloads.step_kinds import Step

TRAINING, GENERATION, WEIGHT_SYNC = "training", "generation", "weight-sync"


def iteration_steps(shape: RlIteration, cluster: Cluster, *, buckets: int | None = None) -> tuple[Step, ...]:
    """The steps of all iterations, for a StepsOrchestrator.

    buckets: layer gradients are merged into at most so many all-reduces (`training.buckets` may be fewer).
    Raises IterationError for parts that do not fit together on the cluster.
    """
    shape.check(cluster.ranks)
    groups = [SwitchingGroup(shape, number, ranks) for number, ranks in enumerate(shape.switching)]
    steps: list[Step] = []
    for iteration in range(shape.iterations):
        naming = Naming(iteration, shape.iterations)
        before = (steps[-1].name,) if steps else ()
        steps += _one(shape, cluster, naming, groups, before, buckets)
    return tuple(steps)


def _one(
    shape: RlIteration,
    cluster: Cluster,
    naming: Naming,
    groups: Sequence[SwitchingGroup],
    before: tuple[str, ...],
    buckets: int | None,
) -> list[Step]:
    """One iteration, its weight sync last."""
    generation, ends = _generation(shape, Maker(cluster, naming, GENERATION), groups, before)
    synchronous = shape.mode == "synchronous"
    maker = Maker(cluster, naming, TRAINING)
    training = list(training_steps(shape, maker, ends if synchronous else before, buckets))
    finished = (training[-1].name,) if synchronous else (training[-1].name, *ends)
    sync = weight_sync_step(shape, Maker(cluster, naming, WEIGHT_SYNC), finished)
    first, second = (generation, training) if synchronous else (training, generation)
    return [*first, *second, sync]


def _generation(
    shape: RlIteration, maker: Maker, groups: Sequence[SwitchingGroup], before: tuple[str, ...]
) -> tuple[list[Step], tuple[str, ...]]:
    """All steps of generation, and those with which it ends."""
    parts = [group.steps(maker, before) for group in groups]
    if shape.afd:
        parts.append(list(afd_steps(shape, shape.afd, maker, before)))
    ends = tuple(part[-1].name for part in parts)
    return [step for part in parts for step in part], ends or before
