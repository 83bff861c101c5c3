"""Policies and workloads of a user's own: found by name, told what the scenario says, and refused with a reason."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.policies.protocol import Keep, Phase, Plan, Tick, View
from emu import plugins
from emu.catalogue import catalogue
from emu.errors import EmuError, InputError
from emu.plugins import OwnPolicy, PluginError
from emu.scenario import Scenario, load_text
from emu.scenario.build import build_fabrics, cluster_of
from emu.scenario.traffic import build_orchestrator, steps_of

_PLUGIN = """
from controllers.circuits import epoch
from controllers.policies.protocol import Keep, Phase, Plan
from emu.plugins import policy, workload
from topologies.parameters import Size
from workloads.steps import CollectiveStep

@policy("test-busiest")
def busiest(fabric, event, view, now, *, least: Size = 0):
    '''One circuit, for the busiest pair.'''
    demand = {pair: size for pair, size in view.site_demand.items() if size >= least}
    if not isinstance(event, Phase) or not demand:
        return Keep("nothing")
    return Plan(epoch(fabric, 0, {"o0": ["-".join(max(demand, key=demand.get))]}).matchings)

@workload("test-mixture")
def mixture(cluster, seed, *, layers: int = 2, tokens: Size = 1000):
    '''All-to-all, layer after layer.'''
    for layer in range(layers):
        yield CollectiveStep(name=f"l{layer}", kind="all-to-all", group=tuple(range(cluster.ranks)), sizes=(tokens,))
"""
_SCENARIO = """
fabrics:
  - kind: hybrid
    pods: 3
    hosts_per_pod: 1
    uplinks: 1
    reconfiguration: 10ms
    policy: {policy}
workload: {workload}
"""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What a test registers is gone after it: another may register the same name from another file."""
    before = {kind: dict(functions) for kind, functions in plugins._known.items()}
    yield
    plugins._known.update(before)


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """The user's file."""
    path = tmp_path / "mine.py"
    path.write_text(_PLUGIN)
    return path


def scenario(
    plugin: Path, policy: str = "{kind: test-busiest, least: 5kB}", workload: str = "{kind: test-mixture, layers: 3}"
) -> Scenario:
    return load_text(_SCENARIO.replace("{policy}", policy).replace("{workload}", workload), plugins=[plugin])


def test_a_policy_gets_the_fabric_its_question_and_what_the_scenario_says(plugin: Path) -> None:
    (built,) = build_fabrics(scenario(plugin))
    assert built.policy.name == "test-busiest"
    view = View(built.epoch, site_demand={("t0", "t2"): 7000, ("t0", "t1"): 6000})
    plan = built.policy.on(Phase("sync"), view, 0.0)
    assert isinstance(plan, Plan)
    assert sorted(plan.matchings["o0"]) == [(1, 3), (3, 1)]
    assert built.policy.on(Tick(), view, 0.0) == Keep("nothing")
    small = View(built.epoch, site_demand={("t0", "t2"): 4999})
    assert isinstance(built.policy.on(Phase("sync"), small, 0.0), Keep)


def test_a_policy_may_be_just_its_name(plugin: Path) -> None:
    (built,) = build_fabrics(scenario(plugin, policy="test-busiest"))
    assert isinstance(built.policy, OwnPolicy)
    assert built.policy.values == {"least": 0}


def test_a_workload_gives_steps(plugin: Path) -> None:
    loaded = scenario(plugin)
    (built,) = build_fabrics(loaded)
    cluster = cluster_of(built.fabric)
    assert [step.name for step in steps_of(loaded, cluster, seed=1)] == ["l0", "l1", "l2"]
    assert build_orchestrator(loaded, cluster, seed=1) is not build_orchestrator(loaded, cluster, seed=1)


def test_a_scenario_survives_its_json(plugin: Path) -> None:
    loaded = scenario(plugin)
    assert Scenario.from_json(loaded.to_json()) == loaded


def test_they_are_listed(plugin: Path) -> None:
    scenario(plugin)
    assert {"One circuit, for the busiest pair."} == {i.text for i in catalogue("policies") if i.name == "test-busiest"}
    (item,) = [item for item in catalogue("workloads") if item.name == "test-mixture"]
    assert item.details == {"layers": 2, "tokens": "1kB"}


@pytest.mark.parametrize(
    ("policy", "workload", "words"),
    [
        ("test-busyest", "test-mixture", "did you mean 'test-busiest'"),
        ("{kind: test-busiest, most: 1kB}", "test-mixture", "policy.most: there is no such key"),
        ("{kind: test-busiest, least: 5}", "test-mixture", "policy.least"),
        ("static", "{kind: test-mixture, layers: many}", "workload.layers: must be a whole number"),
        ("static", "{kind: test-mixtur}", "did you mean 'test-mixture'"),
        ("static", "{kind: test-mixture, layers: 0}", "test-mixture gives no steps"),
    ],
)
def test_a_mistake_in_a_scenario_is_named(plugin: Path, policy: str, workload: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        build_fabrics(scenario(plugin, policy, workload if "{" in workload else f"{{kind: {workload}}}"))
    assert words in str(caught.value)


def test_fabrics_with_other_ranks_are_not_compared(plugin: Path) -> None:
    text = "fabrics: [{kind: leaf-spine, hosts_per_leaf: 2}, {kind: fat-tree, k: 4}]\nworkload: {kind: test-mixture}\n"
    with pytest.raises(InputError, match="workload: has other ranks on each fabric"):
        build_fabrics(load_text(text, plugins=[plugin]))


_HEAD = "from emu.plugins import policy, workload\n"
_BROKEN = {
    "@policy('x')\ndef f(event, view, now):\n  'Text.'\n": "must take fabric, event, view, now",
    "@policy('x')\ndef f(fabric, event, view, now): pass\n": "needs a docstring",
    "@policy('x')\ndef f(fabric, event, view, now, *, least=1):\n  'Text.'\n": "option least needs a type",
    "@workload('x')\ndef f(cluster, seed, *, n: int):\n  'Text.'\n": "option n needs a type annotation and a default",
    "@policy('templates')\ndef f(fabric, event, view, now):\n  'Text.'\n": "emu has a policy of that name itself",
    "@workload('flow-list')\ndef f(cluster, seed):\n  'Text.'\n": "emu has a workload of that name itself",
    "policy('x')(3)\n": "3 is no function",
    "@workload('x')\ndef f(c, s):\n  'Text.'\n@workload('x')\ndef g(c, s):\n  'Text.'\n": "has that name already",
}


@pytest.mark.parametrize("text", _BROKEN)
def test_a_function_of_another_form_is_refused_with_its_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(_HEAD + text)
    with pytest.raises(InputError, match=r"broken\.py") as caught:
        load_text("{}", plugins=[path])
    assert _BROKEN[text] in str(caught.value)
    assert "x" not in {item.name for item in catalogue("policies")}


_FAILING = {
    "raise ValueError('no way')": "failing.py:5: ValueError: no way",
    "return None": "it answered None, which is neither",
    "return 5": "it answered 5, which is neither a Plan nor Keep",
}


@pytest.mark.parametrize("body", _FAILING)
def test_a_policy_that_fails_is_named(tmp_path: Path, body: str) -> None:
    path = tmp_path / "failing.py"
    path.write_text(f"{_HEAD}@policy('test-failing')\ndef f(fabric, event, view, now):\n  'Text.'\n  {body}\n")
    text = textwrap.dedent(_SCENARIO).replace("{policy}", "test-failing")
    step = "{kind: collectives, steps: [{name: a, collective: all-reduce, size: 1MB}]}"
    (built,) = build_fabrics(load_text(text.replace("{workload}", step), plugins=[path]))
    with pytest.raises(PluginError) as caught:
        built.policy.on(Tick(), View(built.epoch), 0.0)
    assert _FAILING[body] in str(caught.value)


@pytest.mark.parametrize("body", ["raise OSError('gone')", "yield 3", "yield from [1 / 0]", "return None"])
def test_a_workload_that_fails_is_named(tmp_path: Path, body: str) -> None:
    path = tmp_path / "failing.py"
    path.write_text(f"{_HEAD}@workload('test-failing')\ndef f(cluster, seed):\n  'Text.'\n  {body}\n")
    text = "fabrics: [{kind: fat-tree, k: 4}]\nworkload: {kind: test-failing}\n"
    with pytest.raises(EmuError, match="workload test-failing: "):
        build_fabrics(load_text(text, plugins=[path]))
