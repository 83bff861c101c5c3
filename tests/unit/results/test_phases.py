"""Phases of a run in its tables and its summary, and fabrics as they are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from controllers.epochs import EpochChange
from emu.cli.phase_tables import show_counterfactuals, show_phases
from emu.counterfactual import counterfactuals
from emu.measurement import CircuitChange
from emu.outcome import FabricOutcome, Outcome
from emu.records import CollectiveRecord, ComputationRecord, FlowRecord, PhaseRecord, Trace
from emu.results import read_run, summarise, write_run
from emu.results.rows import rows_of
from emu.runner import predict
from emu.scenario import build_fabrics, load
from tests.unit.results.synthetic import SCALE, fabric_outcome, measurement, outcome

HEAD = """\
name: small
emulation: {scale: {sigma: 100, beta: 2000}}
fabrics:
  - {kind: fat-tree, k: 4, rate: 100Gbps}
"""
STEPS = """\
workload:
  kind: collectives
  steps:
    - {name: one, collective: permutation, ranks: "0,1,4,5", size: 1GB}
    - {name: think, phase: one, compute: 15ms}
    - {name: two, collective: permutation, ranks: "0,1,8,9", size: 1GB}
"""
HYBRID = """\
  - kind: hybrid
    pods: 4
    uplinks: 2
    rate: 100Gbps
    reconfiguration: 20ms
    circuits: {o0: [t0-t1, t0-t1]}
"""
TEMPLATES = "    policy: {kind: templates, phases: {two: {o0: [t0-t2, t0-t2]}}}\n"
SCHEDULE = "    schedule: [{at: 200ms, circuits: {o0: [t0-t2, t0-t2]}}]\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenario")


def flow(name: str, src: str, dst: str, start: float, end: float, phase: str) -> FlowRecord:
    return FlowRecord(name, "", phase, src, dst, 1000, start, start, end)


def by_hand() -> Trace:
    """Training computes on h0 and h1, and talks to its pod and another; the sync comes after it, in h0's pod."""
    return Trace(
        flows=[
            flow("a", "h0.0", "h1.0", 1.0, 3.0, "training"),
            flow("b", "h0.0", "h4.0", 2.0, 5.0, "training"),
            flow("c", "h2.0", "h3.0", 6.0, 8.0, "sync"),
        ],
        phases={
            "sync": PhaseRecord("sync", 6.0, 8.0, packet_bytes=1000),
            "training": PhaseRecord("training", 0.0, 5.0, packet_bytes=2000, circuit_bytes=1000, core_bytes=10),
        },
        computations=[ComputationRecord("forward", "training", ("h0", "h1"), 0.0, 2.5)],
        end=8.0,
        complete=True,
    )


def rewritten(folder: Path) -> FabricOutcome:
    """A fabric with circuits whose measured trace is the one above, and whose model has all of it half as long."""
    base = fabric_outcome(folder, number=1)
    trace = by_hand()
    half = replace(
        trace,
        flows=[replace(row, start=row.start / 2, end=row.end / 2) for row in trace.flows],
        computations=[replace(row, start=row.start / 2, end=row.end / 2) for row in trace.computations],
        phases={name: replace(row, start=row.start / 2, end=row.end / 2) for name, row in trace.phases.items()},
        end=4.0,
    )
    epoch = base.built.schedule[0].epoch
    prediction = replace(base.prediction, trace=half, changes=(EpochChange(2.0, epoch, 1.0),))
    measured = measurement(base.built, base.prediction, repeats=1)
    measured.repeats[0].trace = trace
    measured.repeats[0].changes = [
        CircuitChange(1, 4.0, 1.5, 4.0, 5.5, 0.0),
        CircuitChange(2, 7.0, 1.5, 7.0, 7.0, 0.0, "aborted: no answer"),
    ]
    return FabricOutcome(base.built, prediction, measured, base.verdict)


def test_a_phase_has_its_communication_its_dark_time_and_its_bytes_between_pods(folder: Path) -> None:
    sync, training = sorted(rows_of("phases", rewritten(folder)), key=lambda row: str(row["phase"]))
    picked = ("duration_s", "communication_s", "exposed_s", "hidden_s", "dark_s", "dark_share", "between_pods_bytes")
    assert [training[name] for name in picked] == [5.0, 4.0, 2.5, 1.5, 1.0, 0.2, 1000]
    assert [sync[name] for name in picked] == [2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0]
    assert (training["circuit_bytes"], training["core_bytes"], sync["circuit_bytes"]) == (1000, 10, 0)


def test_the_ideal_has_them_too(folder: Path) -> None:
    training = next(row for row in rows_of("phases", rewritten(folder)) if row["phase"] == "training")
    assert (training["ideal_s"], training["ratio"]) == (2.5, 2.0)
    picked = ("ideal_communication_s", "ideal_exposed_s", "ideal_hidden_s", "ideal_dark_share")
    assert [training[name] for name in picked] == [2.0, 1.25, 0.75, 0.2]
    assert (training["ideal_circuit_bytes"], training["ideal_core_bytes"]) == (1000, 10)


def test_a_summary_has_phases_in_the_order_of_time(folder: Path) -> None:
    run = outcome(folder, folder / "run")
    fabric = summarise(replace(run, fabrics=[rewritten(folder)])).fabrics[0]
    assert [row.phase for row in fabric.phases] == ["training", "sync"]
    training = fabric.phases[0]
    assert (training.duration, training.ideal, training.ratio, training.exposed) == (5.0, 2.5, 2.0, 2.5)
    assert (training.dark_share, training.between_pods, training.circuit_bytes) == (0.2, 1000, 1000)


def test_collectives_are_told_by_phase_in_the_order_of_time(folder: Path) -> None:
    fabric = rewritten(folder)
    rows = [("a", "sync", 6.0), ("z", "training", 1.0), ("b", "training", 2.0)]
    fabric.measurement.repeats[0].trace.collectives = [
        CollectiveRecord(f"{label}#0", label, phase, "all-reduce", "ring", 4, 100, 1, start, start + 1.0)
        for label, phase, start in rows
    ]
    run = replace(outcome(folder, folder / "run"), fabrics=[fabric])
    assert [row.label for row in summarise(run).fabrics[0].collectives] == ["z", "b", "a"]


def test_the_table_shows_each_phase_on_each_fabric(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = outcome(folder, folder / "run")
    show_phases(Console(width=80), summarise(replace(run, fabrics=[rewritten(folder)])))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [
        ["fabric", "measured", "ideal", "ratio", "dark", "circuits", "exposed", "hidden", "verdict"],
        ["training:", "1000", "B", "between", "pods"],
        ["optical", "5", "s", "2.5", "s", "2.000", "20.0%", "1000", "B", "2.5", "s", "1.5", "s", "VALID"],
    ]
    assert lines[4] == ["optical", "2", "s", "1", "s", "2.000", "0.0%", "-", "2", "s", "0", "ns", "VALID"]
    assert lines[6] == ["optical", "8", "s", "4", "s", "2.000", "VALID"]


# -- fabrics as they are not ------------------------------------------------------------------------------------------


def imagined(folder: Path, circuits: str, core: str = "50Gbps") -> Outcome:
    """A run whose measurement is the ideal, with its counterfactuals."""
    path = folder / f"{abs(hash((circuits, core)))}.yaml"
    electrical = f"    electrical_rate: {core}\n" if core else ""
    path.write_text(HEAD + HYBRID + electrical + circuits + STEPS)
    wanted = load(path)
    predicting: Callable[..., Any] = partial(predict, wanted, seed=1, buckets=None)
    fabrics = []
    for built in build_fabrics(wanted):
        prediction = predicting(built)
        base = fabric_outcome(folder)
        measured = measurement(built, prediction, repeats=1, factor=1.0)
        fabrics.append(FabricOutcome(built, prediction, measured, base.verdict, counterfactuals(built, predicting)))
    return replace(outcome(folder, folder / path.stem), scenario=wanted, scale=SCALE, fabrics=fabrics)


def test_a_change_that_takes_no_time_fits_where_the_real_one_does_not(folder: Path) -> None:
    """The slack of 15 ms is too short for 20 ms, so the core carries phase two, at half the rate."""
    tree, hybrid = summarise(imagined(folder, TEMPLATES)).fabrics
    assert tree.counterfactuals == []
    instant, never = hybrid.counterfactuals
    assert (instant.kind, never.kind) == ("no dark time", "no reconfiguration")
    real, quick, kept = (rows[-1] for rows in (hybrid.phases, instant.phases, never.phases))
    assert (real.phase, quick.phase, kept.phase) == ("two", "two", "two")
    assert real.ideal == pytest.approx(8e9 / 50e9 * 9038 / 8948)
    assert kept.duration == pytest.approx(real.ideal)
    assert quick.duration == pytest.approx(8e9 / 100e9 * 9038 / 8948)
    assert (quick.circuit_bytes, quick.core_bytes, quick.problem) == (2_000_000_000, 0, "")


def test_a_schedule_without_dark_time_keeps_its_instants(folder: Path) -> None:
    hybrid = imagined(folder, SCHEDULE).fabrics[1]
    instant = hybrid.counterfactuals[0].prediction
    assert [(change.at, change.reconfiguration) for change in hybrid.prediction.changes] == [(0.2, 0.02)]
    assert [(change.at, change.reconfiguration) for change in instant.changes] == [(0.2, 0.0)]


def test_a_phase_that_never_has_a_path_is_told_and_no_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = imagined(folder, SCHEDULE, core="")
    hybrid = summarise(run).fabrics[1]
    never = hybrid.counterfactuals[1]
    one, two = never.phases
    assert (one.phase, one.problem) == ("one", "")
    assert one.duration == pytest.approx(8e9 / 100e9 * 9038 / 8948 + 0.015)
    assert (two.duration, never.end) == (None, None)
    assert "no path from h" in two.problem
    show_counterfactuals(Console(width=80), summarise(run))
    printed = capsys.readouterr().out
    assert "hybrid, by the model alone (nothing here is measured):" in printed
    assert ["no", "reconfiguration", "no", "path", "-", "-", "-"] in [line.split() for line in printed.splitlines()]
    assert "no reconfiguration: two: no path from h" in printed


def test_the_manifest_has_them(folder: Path) -> None:
    run = imagined(folder, SCHEDULE, core="")
    run.directory.mkdir()
    write_run(run)
    tree, hybrid = json.loads((run.directory / "manifest.json").read_text())["fabrics"]
    assert tree["counterfactuals"] == []
    instant, never = hybrid["counterfactuals"]
    # Phase one ends with the thinking after it; phase two waits for its circuits until 0.2 s.
    one = two = 8e9 / 100e9 * 9038 / 8948
    assert instant["phases_s"]["two"] == pytest.approx(0.2 - (one + 0.015) + two)
    assert never["phases_s"]["two"] is never["end_s"] is None
    assert set(never["problems"]) == {"two"}
    assert read_run(run.directory).manifest.fabrics[1].counterfactuals[0].kind == "no dark time"
