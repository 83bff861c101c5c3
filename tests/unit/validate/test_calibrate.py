"""Calibration: what was put in comes out, and what cannot be fitted is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from emu.cli.app import run_command
from emu.errors import InputError
from emu.model.transport import IDEAL, Transport, load_transport
from emu.scale import Scale
from emu.validate.calibrate import Shares, calibrate, fit_retransmission
from emu.validate.fitted import FittedTransport, read_fitted, write_fitted
from tests.unit.validate.held_runs import FAT_TREE, LEAF_SPINE, OTHER_STEPS, SCALE, STEPS, TRUTH, scenario, write_held


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_held(tmp_path_factory.mktemp("held") / "run", scenario("known", LEAF_SPINE, STEPS), TRUTH)


@pytest.fixture(scope="module")
def fitted(run: Path) -> FittedTransport:
    return calibrate([run])


def test_the_parameters_that_were_measured_are_found(fitted: FittedTransport) -> None:
    found = fitted.transport
    assert found.efficiency == pytest.approx(TRUTH.efficiency, abs=0.003)
    assert found.message == pytest.approx(TRUTH.message, rel=0.1)
    assert found.initial_window == TRUTH.initial_window
    assert fitted.fit.residual < 0.003 < fitted.fit.before
    assert fitted.fit.points == 5


def test_without_changes_of_circuits_the_time_out_is_the_one_that_was_set(fitted: FittedTransport) -> None:
    assert (fitted.transport.retransmission, fitted.fit.recovery) == (0.004, 0)


def test_it_says_when_where_and_on_what(fitted: FittedTransport, run: Path) -> None:
    assert fitted.transport.date
    assert "Linux" in fitted.transport.machine
    assert fitted.fit.runs == (str(run),)
    assert fitted.fit.sizes == (512 << 20, 1 << 30, 2 << 30, 4 << 30, 8 << 30)
    assert (fitted.fit.sigma, fitted.fit.beta) == (SCALE.sigma, SCALE.beta)


def test_the_file_reads_back_and_the_model_takes_it(fitted: FittedTransport, tmp_path: Path) -> None:
    write_fitted(fitted, tmp_path / "here.toml")
    assert read_fitted(tmp_path / "here.toml") == fitted
    assert load_transport(tmp_path / "here.toml") == fitted.transport


def test_a_file_without_its_evidence_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bare.toml"
    path.write_text('date = "2026-12-01"\nmachine = "here"\nefficiency = 0.97\n')
    with pytest.raises(InputError, match=r"the table \[fit\] is missing"):
        read_fitted(path)
    path.write_text(path.read_text() + "[fit]\nsigma = 1.0\n")
    with pytest.raises(InputError, match=r"fit\.beta: Field required"):
        read_fitted(path)


def test_at_another_scale_wall_times_stay(fitted: FittedTransport) -> None:
    """At TDF 40 a wall millisecond is half as many modelled ones; windows are frames, and frames grow with sigma."""
    other = fitted.at(Scale(500.0, 20000.0))
    assert other.message == pytest.approx(fitted.transport.message / 2)
    assert other.round_trip == pytest.approx(fitted.transport.round_trip / 2)
    assert other.initial_window == pytest.approx(fitted.transport.initial_window / 2)
    assert (other.efficiency, other.retransmission) == (fitted.transport.efficiency, fitted.transport.retransmission)


def test_the_time_out_is_fitted_to_what_flows_stood_still() -> None:
    truth = Transport(retransmission=0.006)
    dark = np.array([0.002, 0.005, 0.01, 0.02, 0.03])
    share = np.array([truth.recovery(float(seconds)) for seconds in dark])
    assert fit_retransmission(Shares(dark, share), 0.004) == pytest.approx(0.006, rel=0.01)


def test_too_few_points_are_refused(tmp_path: Path) -> None:
    run = write_held(tmp_path / "few", scenario("few", FAT_TREE, OTHER_STEPS), IDEAL)
    with pytest.raises(InputError, match="2 different collectives and sizes; a fit needs 4"):
        calibrate([run])


def test_runs_of_different_transports_are_refused(run: Path, tmp_path: Path) -> None:
    told = scenario("reno", FAT_TREE, OTHER_STEPS, "transport: {cc: reno}\n")
    other = write_held(tmp_path / "reno", told, IDEAL)
    with pytest.raises(InputError, match="was run with other settings of TCP"):
        calibrate([run, other])


def test_what_was_predicted_is_no_measurement(tmp_path: Path) -> None:
    run = write_held(tmp_path / "model", scenario("model", FAT_TREE, OTHER_STEPS), IDEAL, engine="model")
    with pytest.raises(InputError, match="was predicted, nothing in it is measured"):
        calibrate([run])


def test_the_command_writes_the_file_and_shows_the_fit(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["calibrate", str(run), "--out", str(tmp_path / "here.toml")]) == 0
    out = capsys.readouterr().out
    assert "efficiency      0.96" in out
    assert "as the runs were set to, not fitted" in out
    assert "5 medians, off by 0." in out
    assert read_fitted(tmp_path / "here.toml").fit.points == 5
