"""From a scenario to what it describes: wired fabrics with their circuits, and the workload that runs on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from controllers import circuits
from controllers.dark import DROP, Dark
from controllers.epochs import CircuitError, Epoch, EpochChange, Matching, Matchings, OcsCircuit, lit_by
from controllers.policies.one_shot import one_shot
from controllers.policies.protocol import CircuitPolicy
from controllers.policies.scheduled import Rotation, Scheduled
from controllers.policies.static import Static
from controllers.policies.templates import Templates
from emu import plugins
from emu.errors import KeyPath
from emu.model.conditions import Conditions
from emu.scenario import capture_spec, circuits_spec
from emu.scenario.dark_spec import dark_of, dark_problem
from emu.scenario.fabric_spec import FabricSpec
from emu.scenario.fields import nearest
from emu.scenario.job_demand import job_demand
from emu.scenario.options import values_of
from emu.scenario.schema import Scenario
from emu.scenario.traffic import build_orchestrator, steps_of
from emu.scenario.workload_spec import Collectives, CollectiveStep, OwnWorkload
from topologies import registry
from topologies.fabric import Fabric, FabricError
from workloads.cluster import Cluster, HostSpec


@dataclass(frozen=True, slots=True)
class BuiltFabric:
    """A fabric of a scenario, wired.

    epoch: epoch 0, lit before time zero (no matchings without an OCS).
    schedule: the changes after it that have instants, in order; their epochs count from 1. A rotation has none here.
    reconfiguration: dark time of a change, in modelled seconds; 0 without an OCS.
    policy: what decides the circuits after epoch 0.
    dark: what becomes of traffic while its circuits are dark.
    """

    fabric: Fabric
    epoch: Epoch
    schedule: tuple[EpochChange, ...]
    reconfiguration: float
    policy: CircuitPolicy = field(default_factory=Static)
    dark: Dark = DROP

    def epochs(self, changes: Iterable[EpochChange] = ()) -> tuple[Epoch, ...]:
        """Epoch 0 and every other set of circuits that may come, each once.

        changes: those of a rehearsal, for policies that decide by what happens: circuits that they led to come first.
        The numbers are those under which the circuits are met first, here; a run may count otherwise.
        """
        sets: dict[frozenset[OcsCircuit], Matchings] = {self.epoch.lit: self.epoch.matchings}
        for matchings in (*(change.epoch.matchings for change in changes), *self.policy.known()):
            sets.setdefault(lit_by(matchings), matchings)
        others = (Epoch(number, matchings) for number, matchings in enumerate(sets.values()) if number)
        return (self.epoch, *others)

    def conditions(self, seed: int, efficiency: float, lead: float = 0.0, ahead: float = 0.0) -> Conditions:
        """What the model needs to know beside the workload; see `emu.model.conditions.Conditions`."""
        return Conditions(
            initial=self.epoch,
            seed=seed,
            efficiency=efficiency,
            policy=self.policy,
            reconfiguration=self.reconfiguration,
            lead=lead,
            dark=self.dark,
            ahead=ahead,
        )


def build_fabrics(scenario: Scenario) -> tuple[BuiltFabric, ...]:
    """Every fabric of a scenario, in its order.

    Raises InputError, with the line, for parameters that a builder refuses, circuits that an OCS cannot hold, a
    workload that one of the fabrics has too few ranks for, and links to capture that there are not.
    """
    fabrics = tuple(_build(scenario, place) for place in range(len(scenario.fabrics)))
    _check_workload(scenario, [cluster_of(built.fabric) for built in fabrics])
    _check_capture(scenario, [built.fabric for built in fabrics])
    return fabrics


def _check_capture(scenario: Scenario, fabrics: Sequence[Fabric]) -> None:
    """Refuse links that no fabric has, and more than a lab should capture."""
    if scenario.capture is None:
        return
    for place in range(len(scenario.capture.links)):
        if wrong := capture_spec.problem(scenario.capture, place, fabrics):
            raise scenario.error(("capture", "links", place), wrong[0], hint=wrong[1])
    for fabric in fabrics:
        if excess := capture_spec.excess(scenario.capture, fabric, scenario.repeat):
            key, what, hint = excess
            raise scenario.error(("capture", key), what, hint=hint)


def cluster_of(fabric: Fabric) -> Cluster:
    """The fabric's hosts as a workload sees them."""
    return Cluster(tuple(HostSpec(host.name, len(fabric.nics(host.name)), host.gpus) for host in fabric.hosts))


def _check_workload(scenario: Scenario, clusters: Sequence[Cluster]) -> None:
    """The workload must fit every fabric and, since they are compared, be the same on each."""
    for cluster in dict.fromkeys(clusters):
        build_orchestrator(scenario, cluster, seed=scenario.seed)
    counts = [cluster.ranks for cluster in clusters]
    if len(set(counts)) == 1:
        return
    each = ", ".join(f"{spec.name} {count}" for spec, count in zip(scenario.fabrics, counts, strict=True))
    if isinstance(scenario.workload, OwnWorkload):
        problem = f"has other ranks on each fabric ({each}), so that they cannot be compared"
        raise scenario.error(("workload",), problem, hint="give the fabrics equally many GPUs")
    if not isinstance(scenario.workload, Collectives):
        return
    for place, step in enumerate(scenario.workload.steps):
        if isinstance(step, CollectiveStep) and step.ranks == "all":
            hint = f"name them, e.g. ranks: 0-{min(counts) - 1}"
            raise scenario.error(
                ("workload", "steps", place, "ranks"), f"means other ranks on each fabric ({each})", hint=hint
            )


def _build(scenario: Scenario, place: int) -> BuiltFabric:
    spec, key = scenario.fabrics[place], ("fabrics", place)
    fabric = _wire(scenario, spec, key)
    _check_optics(scenario, spec, fabric, key)
    if isinstance(spec.policy, circuits_spec.OneShotPolicy):
        laid = one_shot(fabric, job_demand(scenario, fabric, cluster_of(fabric)), spec.policy.rings)
        return BuiltFabric(fabric, Epoch(0, laid), (), spec.reconfiguration or 0.0, Static("one-shot"))
    epoch = _epoch(scenario, fabric, 0, spec.circuits, (*key, "circuits"))
    schedule = _schedule(scenario, fabric, spec, key)
    policy = _policy(scenario, fabric, spec, schedule, key)
    dark = dark_of(spec.dark, spec.reconfiguration or 0.0)
    return BuiltFabric(fabric, epoch, schedule, spec.reconfiguration or 0.0, policy, dark)


def _schedule(scenario: Scenario, fabric: Fabric, spec: FabricSpec, key: KeyPath) -> tuple[EpochChange, ...]:
    """The changes that have instants."""
    if isinstance(spec.schedule, circuits_spec.Rotation):
        return ()
    return tuple(
        EpochChange(
            change.at,
            _epoch(scenario, fabric, number, change.circuits, (*key, "schedule", number - 1, "circuits")),
            spec.reconfiguration or 0.0,
        )
        for number, change in enumerate(spec.schedule, start=1)
    )


def _policy(
    scenario: Scenario, fabric: Fabric, spec: FabricSpec, schedule: tuple[EpochChange, ...], key: KeyPath
) -> CircuitPolicy:
    if isinstance(own := spec.policy, circuits_spec.OwnPolicy):
        return plugins.OwnPolicy(own.kind, fabric, values_of(own, circuits_spec.OwnPolicy))
    if isinstance(spec.policy, circuits_spec.TemplatesPolicy):
        return _templates(scenario, fabric, spec.policy, (*key, "policy", "phases"))
    if isinstance(rotation := spec.schedule, circuits_spec.Rotation):
        turns = (
            _epoch(scenario, fabric, turn, written, (*key, "schedule", "matchings", turn)).matchings
            for turn, written in enumerate(rotation.matchings)
        )
        return Rotation(rotation.period, rotation.start, tuple(turns))
    return Scheduled(schedule) if schedule else Static()


def _templates(scenario: Scenario, fabric: Fabric, spec: circuits_spec.TemplatesPolicy, key: KeyPath) -> CircuitPolicy:
    # A flow list has no steps, and then any phase may be named.
    known = tuple(dict.fromkeys(step.phase_name for step in steps_of(scenario, cluster_of(fabric), seed=scenario.seed)))
    for name in spec.phases:
        if known and not any(phase == name or phase.startswith(f"{name}.") for phase in known):
            raise scenario.error((*key, name), f"the workload has no phase {name!r}", hint=nearest(name, known))
    phases = {
        name: template if isinstance(template, str) else _epoch(scenario, fabric, 0, template, (*key, name)).matchings
        for name, template in spec.phases.items()
    }
    return Templates(fabric, phases, spec.margin)


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
        if (problem := dark_problem(fabric, spec.dark)) is not None:
            where, what, hint = problem
            raise scenario.error((*key, *where), what, hint=hint)
        return
    for name in ("reconfiguration", "circuits", "schedule", "policy", "dark"):
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
