"""Validation: ratios by collective, phase and fabric, and the fitted transport only where it was not fitted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emu.cli.app import run_command
from emu.errors import InputError
from emu.model.transport import IDEAL, Transport
from emu.validate.calibrate import calibrate
from emu.validate.fitted import FittedTransport, write_fitted
from emu.validate.report import Line, validate
from tests.unit.validate.held_runs import FAT_TREE, LEAF_SPINE, OTHER_STEPS, STEPS, TRUTH, scenario, write_held


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("validate")


@pytest.fixture(scope="module")
def fitted(folder: Path) -> FittedTransport:
    return calibrate([write_held(folder / "fitted", scenario("fitted", LEAF_SPINE, STEPS), TRUTH)])


@pytest.fixture(scope="module")
def fresh(folder: Path) -> Path:
    """A run of another workload, with other sizes, on a fabric that is new and on one that is not."""
    return write_held(folder / "fresh", scenario("fresh", FAT_TREE + LEAF_SPINE, OTHER_STEPS), TRUTH)


def by_name(lines: list[Line]) -> dict[tuple[str, str], Line]:
    return {(line.fabric, line.name): line for line in lines}


def test_a_transport_of_95_percent_takes_1_by_095_of_the_ideal(tmp_path: Path) -> None:
    run = write_held(tmp_path / "run", scenario("run", FAT_TREE, OTHER_STEPS), Transport(efficiency=0.95))
    lines = by_name(validate([run]))
    assert set(lines) == {("fat-tree", name) for name in ("ring", "gather", "training", "generation")}
    for line in lines.values():
        assert line.ideal is not None
        assert line.ideal.median == pytest.approx(1 / 0.95, rel=1e-6)
        assert line.fitted is None
    ring = lines["fat-tree", "ring"]
    assert (ring.kind, ring.what, ring.fabric_kind, ring.count) == ("collective", "ring all-reduce", "fat-tree", 1)
    assert (ring.close, lines["fat-tree", "training"].close) == (False, True)  # 5.3 %: over 5, within 10


def test_the_spread_is_over_sizes_and_repeats(folder: Path, fitted: FittedTransport) -> None:
    ring = by_name(validate([folder / "fitted"]))["leaf-spine", "ring"]
    assert ring.count == 2
    assert ring.ideal is not None
    # The cost of a message weighs more on the small one.
    assert ring.ideal.lowest < ring.ideal.median < ring.ideal.highest


def test_the_fitted_transport_is_shown_where_nothing_was_fitted(fresh: Path, fitted: FittedTransport) -> None:
    lines = by_name(validate([fresh], fitted))
    for name in ("ring", "gather", "training"):
        line = lines["fat-tree", name]
        assert line.fitted is not None
        assert line.ideal is not None
        assert abs(line.fitted.median - 1) < 0.01 < line.ideal.median - 1
        assert lines["leaf-spine", name].fitted is None  # its fabric was fitted on


def test_a_workload_or_a_size_that_was_fitted_on_is_left_out(tmp_path: Path, fitted: FittedTransport) -> None:
    same = write_held(tmp_path / "same", scenario("same", FAT_TREE, STEPS), IDEAL)
    assert all(line.fitted is None for line in validate([same], fitted))
    steps = OTHER_STEPS.replace("3GiB", "4GiB")
    size = write_held(tmp_path / "size", scenario("size", FAT_TREE, steps), IDEAL)
    lines = by_name(validate([size], fitted))
    assert lines["fat-tree", "ring"].fitted is None
    assert lines["fat-tree", "gather"].fitted is not None


def test_merged_gradients_are_merged_again(tmp_path: Path) -> None:
    step = "    - {name: gradients, phase: training, collective: all-reduce, algorithm: ring, size: layer-gradients}\n"
    run = write_held(tmp_path / "run", scenario("merged", FAT_TREE, step), IDEAL, buckets=3)
    (gradients, training) = validate([run])
    assert gradients.count == 3
    for line in (gradients, training):
        assert line.ideal is not None
        assert (line.ideal.lowest, line.ideal.highest) == (pytest.approx(1.0), pytest.approx(1.0))


def test_the_command_prints_both_transports_and_never_judges(
    fresh: Path, fitted: FittedTransport, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_fitted(fitted, tmp_path / "here.toml")
    assert run_command(["validate", str(fresh), "--transport", str(tmp_path / "here.toml")]) == 0
    out = capsys.readouterr().out
    assert "fresh, ring: ring all-reduce" in out
    assert "fresh, phase training" in out
    assert "of 4 collectives are within 5%" in out
    assert run_command(["validate", str(fresh), "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)
    assert {line["fabric"] for line in lines} == {"fat-tree", "leaf-spine"}
    assert {line["fitted"] for line in lines} == {None}


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no whole run directory"):
        validate([tmp_path])
