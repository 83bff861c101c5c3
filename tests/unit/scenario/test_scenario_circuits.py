"""`schedule:` and `policy:` of a fabric with an OCS: what they become, and what is refused at which line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from controllers.epochs import EpochChange, duplex
from controllers.policies.scheduled import Rotation, Scheduled
from controllers.policies.static import Static
from controllers.policies.templates import Templates
from emu.errors import InputError
from emu.scenario import BuiltFabric, Scenario, build_fabrics, load

PLAIN = """\
fabrics:
  - kind: hybrid
    reconfiguration: 10ms
    circuits: {o0: [t0-t1, t2-t3]}
    REST
workload:
  kind: collectives
  steps:
    - {name: gradients, phase: training, collective: all-reduce, size: 1GiB}
    - {name: decode, phase: generation.tp2, collective: all-gather, size: 1MiB}
    - {name: weights, collective: broadcast, size: 1GiB}
"""
Write = Callable[[str], Path]
Built = Callable[[str], BuiltFabric]
AROUND = "schedule: {period: 100ms, start: 1s, matchings: [{o0: [t0-t2]}, {o0: [t0-t3, t1-t2]}]}"
TEMPLATES = "policy: {kind: templates, margin: 2ms, phases: {training: mesh, weights: {o0: [t0-t3]}}}"


@pytest.fixture
def scenario(write: Write) -> Callable[[str], Scenario]:
    """The scenario with something more in its fabric."""
    return lambda rest: load(write(PLAIN.replace("REST", rest)))


@pytest.fixture
def built(scenario: Callable[[str], Scenario]) -> Built:
    """Its fabric, built."""
    return lambda rest: build_fabrics(scenario(rest))[0]


def test_without_a_schedule_circuits_are_static(built: Built) -> None:
    fabric = built("")
    assert fabric.policy == Static()
    assert fabric.epochs() == (fabric.epoch,)
    assert built("policy: static").policy == Static()


@pytest.mark.parametrize("policy", ["", "\n    policy: scheduled", "\n    policy: {kind: scheduled}"])
def test_with_a_schedule_circuits_follow_it(built: Built, policy: str) -> None:
    fabric = built("schedule: [{at: 1s, circuits: {o0: [t0-t2]}}, {at: 2s, circuits: {o0: [t0-t1, t2-t3]}}]" + policy)
    assert fabric.policy == Scheduled(fabric.schedule)
    assert [change.at for change in fabric.schedule] == [1.0, 2.0]
    assert [epoch.matchings for epoch in fabric.epochs()] == [  # the second change leads back to epoch 0
        {"o0": duplex([(1, 3), (5, 7)])},
        {"o0": duplex([(1, 5)])},
    ]


def test_a_period_becomes_a_rotation(built: Built) -> None:
    fabric = built(AROUND)
    assert fabric.policy == Rotation(0.1, 1.0, ({"o0": duplex([(1, 5)])}, {"o0": duplex([(1, 7), (3, 5)])}))
    assert fabric.schedule == ()
    assert [epoch.number for epoch in fabric.epochs()] == [0, 1, 2]


def test_templates_name_shapes_or_circuits(built: Built) -> None:
    fabric = built(TEMPLATES)
    policy = fabric.policy
    assert isinstance(policy, Templates)
    assert policy.margin == 0.002
    assert policy.phases == {"training": "mesh", "weights": {"o0": duplex([(1, 7)])}}
    assert fabric.reconfiguration == 0.01
    assert [epoch.matchings for epoch in fabric.epochs()][1:] == [{"o0": duplex([(1, 7)])}]


def test_the_changes_of_a_rehearsal_come_first_among_the_epochs(built: Built) -> None:
    fabric = built(TEMPLATES)
    met = EpochChange(1.0, fabric.epoch.__class__(7, {"o0": duplex([(2, 8)])}), 0.01)
    assert [epoch.matchings["o0"] for epoch in fabric.epochs([met, met])][1:] == [duplex([(2, 8)]), duplex([(1, 7)])]


def test_a_template_may_serve_every_parallelism_of_a_phase(built: Built) -> None:
    assert isinstance(built("policy: {kind: templates, phases: {generation: isolated-pods}}").policy, Templates)


def test_the_models_conditions_come_from_the_fabric(built: Built) -> None:
    fabric = built(TEMPLATES)
    conditions = fabric.conditions(seed=5, efficiency=0.5, lead=0.25)
    assert (conditions.initial, conditions.seed, conditions.efficiency) == (fabric.epoch, 5, 0.5)
    assert (conditions.deciding, conditions.reconfiguration, conditions.lead) == (fabric.policy, 0.01, 0.25)


@pytest.mark.parametrize("rest", ["", AROUND, TEMPLATES, "policy: static", "schedule: [{at: 1s, circuits: {}}]"])
def test_json_gives_the_same_scenario_back(scenario: Callable[[str], Scenario], rest: str) -> None:
    first = scenario(rest)
    again = Scenario.from_json(first.to_json())
    assert again == first
    assert again.to_json() == first.to_json()


NO_SCHEDULE = "policy: scheduled"
BOTH = "policy: static\n    schedule: [{at: 1s, circuits: {}}]"
SHORT = "schedule: {period: 10ms, matchings: [{o0: [t0-t2]}]}"


@pytest.mark.parametrize(
    ("rest", "line", "key", "problem"),
    [
        ("policy: satic", 5, "fabrics[0].policy", "there is no policy 'satic'; did you mean 'static'?"),
        ("policy: templates", 5, "fabrics[0].policy", "templates need phases; write {kind: templates, phases:"),
        ("policy: {kind: templates}", 5, "fabrics[0].policy.phases", "is required"),
        ("policy: {kind: templates, phases: {}}", 5, "fabrics[0].policy.phases", "must have at least 1 entry"),
        ("policy: {kind: static, margin: 2ms}", 5, "fabrics[0].policy", "static takes no more keys"),
        ("policy: [static]", 5, "fabrics[0].policy", "there is no policy ['static']"),
        (TEMPLATES.replace("margin", "marge"), 5, "fabrics[0].policy.marge", "did you mean 'margin'?"),
        (TEMPLATES.replace("2ms", "2"), 5, "fabrics[0].policy.margin", "2 needs a unit"),
        (TEMPLATES.replace("mesh", "mess"), 5, "fabrics[0].policy.phases.training", "did you mean 'mesh'?"),
        (TEMPLATES.replace("mesh", "3"), 5, "fabrics[0].policy.phases.training", "3 is no template; write mesh, "),
        (TEMPLATES.replace("t0-t3", "t0-t9"), 5, "fabrics[0].policy.phases.weights.o0[0]", "'t9' is not wired"),
        (TEMPLATES.replace("training", "trainig"), 5, "fabrics[0].policy.phases.trainig", "did you mean 'training'?"),
        (NO_SCHEDULE, 2, "fabrics[0].schedule", "is required where the policy is scheduled"),
        (BOTH, 6, "fabrics[0].schedule", "is not followed where the policy is static"),
        (f"{AROUND}\n    {TEMPLATES}", 5, "fabrics[0].schedule", "is not followed where the policy is templates"),
        (SHORT, 5, "fabrics[0].schedule.period", "10 ms is not longer than a reconfiguration, which takes 10 ms"),
        (AROUND.replace("start", "begin"), 5, "fabrics[0].schedule.begin", "there is no such key"),
        ("schedule: {period: 1s, matchings: []}", 5, "fabrics[0].schedule.matchings", "must have at least 1 entry"),
        (AROUND.replace("t1-t2", "t1-t1"), 5, "fabrics[0].schedule.matchings[1].o0[1]", "joins t1 to itself"),
        (AROUND.replace("o0: [t0-t2]", "o7: [t0-t2]"), 5, "fabrics[0].schedule.matchings[0].o7", "valid: o0"),
        ("schedule: soon", 5, "fabrics[0].schedule", "must be a list, not 'soon'"),
    ],
)
def test_what_is_wrong_is_named_with_line_and_key(built: Built, rest: str, line: int, key: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        built(rest)
    assert caught.value.line == line
    assert f"{key}: " in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize("rest", [AROUND, TEMPLATES])
def test_changes_need_a_reconfiguration_time(write: Write, rest: str) -> None:
    text = PLAIN.replace("    reconfiguration: 10ms\n", "").replace("REST", rest)
    with pytest.raises(InputError, match=r"fabrics\[0\].reconfiguration: is required where "):
        load(write(text))


def test_a_fabric_without_an_ocs_has_no_policy(write: Write) -> None:
    text = (
        PLAIN.replace("hybrid", "fat-tree").replace("    reconfiguration: 10ms\n", "").replace("REST", "policy: static")
    )
    text = text.replace("    circuits: {o0: [t0-t1, t2-t3]}\n", "")
    with pytest.raises(InputError, match=r"fabrics\[0\].policy: does not fit: a fat-tree fabric has no OCS"):
        build_fabrics(load(write(text)))


def test_the_phases_of_an_rl_iteration_are_known(write: Write) -> None:
    workload = "workload: {kind: rl-iteration, model: Qwen3-8B}\n"
    text = PLAIN[: PLAIN.index("workload:")].replace("REST", TEMPLATES.replace("weights", "weight-synk")) + workload
    with pytest.raises(
        InputError, match=r"phases\.weight-synk: the workload has no phase .*did you mean 'weight-sync'"
    ):
        build_fabrics(load(write(text)))
    assert isinstance(build_fabrics(load(write(text.replace("synk", "sync"))))[0].policy, Templates)
