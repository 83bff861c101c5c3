"""Static workloads: a list of steps, each after the one before it or after those that it names."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from workloads.cluster import Cluster
from workloads.protocol import (
    Action,
    Announce,
    Cancelled,
    Done,
    Event,
    Failed,
    Run,
    SetTimer,
    Start,
    Task,
    TaskId,
    Timer,
    Transfer,
)
from workloads.step_kinds import CollectiveStep, ComputationStep, Demand, Step, StepError, TransferStep

__all__ = ["CollectiveStep", "ComputationStep", "Step", "StepError", "StepsOrchestrator", "TransferStep", "check"]


@dataclass
class _Progress:
    """How far a step has come.

    waits: earlier steps that are not over.
    began: when the first round began; None before.
    number: the round that runs or comes next.
    left: tasks of the round that are not over; held: those that were not asked for yet.
    """

    step: Step
    occurrence: int
    waits: set[str]
    began: float | None = None
    over: bool = False
    number: int = 0
    left: set[TaskId] = field(default_factory=set)
    held: dict[TaskId, Transfer] = field(default_factory=dict)


class StepsOrchestrator:
    """Runs steps when the steps that they wait for are over and their time has come.

    A phase is announced when the first of its steps waits for nothing but its time and computations that run already,
    so that circuits can change meanwhile; its slack is then the least time until a transfer of it can start. If a task
    fails or is cancelled, what waits for it never starts; steps beside it go on. Raises StepError at construction for
    steps that cannot be carried out on the cluster.
    """

    def __init__(self, steps: Sequence[Step], cluster: Cluster) -> None:
        check(steps, cluster)
        self._cluster = cluster
        self._demands: Mapping[str, Demand] = {}
        self._progress: dict[str, _Progress] = {}
        occurrences = itertools.groupby(steps, key=lambda step: step.phase_name)
        for number, (_, members) in enumerate(occurrences):
            for step in members:
                before = tuple(self._progress)[-1:] if step.after is None else step.after
                self._progress[step.name] = _Progress(step, number, set(before))
        self._followers: dict[str, list[str]] = {}
        for name, progress in self._progress.items():
            for other in progress.waits:
                self._followers.setdefault(other, []).append(name)
        self._announced: set[int] = set()
        self._owners: dict[TaskId, _Progress] = {}

    def on(self, event: Event, now: float) -> Sequence[Action]:
        """Answer one event; see `Orchestrator`."""
        match event:
            case Start():
                # Now, while nothing is in flight, and not at an announcement, where it could delay traffic.
                self._demands = {name: at.step.demand(self._cluster) for name, at in self._progress.items()}
                return [action for name in self._progress for action in self._arm_if_free(name, now)]
            case Timer(name) if name in self._progress:
                return self._begin(self._progress[name], now)
            case Done(task):
                return self._done(task, now)
            case Failed(task) | Cancelled(task):
                self._owners.pop(task.id, None)
        return []

    def _arm_if_free(self, name: str, now: float) -> list[Action]:
        """Announce the step's phase, and begin the step or set a timer for it, if it waits for no other."""
        progress = self._progress[name]
        if progress.waits:
            return []
        actions = self._announce(progress.occurrence, now)
        if progress.step.at > now:
            return [*actions, SetTimer(name, progress.step.at)]
        return [*actions, *self._begin(progress, now)]

    def _begin(self, progress: _Progress, now: float) -> list[Action]:
        progress.began = now
        actions = self._run_round(progress)
        if isinstance(progress.step, ComputationStep):
            actions += self._announce_certain(self._followers.get(progress.step.name, ()), now)
        return actions

    def _run_round(self, progress: _Progress) -> list[Action]:
        """Run the tasks of the next round that wait for nothing."""
        tasks = progress.step.tasks(progress.number, self._cluster)
        progress.left = {task.id for task in tasks}
        self._owners.update((task.id, progress) for task in tasks)
        progress.held = {task.id: task for task in tasks if isinstance(task, Transfer) and task.after}
        return [Run(task) for task in tasks if task.id not in progress.held]

    def _done(self, task: Task, now: float) -> list[Action]:
        progress = self._owners.pop(task.id, None)
        if progress is None:
            return []
        progress.left.discard(task.id)
        if progress.left:
            return _release(progress)
        progress.number += 1
        if progress.number < progress.step.rounds:
            return self._run_round(progress)
        progress.over = True
        return self._free_followers(progress.step.name, now)

    def _free_followers(self, name: str, now: float) -> list[Action]:
        followers = self._followers.get(name, ())
        for follower in followers:
            self._progress[follower].waits.remove(name)
        armed = [action for follower in followers for action in self._arm_if_free(follower, now)]
        return armed + self._announce_certain(followers, now)

    def _announce_certain(self, names: Sequence[str], now: float) -> list[Action]:
        """Announce those of these steps that wait for nothing but computations that run: their ends are known."""
        return [
            action
            for name in names
            if all(self._end_known(other) for other in self._progress[name].waits)
            for action in self._announce(self._progress[name].occurrence, now)
        ]

    def _end_known(self, name: str) -> bool:
        progress = self._progress[name]
        return isinstance(progress.step, ComputationStep) and progress.began is not None

    def _announce(self, occurrence: int, now: float) -> list[Action]:
        """The announcement of a phase, once."""
        if occurrence in self._announced:
            return []
        self._announced.add(occurrence)
        return [self._announcement(occurrence, now)]

    def _announcement(self, occurrence: int, now: float) -> Announce:
        demand: Counter[tuple[str, str]] = Counter()
        members = [progress for progress in self._progress.values() if progress.occurrence == occurrence]
        for progress in members:
            demand.update(self._demands[progress.step.name])
        slack = self._slack([progress.step.name for progress in members], now)
        return Announce(members[0].step.phase_name, dict(demand), slack)

    def _slack(self, members: Sequence[str], now: float) -> float:
        """Least seconds until a transfer of these steps can start; if they have none, until the steps can be over."""
        starts, ends = self._earliest(now)
        sending = [starts[name] for name in members if self._demands[name]]
        return max(0.0, (min(sending) if sending else max(ends[name] for name in members)) - now)

    def _earliest(self, now: float) -> tuple[Mapping[str, float], Mapping[str, float]]:
        """Lower bounds of when each step begins and ends: computations take their time, the fabric takes none."""
        starts: dict[str, float] = {}
        ends: dict[str, float] = {}
        for name, progress in self._progress.items():
            after = max((ends[other] for other in progress.waits), default=now)
            starts[name] = max(now, progress.step.at, after) if progress.began is None else progress.began
            ends[name] = now if progress.over else max(now, starts[name] + progress.step.duration)
        return starts, ends


def _release(progress: _Progress) -> list[Action]:
    """Run the held transfers of the round whose predecessors are all over."""
    free = [task for task in progress.held.values() if not progress.left.intersection(task.after)]
    for task in free:
        del progress.held[task.id]
    return [Run(replace(task, after=())) for task in free]


def check(steps: Sequence[Step], cluster: Cluster) -> None:
    """Raise StepError unless the steps can be carried out on the cluster, each after earlier ones only."""
    earlier: set[str] = set()
    for step in steps:
        for problem in step.problems(cluster):
            raise StepError(f"step {step.name!r}: {problem}")
        if step.name in earlier:
            raise StepError(f"two steps are called {step.name!r}")
        for other in sorted(set(step.after or ()) - earlier):
            raise StepError(f"step {step.name!r}: after names {other!r}, which is no earlier step")
        earlier.add(step.name)
