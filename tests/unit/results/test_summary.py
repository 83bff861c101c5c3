"""The summary of a run: grouping, medians, spread and percentiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.outcome import Outcome
from emu.records import FlowRecord
from emu.results import summarise
from emu.results.summary import _collectives
from tests.unit.results.synthetic import FLOWS, fabric_outcome, outcome


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenario")


def test_collectives_are_grouped_by_step_and_size(folder: Path) -> None:
    summary = summarise(outcome(folder, folder / "run"))
    assert (summary.verdict, summary.tdf, len(summary.fabrics)) == ("VALID", 20, 2)
    rows = summary.fabrics[0].collectives
    assert [(row.label, row.bytes >> 20, row.count) for row in rows] == [
        ("gradients", 512, 2),
        ("sweep", 128, 1),
        ("sweep", 256, 1),
    ]


def test_median_and_spread_are_over_repeats(folder: Path) -> None:
    row = summarise(outcome(folder, folder / "run")).fabrics[0].collectives[1]
    assert row.ideal is not None
    assert (row.cct_min / row.ideal, row.cct_max / row.ideal) == pytest.approx((1.03, 1.04))
    assert row.ratio == pytest.approx(1.035)
    # An all-gather's busbw is S/t * 15/16.
    assert row.busbw == pytest.approx((128 << 20) / row.cct * 0.9375)


def test_layer_buckets_are_added_up(folder: Path) -> None:
    fabric = fabric_outcome(folder)
    alone, *_ = _collectives(fabric, set())
    row, *_ = _collectives(fabric, {"gradients"})
    assert (row.count, row.bytes, row.merged) == (2, 1 << 30, 2)
    assert row.ideal == pytest.approx(2 * (alone.ideal or 0))
    assert row.cct == pytest.approx(2 * alone.cct)
    assert row.busbw == pytest.approx(alone.busbw)


def test_an_interrupted_repeat_does_not_count_in_a_sum(folder: Path) -> None:
    fabric = fabric_outcome(folder)
    whole, *_ = _collectives(fabric, {"gradients"})
    del fabric.measurement.repeats[1].trace.collectives[1:]
    row, *_ = _collectives(fabric, {"gradients"})
    assert row.cct == pytest.approx(whole.cct_min)


def test_flows_have_their_percentiles(folder: Path) -> None:
    run: Outcome = outcome(folder, folder / "run", FLOWS)
    repeats = run.fabrics[0].measurement.repeats
    # 1 to 100 ms; f0 alone has an ideal, and it is met twice over.
    ideal = run.fabrics[0].prediction.fct["flows/f0"]
    repeats[0].trace.flows = [
        FlowRecord(f"x{i}", "", "flows", "h0", "h1", 1, 0.0, 0.0, i / 1000) for i in range(1, 100)
    ] + [FlowRecord("flows/f0", "", "flows", "h0", "h1", 1, 0.0, 0.0, 0.1)]
    repeats[1].trace.flows = [FlowRecord("y", "", "flows", "h0", "h0", 1, 0.0, 0.0, 9.0, how="local")]
    row = summarise(run).fabrics[0].flows[0]
    assert (row.count, row.min, row.median, row.p99, row.max) == (100, 0.001, 0.0505, 0.099, 0.1)
    assert row.mean_slowdown == pytest.approx(0.1 / ideal)


def test_flows_of_collectives_have_no_row_of_their_own(folder: Path) -> None:
    assert summarise(outcome(folder, folder / "run")).fabrics[0].flows == []


def test_notes_of_the_lab_are_kept(folder: Path) -> None:
    run = outcome(folder, folder / "run")
    facts = run.fabrics[0].measurement.facts
    assert facts
    facts.notes, facts.queue_floored = ["link delays are not emulated"], True
    assert summarise(run).fabrics[0].notes == [
        "link delays are not emulated",
        "queues were kept at 180000 bytes, more than the scenario's queue scales to",
    ]
