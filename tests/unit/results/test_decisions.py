"""What was decided about circuits, in the table of events."""

from __future__ import annotations

from pathlib import Path

from controllers.decisions import Decision
from emu.measurement import CircuitChange, Measurement
from emu.results import write_run
from emu.results.directory import read_run
from tests.unit.results.synthetic import outcome

DECISIONS = [
    Decision(0.25, "phase training", 0.5, "plan", 1, "mesh: takes no circuit away"),
    Decision(0.5, "epoch 1", None, "commit", 1, ""),
    Decision(0.75, "phase sync", 0.001, "keep", 1, "tree: no time"),
    Decision(1.25, "epoch 2", None, "abort", 2, "its circuits were still needed"),
    Decision(1.5, "epoch 3 to 7", None, "skip", 8, "nothing is in flight"),
    Decision(1.75, "epoch 9", None, "abort", 9, "o0 did not answer"),
]


def test_decisions_are_events_and_how_a_change_ended_is_told_once(tmp_path: Path) -> None:
    run = outcome(tmp_path, tmp_path)
    repeat = run.fabrics[1].measurement.repeats[0]
    repeat.decisions += DECISIONS
    repeat.changes = [
        CircuitChange(1, 0.25, 0.01, 0.25, 0.26, 0.0),
        CircuitChange(9, 1.75, 0.01, 1.75, 1.75, 0.0, "aborted: o0 did not answer"),
    ]
    write_run(run)
    rows = [row for row in read_run(tmp_path).tables["events"] if (row["fabric"], row["repeat"]) == ("optical", 1)]
    assert [(row["at_s"], row["event"], row["subject"]) for row in rows] == [
        (0.25, "dark", "epoch 1"),
        (0.25, "plan", "epoch 1"),
        (0.26, "lit", "epoch 1"),
        (0.75, "keep", "epoch 1"),
        (1.25, "aborted", "epoch 2"),
        (1.5, "skip", "epoch 8"),
        (1.75, "aborted", "epoch 9"),
    ]
    assert rows[1]["detail"] == "phase training, slack 0.5 s: mesh: takes no circuit away"
    assert rows[4]["detail"] == "epoch 2: its circuits were still needed"


def test_a_lab_hands_decisions_back(tmp_path: Path) -> None:
    measurement = outcome(tmp_path, tmp_path).fabrics[1].measurement
    measurement.repeats[0].decisions[:] = DECISIONS
    path = tmp_path / "measurement.json"
    measurement.write(path)
    assert Measurement.read(path).repeats[0].decisions == DECISIONS
