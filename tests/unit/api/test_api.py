"""emu as a library: what it takes, gives and raises; no lab is opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import emu
from emu import api
from emu.outcome import Outcome
from emu.results import write_run
from emu.scenario import Scenario
from tests.unit.results import synthetic

TEXT = """\
seed: 3
emulation: {scale: {sigma: 1000, beta: 20000}}
fabrics: [{kind: fat-tree, k: 4}]
workload: {kind: collectives, steps: [{name: ring, collective: all-reduce, size: 1GB}]}
"""
DATA: dict[str, Any] = {
    "seed": 3,
    "emulation": {"scale": {"sigma": 1000, "beta": 20000}},
    "fabrics": ({"kind": "fat-tree", "k": 4},),
    "workload": {"kind": "collectives", "steps": [{"name": "ring", "collective": "all-reduce", "size": "1GB"}]},
}


def test_paths_text_and_mappings_are_the_same_scenario(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(TEXT)
    checked = [emu.check(given) for given in (path, str(path), TEXT, DATA)]
    assert len({one.scenario.hash for one in checked}) == 1
    assert DATA["fabrics"] == ({"kind": "fat-tree", "k": 4},)  # what was given is left as it was


def test_check_says_what_a_run_would_be() -> None:
    checked = emu.check(TEXT, seed=9, repeat=2, overrides={"emulation.mtu": 1500})
    assert (checked.scenario.seed, checked.scenario.repeat, checked.scenario.emulation.mtu) == (9, 2, 1500)
    assert [len(fabric.fabric.hosts) for fabric in checked.fabrics] == [16]
    assert (checked.plan.scale.sigma, checked.plan.scale.beta) == (1000, 20000)
    assert checked.wall_s > 0
    assert any("sigma 1000" in line for line in checked.lines)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (TEXT.replace("k: 4", "k: 3"), r"scenario text:3: fabrics\[0\].k"),
        ({**DATA, "seed": -1}, "^seed: "),
        ({**DATA, 5: 1}, "5"),
        ("nowhere.yaml", r"nowhere\.yaml: there is no such file"),
        (5, "int is no scenario; give a path"),
        (DATA | {"workload": {"kind": "collectives", "stepps": []}}, "steps"),
    ],
)
def test_mistakes_are_typed_errors(given: Any, words: str) -> None:  # noqa: ANN401
    with pytest.raises(emu.InputError, match=words):
        emu.check(given)


class Runner:
    """Stands for a run: remembers what it was asked for, and writes a good run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked, self.interrupted = folder, {}, False

    def __call__(self, scenario: Scenario, **options: Any) -> Outcome:  # noqa: ANN401
        """As `run_scenario` is called."""
        self.asked = {"scenario": scenario, **options}
        directory = self.folder / "run"
        directory.mkdir()
        outcome = replace(synthetic.outcome(self.folder, directory), interrupted=self.interrupted)
        write_run(outcome)
        return outcome


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    synthetic.scenario.cache_clear()
    found = Runner(tmp_path)
    monkeypatch.setattr(api, "run_scenario", found)
    return found


def test_run_passes_its_options_on_and_gives_a_record(runner: Runner) -> None:
    heard: list[emu.Progress] = []
    record = emu.run(TEXT, out="some/where", seed=5, repeat=4, listener=heard.append, counterfactual=True)
    assert (runner.asked["scenario"].seed, runner.asked["scenario"].repeat) == (5, 4)
    assert runner.asked["out"] == Path("some/where")
    assert runner.asked["counterfactual"] is True
    assert runner.asked["listener"] == heard.append
    assert record.directory == runner.folder / "run"
    assert len(record.phases)


def test_an_interrupt_is_raised_after_the_run_was_written(runner: Runner) -> None:
    """Or a loop over scenarios would go on with the next one."""
    runner.interrupted = True
    with pytest.raises(KeyboardInterrupt, match="what was measured is in"):
        emu.run(TEXT)
    assert emu.load(runner.folder / "run").verdict == "VALID"


def test_a_name_that_emu_does_not_have_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulate'"):
        emu.simulate  # noqa: B018
    assert {"run", "check", "load", "RunRecord"} <= set(dir(emu))
