"""From a scenario's `workload:` to the steps, collectives and orchestrator that carry it out on a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from emu import plugins
from emu.errors import KeyPath
from emu.scenario.options import values_of
from emu.scenario.rl_spec import RlWorkload
from emu.scenario.schema import Scenario
from emu.scenario.workload_spec import Collectives, CollectiveStep, ComputeStep, FlowList, OwnWorkload
from workloads import flow_list, models, orders, sizes, steps
from workloads.cluster import Cluster
from workloads.models import Model
from workloads.protocol import Collective, Orchestrator
from workloads.rl_iteration import IterationError, iteration_steps
from workloads.sizes import Bucket


def build_orchestrator(scenario: Scenario, cluster: Cluster, *, seed: int, buckets: int | None = None) -> Orchestrator:
    """The scenario's workload on a cluster.

    seed: of random rank orders; a scenario's own, unless a run repeats it with another.
    buckets: layer-gradients are merged into at most so many collectives (a step's own `buckets` may be fewer).

    Raises InputError, with the line, for what the cluster cannot do.
    """
    workload = scenario.workload
    if not isinstance(workload, FlowList):
        return steps.StepsOrchestrator(steps_of(scenario, cluster, seed=seed, buckets=buckets), cluster)
    flows = flow_list_of(scenario)
    try:
        return flow_list.FlowListOrchestrator(flows, cluster, workload.connections)
    except flow_list.FlowListError as error:
        raise scenario.error(_place(workload), str(error)) from error


def collectives_of(
    scenario: Scenario, cluster: Cluster, *, seed: int, buckets: int | None = None
) -> tuple[Collective, ...]:
    """Every collective of the workload in the order of its steps, repetitions included; none for a flow list."""
    return tuple(
        step.collective(number)
        for step in steps_of(scenario, cluster, seed=seed, buckets=buckets)
        if isinstance(step, steps.CollectiveStep)
        for number in range(step.rounds)
    )


def steps_of(scenario: Scenario, cluster: Cluster, *, seed: int, buckets: int | None = None) -> tuple[steps.Step, ...]:
    """The workload's steps, none for a flow list; parameters and errors as for `build_orchestrator`."""
    workload = scenario.workload
    if isinstance(workload, RlWorkload):
        return _iteration_steps(scenario, workload, cluster, buckets)
    if isinstance(workload, FlowList):
        return ()
    if isinstance(workload, OwnWorkload):
        return _own_steps(scenario, workload, cluster, seed)
    made = _Maker(scenario, workload, cluster, seed, buckets).all_steps()
    for place, step in enumerate(made):
        for problem in step.problems(cluster):
            raise scenario.error(("workload", "steps", place), problem)
    return made


def _iteration_steps(
    scenario: Scenario, workload: RlWorkload, cluster: Cluster, buckets: int | None
) -> tuple[steps.Step, ...]:
    try:
        return iteration_steps(workload.shape(), cluster, buckets=buckets)
    except IterationError as error:
        raise scenario.error(("workload", *error.key), error.problem, hint=error.hint) from error


def _own_steps(scenario: Scenario, workload: OwnWorkload, cluster: Cluster, seed: int) -> tuple[steps.Step, ...]:
    made = plugins.steps(workload.kind, cluster, seed, values_of(workload, OwnWorkload))
    if not made:
        raise scenario.error(("workload",), f"{workload.kind} gives no steps")
    try:
        steps.check(made, cluster)
    except steps.StepError as error:
        raise scenario.error(("workload",), str(error)) from error
    return made


def flow_list_of(scenario: Scenario) -> flow_list.FlowList:
    """The flows of a scenario whose workload is a flow list. Raises InputError with the line of the list."""
    workload = scenario.workload
    if not isinstance(workload, FlowList) or workload.flows is None:
        raise scenario.error(("workload",), "has no flow list")
    try:
        return flow_list.parse_flow_list(workload.flows, workload.file or "flows", workload.format)
    except flow_list.FlowListError as error:
        raise scenario.error(_place(workload), str(error)) from error


def _place(workload: FlowList) -> KeyPath:
    return ("workload", "flows" if workload.file is None else "file")


@dataclass(frozen=True, slots=True)
class _Maker:
    """Turns the steps of a file into those of an orchestrator."""

    scenario: Scenario
    workload: Collectives
    cluster: Cluster
    seed: int
    buckets: int | None

    def all_steps(self) -> tuple[steps.Step, ...]:
        return tuple(
            self._computation(step)
            if isinstance(step, ComputeStep)
            else self._collective(step, ("workload", "steps", place))
            for place, step in enumerate(self.workload.steps)
        )

    def _computation(self, step: ComputeStep) -> steps.ComputationStep:
        return steps.ComputationStep(
            name=step.name,
            phase=step.phase,
            at=step.at or 0.0,
            after=step.after,
            repeat=step.repeat,
            seconds=step.compute,
        )

    def _collective(self, step: CollectiveStep, key: KeyPath) -> steps.CollectiveStep:
        ranks = self._ranks(step, key)
        order = orders.rank_order(len(ranks), step.order, self.seed)
        group = tuple(ranks[index] for index in order)
        messages = self._messages(step)
        return steps.CollectiveStep(
            name=step.name,
            phase=step.phase,
            at=step.at or 0.0,
            after=step.after,
            repeat=step.repeat,
            kind=step.collective,
            group=group,
            sizes=tuple(message.bytes for message in messages),
            merged=tuple(message.merged for message in messages),
            algorithm=step.algorithm,
            root=group.index(ranks[0] if step.root is None else step.root),
            chunks=step.chunks or 1,
            pods=step.pods or (),
        )

    def _ranks(self, step: CollectiveStep, key: KeyPath) -> tuple[int, ...]:
        """Who takes part. Raises InputError for a rank that the cluster does not have."""
        count = self.cluster.ranks
        ranks = tuple(range(count)) if step.ranks == "all" else step.ranks
        if len(ranks) < 2:
            raise self.scenario.error((*key, "ranks"), f"a group needs at least 2 ranks, and the fabric has {count}")
        if max(ranks) >= count:
            problem = f"there is no rank {max(ranks)}: the fabric has ranks 0 to {count - 1}"
            raise self.scenario.error((*key, "ranks"), problem)
        if step.root is not None and step.root not in ranks:
            problem = f"there is no rank {step.root}: the fabric has ranks 0 to {count - 1}"
            raise self.scenario.error((*key, "root"), problem)
        return ranks

    def _messages(self, step: CollectiveStep) -> tuple[Bucket, ...]:
        """Sizes in order, each with the number of the workload's own messages that it stands for."""
        if step.sweep is not None:
            return tuple(Bucket(size, 1) for size in step.sweep.sizes)
        if isinstance(step.size, tuple):
            return tuple(Bucket(size, 1) for size in step.size)
        if step.size == "layer-gradients":
            gradients = models.layer_gradients(self._model(), self.workload.dtype)
            most = min(count for count in (step.buckets, self.buckets, len(gradients)) if count is not None)
            return sizes.merge_buckets(gradients, most)
        return (Bucket(models.weights_bytes(self._model(), self.workload.dtype), 1),)

    def _model(self) -> Model:
        if self.workload.model is None:
            raise AssertionError("the schema asks for a model wherever a size is named after one")
        return models.find(self.workload.model)
