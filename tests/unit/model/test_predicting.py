"""`emu predict` and the engine `model`: a scenario without a lab, in the tables and the directory of a run."""

import json
from pathlib import Path

import pytest

from emu.cli.app import run_command
from emu.model.predicting import predict_scenario
from emu.results import read_run
from emu.scenario.load import load_text

SCENARIO = """
name: small
fabrics:
  - {name: tree, kind: fat-tree, k: 4, rate: 400Gbps}
  - {name: circuits, kind: hybrid, rate: 400Gbps, electrical_rate: 100Gbps, reconfiguration: 10ms,
     circuits: {o0: [t0-t1, t2-t3]}, schedule: [{at: 100ms, circuits: {o0: [t0-t2, t1-t3]}}]}
workload:
  kind: collectives
  steps:
    - {name: ring, collective: all-reduce, size: 16GB}
    - {name: think, compute: 500ms}
    - {name: spread, collective: all-to-all, algorithm: direct, size: 1.6GB}
"""
EFFICIENCY = 8948 / 9038
"""Payload by wire time at an MTU of 9000."""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return path


def test_times_are_those_of_the_real_system() -> None:
    outcome = predict_scenario(load_text(SCENARIO), write=False)
    tree, circuits = (fabric.prediction for fabric in outcome.fabrics)
    ring = 2 * 15 / 16 * 16e9 * 8 / 400e9 / EFFICIENCY
    assert tree.cct["ring"] == pytest.approx(ring, rel=1e-6)
    assert circuits.cct["ring"] > ring
    assert tree.trace.end == pytest.approx(tree.cct["ring"] + 0.5 + tree.cct["spread"], rel=1e-9)
    assert [change.at for change in circuits.changes] == [0.1]


def test_tables_show_what_is_predicted(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["predict", str(scenario)]) == 0
    shown = capsys.readouterr().out
    assert "predicted" in shown
    assert "nothing is measured (transport: ideal" in shown
    assert "ring: ring all-reduce of 16 ranks" in shown
    assert not any(word in shown for word in ("verdict", "ratio", "TDF"))


def test_json_and_a_run_directory_name_the_engine(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = scenario.parent / "run"
    assert run_command(["predict", str(scenario), "--json", "--out", str(out)]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["engine"] == "model"
    assert [fabric["name"] for fabric in summary["fabrics"]] == ["tree", "circuits"]
    stored = read_run(out)
    assert stored.manifest.engine == "model"
    assert (stored.manifest.scale.sigma, stored.manifest.scale.beta) == (1, 1)
    rows = [row for row in stored.tables["links"] if row["fabric"] == "tree" and row["link"] == "h0:0"]
    sent = 2 * 15 * 10**9 + 15 * 10**8
    assert [row["payload_bytes"] for row in rows] == [pytest.approx(sent, abs=2)]
    assert {row["how"] for row in stored.tables["flows"]} == {"packets"}


def test_a_scenario_may_ask_for_the_model(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario.write_text(f"engine: model\n{SCENARIO}")
    assert run_command(["run", str(scenario), "--out", str(scenario.parent / "run")]) == 0
    assert "nothing is measured" in capsys.readouterr().out


def test_a_fitted_transport_takes_longer(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = scenario.parent / "fitted.toml"
    file.write_text('date = "2026-12-01"\nmachine = "somewhere"\nefficiency = 0.5\n')
    assert run_command(["predict", str(scenario), "--transport", str(file)]) == 0
    assert "fitted on 2026-12-01 (somewhere)" in capsys.readouterr().out


def test_bad_input_is_one_message(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["predict", str(scenario), "--transport", "none.toml"]) == 2
    assert "cannot read none.toml" in capsys.readouterr().err
    scenario.write_text(SCENARIO.replace("k: 4", "k: 3"))
    assert run_command(["predict", str(scenario)]) == 2
    assert "small.yaml:4: fabrics[0].k" in capsys.readouterr().err
