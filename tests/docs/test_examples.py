"""The examples of README and docs: scenarios can be run, plug-ins work in them and are short, tests pass in a lab."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from emu import api
from emu.model.predicting import predict_scenario
from tests.docs.reading import DOCS, ROOT, Block, block, blocks

SCENARIOS = blocks("yaml")
PLUGINS = [one for one in blocks("python") if not one.name.startswith("test_")]
LONGEST = 15
"""Non-blank lines that a fabric, policy or workload of the user's own must stay under."""


def written(one: Block, folder: Path) -> Path:
    path = folder / one.name
    path.write_text(one.text)
    return path


def predicted(checked: api.Checked) -> list[str]:
    """The phases and collectives that the model brings to an end, by fabric."""
    outcome = predict_scenario(checked.scenario, out=None, write=False)
    return [fabric.name for fabric in outcome.scenario.fabrics]


def test_block_names_are_unique() -> None:
    names = [one.name for one in (*SCENARIOS, *blocks("python"))]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("folder", ["fabrics", "policies", "workloads"])
def test_every_page_has_a_scenario_that_uses_what_it_is_about(folder: str) -> None:
    for page in (DOCS / folder).glob("*.md"):
        if page.name != "README.md":
            text = "".join(one.text for one in SCENARIOS if one.page == page)
            assert page.stem in text or (page.stem == "scheduled" and "schedule:" in text), page


@pytest.mark.parametrize("one", SCENARIOS, ids=lambda one: one.name)
def test_scenarios_can_be_run_and_are_predicted(one: Block, tmp_path: Path) -> None:
    checked = api.check(written(one, tmp_path))
    assert 0 < checked.wall_s <= checked.scenario.emulation.budget
    assert predicted(checked) == [fabric.name for fabric in checked.scenario.fabrics]


@pytest.mark.parametrize("one", PLUGINS, ids=lambda one: one.name)
def test_plugins_are_one_short_function(one: Block) -> None:
    (function,) = (node for node in ast.parse(one.text).body if isinstance(node, ast.FunctionDef))
    assert len(function.decorator_list) == 1
    first = function.decorator_list[0].lineno
    lines = one.text.splitlines()[first - 1 : function.end_lineno]
    assert len([line for line in lines if line.strip()]) < LONGEST


def test_a_fabric_and_a_workload_of_ones_own_work_together(tmp_path: Path) -> None:
    plugins = [written(block(name), tmp_path) for name in ("ringlet.py", "experts.py")]
    scenario = {"fabrics": [{"kind": "ringlet", "tors": 6}], "workload": {"kind": "experts", "layers": 1}}
    checked = api.check(scenario, plugins=plugins)
    assert len(checked.fabrics[0].fabric.hosts) == 6
    assert predicted(checked) == ["ringlet"]


def test_a_policy_of_ones_own_decides_circuits(tmp_path: Path) -> None:
    scenario: dict[str, Any] = YAML(typ="safe").load(block("first.yaml").text)
    (optical,) = (fabric for fabric in scenario["fabrics"] if "policy" in fabric)
    optical["policy"] = {"kind": "busiest-pair", "least": "1GB"}
    checked = api.check(scenario, plugins=[written(block("busiest.py"), tmp_path)])
    outcome = predict_scenario(checked.scenario, out=None, write=False)
    assert outcome.verdict in ("VALID", "DEGRADED", "INVALID")
    assert "busiest-pair" in repr(checked.fabrics[1].policy)


@pytest.mark.lab
@pytest.mark.parametrize(
    "one", [one for one in blocks("python") if one.name.startswith("test_")], ids=lambda one: one.name
)
def test_tests_pass(one: Block, tmp_path: Path) -> None:
    file = written(one, tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "emu.pytest_plugin", "-p", "no:cacheprovider", str(file)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
