"""What a workload asks of a fabric, read off the ideal run: dependent steps, ideal times, message sizes, busy time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controllers.epochs import CircuitError, EpochChange
from emu.model.engine import Outcome, simulate
from emu.records import CollectiveRecord, FlowRecord, Trace
from emu.scenario.build import BuiltFabric, cluster_of
from emu.scenario.rl_spec import RlWorkload
from emu.scenario.schema import Scenario
from emu.scenario.traffic import build_orchestrator, collectives_of
from emu.scenario.workload_spec import Collectives, FlowList, OwnWorkload
from emu.scenario.workload_spec import CollectiveStep as StepSpec
from emu.wire import payload_efficiency
from workloads import models
from workloads.cluster import Cluster
from workloads.collectives import critical_steps
from workloads.protocol import Collective
from workloads.rl_iteration.training import GRADIENTS

Floats = NDArray[np.float64]
MOST_MESSAGES = 500_000
"""That the collectives of a workload may make, about: the model takes minutes for so many, and a lab hours."""


@dataclass(frozen=True, slots=True)
class Round:
    """One collective: its dependent steps, its ideal modelled seconds and its bytes."""

    id: str
    steps: int
    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Item:
    """The collectives of one label on one fabric (those of a step, mostly), or a whole flow list.

    rounds: its collectives, of layer gradients those that are left after the furthest merging.
    messages: bytes of each message that crosses the fabric.
    buckets: into how many collectives a round of layer gradients may be cut, and at least is; None: nothing to merge.
    coalesced: its collectives stand for many small messages each, which the workload lets be merged.
    """

    name: str
    phase: str
    rounds: tuple[Round, ...]
    messages: Floats
    buckets: tuple[int, int] | None = None
    coalesced: bool = False

    @property
    def seconds(self) -> float:
        """Ideal modelled seconds of all rounds."""
        return sum(part.seconds for part in self.rounds)

    def steps(self, buckets: int | None) -> float:
        """Dependent steps of all rounds if layer gradients are merged into at most `buckets` collectives."""
        steps = sum(part.steps for part in self.rounds)
        if self.buckets is None:
            return steps
        most, least = self.buckets
        return steps / least * (most if buckets is None else min(most, buckets))


@dataclass(frozen=True, slots=True)
class Work:
    """A workload on one fabric.

    flows: the messages in flight, as (bytes, start, end) in modelled seconds.
    changes: the changes of circuits that begin before the workload is over.
    """

    built: BuiltFabric
    items: tuple[Item, ...]
    flows: tuple[Floats, Floats, Floats]
    end: float
    changes: tuple[EpochChange, ...] = ()

    @property
    def name(self) -> str:
        """The fabric's."""
        return self.built.fabric.name

    def busy(self, smallest: float) -> float:
        """Modelled seconds in which messages of at least `smallest` bytes are in flight or circuits change.

        Only these take wall time; everything between is jumped over.
        """
        sizes, starts, ends = self.flows
        sent = sizes >= smallest
        began = np.concatenate([starts[sent], [change.at for change in self.changes]])
        over = np.concatenate([ends[sent], [change.at + change.reconfiguration for change in self.changes]])
        order = np.argsort(began, kind="stable")
        began, over = began[order], np.maximum.accumulate(over[order])
        covered = np.concatenate([[0.0], over[:-1]])[: len(over)]  # what earlier intervals have taken already
        return float(np.maximum(0.0, over - np.maximum(began, covered)).sum())


def bucket_floor(scenario: Scenario, fewest: int) -> int:
    """How far layer gradients may be merged: to `fewest`, or to what a step of the scenario asks for itself."""
    workload = scenario.workload
    if isinstance(workload, FlowList | OwnWorkload):
        return fewest
    if isinstance(workload, RlWorkload):
        return max(fewest, workload.buckets or 0)
    own = [step.buckets for step in workload.steps if isinstance(step, StepSpec) and step.buckets is not None]
    return max([fewest, *own])


def work_of(scenario: Scenario, built: BuiltFabric, seed: int, buckets: int) -> Work:
    """Run the workload through the model, layer gradients merged into `buckets`, and read off what it asks for.

    Raises InputError where the cluster or the circuits cannot carry it out.
    """
    cluster = cluster_of(built.fabric)
    _check_amount(scenario, cluster, seed, buckets)
    outcome = _ideal_run(scenario, built, cluster, seed, buckets)
    trace = outcome.trace
    flows = [row for row in trace.flows if row.how == "packets"]
    columns = (_column([row.bytes for row in flows]), _column([row.start for row in flows]))
    ends = _column([row.end for row in flows])
    items = _items(scenario, cluster, seed, buckets, trace, flows)
    return Work(built, items, (*columns, ends), trace.end, outcome.changes)


def _check_amount(scenario: Scenario, cluster: Cluster, seed: int, buckets: int) -> None:
    """Refuse what would fill the memory: every message of a collective is an object of its own."""
    messages = 0
    for collective in collectives_of(scenario, cluster, seed=seed, buckets=buckets):
        messages += critical_steps(collective) * len(collective.group)
        if messages > MOST_MESSAGES:
            raise scenario.error(
                ("workload",),
                f"its collectives make more than {MOST_MESSAGES} messages",
                hint="use fewer ranks, chunks, rounds or sizes",
            )


def _ideal_run(scenario: Scenario, built: BuiltFabric, cluster: Cluster, seed: int, buckets: int) -> Outcome:
    place = next(i for i, spec in enumerate(scenario.fabrics) if spec.name == built.fabric.name)
    efficiency = payload_efficiency(scenario.emulation.mtu)
    conditions = built.conditions(scenario.seed, efficiency)
    orchestrator = build_orchestrator(scenario, cluster, seed=seed, buckets=buckets)
    try:
        outcome = simulate(built.fabric, orchestrator, cluster, conditions)
    except CircuitError as error:
        raise scenario.error(("fabrics", place), str(error)) from error
    for failure in outcome.trace.failures:
        raise scenario.error(
            ("fabrics", place),
            f"{failure.task} can never end: {failure.reason}",
            hint="lay circuits for it, or let it wait for a change that does",
        )
    return outcome


def _items(
    scenario: Scenario, cluster: Cluster, seed: int, buckets: int, trace: Trace, flows: Sequence[FlowRecord]
) -> tuple[Item, ...]:
    if isinstance(scenario.workload, FlowList):
        return _flow_item(flows)
    rows = {row.id: row for row in trace.collectives}
    messages: dict[str, list[int]] = {}
    for row in flows:
        messages.setdefault(row.collective, []).append(row.bytes)
    merging = _mergeable(scenario.workload, buckets)
    labelled: dict[str, list[Collective]] = {}
    for collective in collectives_of(scenario, cluster, seed=seed, buckets=buckets):
        labelled.setdefault(collective.label, []).append(collective)
    items = (_item(label, ones, rows, messages, merging.get(label)) for label, ones in labelled.items())
    single = [row for row in flows if not row.collective]  # a workload of the user's own may have such beside them
    return (*(item for item in items if len(item.messages)), *(_flow_item(single) if single else ()))


def _item(
    label: str,
    collectives: Sequence[Collective],
    rows: Mapping[str, CollectiveRecord],
    messages: Mapping[str, Sequence[int]],
    buckets: tuple[int, int] | None,
) -> Item:
    rounds = tuple(Round(one.id, critical_steps(one), rows[one.id].cct, one.bytes) for one in collectives)
    sizes = [size for one in collectives for size in messages.get(one.id, ())]
    coalesced = buckets is None and any(one.merged > 1 for one in collectives)
    return Item(label, collectives[0].phase, rounds, _column(sizes), buckets, coalesced)


def _mergeable(workload: Collectives | RlWorkload | OwnWorkload, buckets: int) -> dict[str, tuple[int, int]]:
    """By label of layer gradients, how many collectives there are unmerged and at the furthest merging."""
    if isinstance(workload, RlWorkload):
        return {GRADIENTS: _merging(workload.model, workload.dtype, workload.buckets, buckets)}
    if isinstance(workload, OwnWorkload):
        return {}
    return {
        step.name: _merging(workload.model, workload.dtype, step.buckets, buckets)
        for step in workload.steps
        if isinstance(step, StepSpec) and step.size == "layer-gradients" and workload.model
    }


def _merging(model: str, dtype: str, own: int | None, buckets: int) -> tuple[int, int]:
    count = len(models.layer_gradients(models.find(model), dtype))
    most = min(count, own or count)
    return most, min(most, buckets)


def _flow_item(flows: Sequence[FlowRecord]) -> tuple[Item, ...]:
    """A flow list as one item of one step: half of its bytes move in flows that take at least so long."""
    if not flows:
        return ()
    ordered = sorted(flows, key=lambda row: row.bytes)
    moved = np.cumsum([row.bytes for row in ordered])
    median = ordered[int(np.searchsorted(moved, moved[-1] / 2))]
    messages = _column([row.bytes for row in ordered])
    return (Item("flows", median.phase, (Round(median.id, 1, median.fct, median.bytes),), messages),)


def _column(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)
