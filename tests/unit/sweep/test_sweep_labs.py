"""Sweeps of labs, one after the other: kept when whole, told when they fail, ended by an interrupt. No lab is built."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from emu import runner
from emu.cli.app import run_command
from emu.lab.errors import LabError
from emu.model.transport import Transport
from emu.scenario import Scenario, load_text
from emu.sweep.points import points
from emu.sweep.running import run_sweep
from emu.sweep.store import Store
from emu.sweep.table import rows_of
from tests.unit.sweep.test_sweep_run import SWEEP
from tests.unit.sweep.test_sweep_spec import SCENARIO
from tests.unit.validate.held_runs import write_held


class Labs:
    """Stands in for labs whose transport reaches half the rate. at: what the nth one does instead."""

    def __init__(self, at: dict[int, object]) -> None:
        self.at, self.count = at, 0

    def __call__(self, scenario: Scenario, *, out: Path, **_: object) -> SimpleNamespace:
        """Run a scenario, as `emu.runner.run_scenario` does."""
        self.count += 1
        instead = self.at.get(self.count)
        if isinstance(instead, Exception):
            raise instead
        out.rmdir()
        write_held(out, scenario, Transport(efficiency=0.5))
        return SimpleNamespace(interrupted=instead == "interrupt")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "out")


def test_measured_points_have_their_ideal_beside_them(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run_scenario", Labs({}))
    rows = rows_of(run_sweep(points(load_text(SCENARIO + SWEEP), "packet"), store, "packet"))
    assert len(rows) == 16
    for row in (row for row in rows if row.fabric == "fat-tree"):  # the other one's circuits change meanwhile
        assert row.duration is not None
        assert row.ideal is not None
        assert row.duration == pytest.approx(2 * row.ideal, rel=0.02)


def test_an_interrupt_ends_the_sweep_and_the_next_one_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    found = points(load_text(SCENARIO + SWEEP), "packet")
    monkeypatch.setattr(runner, "run_scenario", Labs({3: "interrupt"}))
    with pytest.raises(KeyboardInterrupt):
        run_sweep(found, store, "packet")
    assert [store.holds(point) for point in found] == [True, True, False, False]
    assert not list(store.directory.glob("points/*.part"))
    labs = Labs({})
    monkeypatch.setattr(runner, "run_scenario", labs)
    assert [result.kept for result in run_sweep(found, store, "packet")] == [True, True, False, False]
    assert labs.count == 2


def test_a_lab_that_does_not_open_costs_its_point_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run_scenario", Labs({1: LabError("no room for a lab")}))
    path = tmp_path / "example.yaml"
    path.write_text(SCENARIO + SWEEP)
    assert run_command(["sweep", str(path), "--engine", "packet", "--out", str(tmp_path / "out")]) == 1
    out = capsys.readouterr().out
    assert "failed: size=16MiB, seed 1: no room for a lab" in out
    assert "Measured: 4 points" in out
    assert len(list((tmp_path / "out" / "points").iterdir())) == 3
