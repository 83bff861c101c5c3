"""From a scenario to what it describes: wired fabrics with their circuits, and the workload that runs on them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controllers import circuits
from controllers.epochs import CircuitError, Epoch, EpochChange, Matching
from emu.errors import KeyPath
from emu.scenario.fabric_spec import FabricSpec
from emu.scenario.fields import nearest
from emu.scenario.schema import Scenario
from emu.scenario.traffic import build_orchestrator
from emu.scenario.workload_spec import Collectives, CollectiveStep
from topologies import registry
from topologies.fabric import Fabric, FabricError
from workloads.cluster import Cluster, HostSpec


@dataclass(frozen=True, slots=True)
class BuiltFabric:
    """A fabric of a scenario, wired.

    epoch: epoch 0, lit before time zero (no matchings without an OCS).
    schedule: the changes after it, in order; their epochs count from 1.
    reconfiguration: dark time of a change, in modelled seconds; 0 without an OCS.
    """

    fabric: Fabric
    epoch: Epoch
    schedule: tuple[EpochChange, ...]
    reconfiguration: float


def build_fabrics(scenario: Scenario) -> tuple[BuiltFabric, ...]:
    """Every fabric of a scenario, in its order.

    Raises InputError, with the line, for parameters that a builder refuses, circuits that an OCS cannot hold, and a
    workload that one of the fabrics has too few ranks for.
    """
    fabrics = tuple(_build(scenario, place) for place in range(len(scenario.fabrics)))
    _check_workload(scenario, [cluster_of(built.fabric) for built in fabrics])
    return fabrics


def cluster_of(fabric: Fabric) -> Cluster:
    """The fabric's hosts as a workload sees them."""
    return Cluster(tuple(HostSpec(host.name, len(fabric.nics(host.name)), host.gpus) for host in fabric.hosts))


def _check_workload(scenario: Scenario, clusters: Sequence[Cluster]) -> None:
    """The workload must fit every fabric and, since they are compared, be the same on each."""
    for cluster in dict.fromkeys(clusters):
        build_orchestrator(scenario, cluster, seed=scenario.seed)
    counts = [cluster.ranks for cluster in clusters]
    if len(set(counts)) == 1 or not isinstance(scenario.workload, Collectives):
        return
    for place, step in enumerate(scenario.workload.steps):
        if isinstance(step, CollectiveStep) and step.ranks == "all":
            each = ", ".join(f"{spec.name} {count}" for spec, count in zip(scenario.fabrics, counts, strict=True))
            hint = f"name them, e.g. ranks: 0-{min(counts) - 1}"
            raise scenario.error(
                ("workload", "steps", place, "ranks"), f"means other ranks on each fabric ({each})", hint=hint
            )


def _build(scenario: Scenario, place: int) -> BuiltFabric:
    spec, key = scenario.fabrics[place], ("fabrics", place)
    fabric = _wire(scenario, spec, key)
    _check_optics(scenario, spec, fabric, key)
    dark = spec.reconfiguration or 0.0
    epoch = _epoch(scenario, fabric, 0, spec.circuits, (*key, "circuits"))
    schedule = tuple(
        EpochChange(
            change.at,
            _epoch(scenario, fabric, number, change.circuits, (*key, "schedule", number - 1, "circuits")),
            dark,
        )
        for number, change in enumerate(spec.schedule, start=1)
    )
    return BuiltFabric(fabric, epoch, schedule, dark)


def _wire(scenario: Scenario, spec: FabricSpec, key: KeyPath) -> Fabric:
    try:
        fabric = registry.build(spec.kind, **spec.parameters)
    except FabricError as error:
        problem = str(error).removeprefix(f"fabric {spec.kind}: ")
        word = re.match(r"\w+", problem)
        named = (word[0],) if word and word[0] in spec.parameters else ()
        # The key stands before the message already.
        raise scenario.error(
            (*key, *named), problem.removeprefix(f"{word[0]} ") if word and named else problem
        ) from error
    fabric.name = spec.name
    return fabric


def _check_optics(scenario: Scenario, spec: FabricSpec, fabric: Fabric, key: KeyPath) -> None:
    """A fabric with an OCS needs a reconfiguration time; one without must not seem to have circuits."""
    if fabric.ocses:
        if spec.reconfiguration is None:
            names = ", ".join(node.name for node in fabric.ocses)
            hint = "write the dark time of a change, e.g. 10ms"
            raise scenario.error((*key, "reconfiguration"), f"is required: the fabric has the OCS {names}", hint=hint)
        return
    for name in ("reconfiguration", "circuits", "schedule"):
        if getattr(spec, name):
            raise scenario.error((*key, name), f"does not fit: a {spec.kind} fabric has no OCS")


def _epoch(
    scenario: Scenario, fabric: Fabric, number: int, written: Mapping[str, Sequence[str]], key: KeyPath
) -> Epoch:
    valid = [node.name for node in fabric.ocses]
    for ocs in written:
        if ocs not in valid:
            raise scenario.error((*key, ocs), f"the fabric has no OCS {ocs!r}", hint=nearest(ocs, valid))
    matchings = {ocs: _matching(scenario, fabric, ocs, pairs, (*key, ocs)) for ocs, pairs in written.items()}
    return Epoch(number, matchings)


def _matching(scenario: Scenario, fabric: Fabric, ocs: str, pairs: Sequence[str], key: KeyPath) -> Matching:
    try:
        return circuits.resolve(fabric, ocs, pairs)
    except CircuitError as error:
        problem, _, hint = str(error).removeprefix(f"{ocs}: ").partition("; ")
        raise scenario.error((*key, *_culprit(fabric, ocs, pairs)), problem, hint=hint) from error


def _culprit(fabric: Fabric, ocs: str, pairs: Sequence[str]) -> tuple[int, ...]:
    """The position of the pair with which the list stops being valid."""
    for count in range(1, len(pairs) + 1):
        try:
            circuits.resolve(fabric, ocs, pairs[:count])
        except CircuitError:
            return (count - 1,)
    return ()
