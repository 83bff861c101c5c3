"""The quickstart's iteration on its circuits, made short: what its phases come to in tables and manifest.

How long things take depends on how busy the machine is, and so does the verdict; bytes do not.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import pytest
from ruamel.yaml import YAML

import emu
from emu.results.manifest import FabricEntry
from tests.lab.runs.machine import ROOT, start_emu

pytestmark = [pytest.mark.lab, pytest.mark.timeout(150)]

WEIGHTS = 16_381_470_720
_ACKNOWLEDGED = 1e-3
"""Share of bytes that selective acknowledgements may add to headers: the counters' only noise."""


@dataclass(frozen=True)
class Run:
    """A run on one fabric and what was printed."""

    record: emu.RunRecord
    printed: str

    @property
    def fabric(self) -> FabricEntry:
        """What the manifest says of the one fabric."""
        (fabric,) = self.record.manifest.fabrics
        return fabric

    @property
    def change(self) -> dict[Hashable, Any]:
        """The one change of circuits."""
        (change,) = self.record.circuits.to_dict("records")
        return change

    def phase(self, name: str) -> dict[Hashable, Any]:
        """A phase's row."""
        phases = self.record.phases
        (row,) = phases[phases["phase"] == name].to_dict("records")
        return row


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
    return Run(emu.load(folder / "run"), out)


def test_the_iteration_came_to_its_end(run: Run) -> None:
    assert run.fabric.error == ""
    assert [repeat.complete for repeat in run.fabric.repeats] == [True]
    *side_by_side, last = run.record.phases["phase"]
    assert (set(side_by_side), last) == ({"generation", "training"}, "weight-sync")


def test_weights_went_over_circuits_and_none_over_the_core_while_those_were_lit(run: Run) -> None:
    sync = run.phase("weight-sync")
    assert sync["between_pods_bytes"] == 3 * WEIGHTS
    assert sync["circuit_bytes"] >= 0.9 * sync["between_pods_bytes"]
    # Its circuits shine from before its first byte to its last, so nothing of it may be in the core.
    assert run.change["outcome"] == "committed"
    assert run.change["lit_at_s"] < sync["start_s"]
    assert sync["dark_s"] == 0
    assert sync["core_bytes"] <= _ACKNOWLEDGED * sync["between_pods_bytes"]


def test_counters_and_model_agree_on_where_bytes_went(run: Run) -> None:
    for name in ("generation", "weight-sync"):
        phase = run.phase(name)
        assert phase["circuit_bytes"] == pytest.approx(phase["ideal_circuit_bytes"], rel=0.05)


def test_the_dark_time_fell_into_the_optimizers_step(run: Run) -> None:
    training = run.phase("training")
    assert 0 < training["dark_s"] <= run.change["lit_at_s"] - run.change["dark_at_s"] + 1e-9
    assert training["dark_share"] == pytest.approx(training["dark_s"] / training["duration_s"])


def test_training_hides_what_the_model_says_and_weight_sync_nothing(run: Run) -> None:
    training, sync = run.phase("training"), run.phase("weight-sync")
    assert training["communication_s"] == pytest.approx(training["exposed_s"] + training["hidden_s"])
    assert training["ideal_hidden_s"] > 0
    assert training["hidden_s"] == pytest.approx(training["ideal_hidden_s"], rel=0.3)
    assert (sync["hidden_s"], sync["exposed_s"]) == (0, pytest.approx(sync["communication_s"]))


def test_counterfactuals_are_told_as_the_models(run: Run) -> None:
    instant, never = run.fabric.counterfactuals
    assert (instant.kind, never.kind) == ("no dark time", "no reconfiguration")
    ideal = run.phase("weight-sync")["ideal_s"]
    assert instant.phases_s["weight-sync"] == pytest.approx(ideal)
    assert (never.phases_s["weight-sync"] or 0) > 2 * ideal
    assert "hybrid, by the model alone (nothing here is measured):" in run.printed
