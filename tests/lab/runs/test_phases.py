"""The quickstart's iteration on its circuits, made short: what its phases come to in tables and manifest.

How long things take depends on how busy the machine is, and so does the verdict; bytes do not.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.lab.runs.machine import ROOT, start_emu

pytestmark = [pytest.mark.lab, pytest.mark.timeout(150)]

WEIGHTS = 16_381_470_720
_ACKNOWLEDGED = 1e-3
"""Share of bytes that selective acknowledgements may add to headers: the counters' only noise."""


@dataclass(frozen=True)
class Run:
    """A run directory and what was printed."""

    directory: Path
    printed: str

    @property
    def manifest(self) -> dict[str, Any]:
        """Of the one fabric."""
        (fabric,) = json.loads((self.directory / "manifest.json").read_text())["fabrics"]
        assert isinstance(fabric, dict)
        return fabric

    def table(self, name: str) -> list[dict[str, str]]:
        """A table's rows."""
        with (self.directory / f"{name}.csv").open() as file:
            return list(csv.DictReader(file))

    def phase(self, name: str) -> dict[str, float]:
        """A phase's numbers."""
        (row,) = (row for row in self.table("phases") if row["phase"] == name)
        return {key: float(cell) for key, cell in row.items() if key not in ("fabric", "phase") and cell}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("iteration")
    yaml = YAML()
    scenario = yaml.load((ROOT / "scenarios" / "quickstart.yaml").read_text())
    del scenario["fabrics"][0]
    scenario["emulation"] = {"scale": {"sigma": 4000, "beta": 20000}}
    yaml.dump(scenario, folder / "short.yaml")
    process = start_emu("run", "short.yaml", "--counterfactual", "--out", "run", cwd=folder)
    out, words = process.communicate(timeout=140)
    assert (folder / "run" / "manifest.json").exists(), words
    return Run(folder / "run", out)


def test_the_iteration_came_to_its_end(run: Run) -> None:
    fabric = run.manifest
    assert fabric["error"] == ""
    assert [repeat["complete"] for repeat in fabric["repeats"]] == [True]
    *side_by_side, last = [row["phase"] for row in run.table("phases")]
    assert (set(side_by_side), last) == ({"generation", "training"}, "weight-sync")


def test_weights_went_over_circuits_and_none_over_the_core_while_those_were_lit(run: Run) -> None:
    sync = run.phase("weight-sync")
    assert sync["between_pods_bytes"] == 3 * WEIGHTS
    assert sync["circuit_bytes"] >= 0.9 * sync["between_pods_bytes"]
    # Its circuits shine from before its first byte to its last, so nothing of it may be in the core.
    (change,) = run.table("circuits")
    assert change["outcome"] == "committed"
    assert float(change["lit_at_s"]) < sync["start_s"]
    assert sync["dark_s"] == 0
    assert sync["core_bytes"] <= _ACKNOWLEDGED * sync["between_pods_bytes"]


def test_counters_and_model_agree_on_where_bytes_went(run: Run) -> None:
    for name in ("generation", "weight-sync"):
        phase = run.phase(name)
        assert phase["circuit_bytes"] == pytest.approx(phase["ideal_circuit_bytes"], rel=0.05)


def test_the_dark_time_fell_into_the_optimizers_step(run: Run) -> None:
    training = run.phase("training")
    (change,) = run.table("circuits")
    assert 0 < training["dark_s"] <= float(change["lit_at_s"]) - float(change["dark_at_s"]) + 1e-9
    assert training["dark_share"] == pytest.approx(training["dark_s"] / training["duration_s"])


def test_training_hides_what_the_model_says_and_weight_sync_nothing(run: Run) -> None:
    training, sync = run.phase("training"), run.phase("weight-sync")
    assert training["communication_s"] == pytest.approx(training["exposed_s"] + training["hidden_s"])
    assert training["ideal_hidden_s"] > 0
    assert training["hidden_s"] == pytest.approx(training["ideal_hidden_s"], rel=0.3)
    assert (sync["hidden_s"], sync["exposed_s"]) == (0, pytest.approx(sync["communication_s"]))


def test_counterfactuals_are_told_as_the_models(run: Run) -> None:
    instant, never = run.manifest["counterfactuals"]
    assert (instant["kind"], never["kind"]) == ("no dark time", "no reconfiguration")
    ideal = run.phase("weight-sync")["ideal_s"]
    assert instant["phases_s"]["weight-sync"] == pytest.approx(ideal)
    assert never["phases_s"]["weight-sync"] > 2 * ideal
    assert "hybrid, by the model alone (nothing here is measured):" in run.printed
