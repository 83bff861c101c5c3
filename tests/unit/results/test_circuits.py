"""The rows on circuits: four figures that are never mixed, and what each circuit carried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emu.measurement import CircuitChange, CircuitUse, DataPlane, Service
from emu.results.circuits import change_row, use_row
from emu.results.columns import CIRCUIT_USE, CIRCUITS
from emu.results.directory import read_run, write_run
from tests.unit.results.synthetic import outcome

COMMON = ("fabric", "repeat", "seed")
FIGURES = ("control_dark_s", "data_plane_dark_s", "service_dark_s", "transport_share_s")


def change() -> CircuitChange:
    """10 ms asked for; 11 ms for control, 12 and 14 ms on two OCSs, three flows that stood still for 13 to 30 ms."""
    return CircuitChange(
        epoch=3,
        asked_at=1.0,
        asked_dark=0.010,
        dark_at=1.001,
        lit_at=1.012,
        late_wall=0.001,
        data_plane=[
            DataPlane("o0", 0.012, 0.004, 0.0015, 0.003),
            DataPlane("o1", 0.014, 0.002, 0.0025, 0.002),
            DataPlane("o2"),
        ],
        service=[Service("a", 0.013), Service("b", 0.030), Service("c", 0.017)],
    )


def test_every_figure_comes_from_its_own_place() -> None:
    row = change_row(change(), tdf=20.0)
    assert [row[name] for name in FIGURES] == pytest.approx([0.011, 0.014, 0.017, 0.003])
    assert row["asked_dark_s"] == 0.010
    assert row["asked_dark_wall_s"] == pytest.approx(0.2)
    assert row["data_plane_dark_wall_s"] == pytest.approx(0.28)
    assert row["data_plane_resolution_wall_s"] == 0.004
    assert (row["last_frame_wall_s"], row["first_frame_wall_s"]) == (0.0025, 0.003)
    assert (row["service_dark_max_s"], row["affected_flows"]) == (0.030, 3)
    assert set(row) == {column.name for column in CIRCUITS.columns} - set(COMMON)


def test_what_was_not_measured_is_empty_and_never_what_was_asked() -> None:
    bare = CircuitChange(1, 1.0, 0.010, 1.0, 1.011, 0.0)
    row = change_row(bare, 20.0)
    assert [row[name] for name in FIGURES[1:]] == [None, None, None]
    assert row["affected_flows"] == 0
    assert row["data_plane_resolution_wall_s"] is None
    bare.service = [Service("a", 0.03)]
    assert change_row(bare, 20.0)["transport_share_s"] is None
    bare.data_plane = [DataPlane("o0", problem="no probe passed o0:1 -> o0:4")]
    row = change_row(bare, 20.0)
    assert row["data_plane_dark_s"] is None
    assert row["outcome"] == "committed; no probe passed o0:1 -> o0:4"


def test_an_aborted_change_has_no_dark_time_at_all() -> None:
    row = change_row(CircuitChange(1, 1.0, 0.010, 1.5, 1.5, 0.0, "aborted: t0 did not answer"), 20.0)
    assert [row[name] for name in FIGURES] == [None] * 4


def test_a_circuits_payload_is_its_frames_less_their_headers() -> None:
    row = use_row(CircuitUse(2, "o0", 1, 4, 0.5, 0.25, bytes=10 * 9014 + 5 * 66, packets=15, lost=3), sigma=100.0)
    assert row["payload_bytes"] == 10 * 8948 * 100
    assert (row["packets"], row["lost_packets"], row["duty"]) == (15, 3, 0.25)
    assert set(row) == {column.name for column in CIRCUIT_USE.columns} - set(COMMON)


def test_both_tables_and_the_manifest_are_written_and_read(tmp_path: Path) -> None:
    run = outcome(tmp_path, tmp_path)
    repeat = run.fabrics[1].measurement.repeats[0]
    repeat.changes = [change()]
    repeat.circuits = [
        CircuitUse(0, "o0", 1, 3, 0.5, 0.25, 9014, 1, 2),
        CircuitUse(0, "o0", 7, None, 0.0, 0.0, 0, 0, 4),
    ]
    write_run(run)
    tables = read_run(tmp_path).tables
    assert tables["circuits"][0]["service_dark_s"] == 0.017
    used = [row for row in tables["circuit_use"] if row["repeat"] == 1]
    assert [(row["in_port"], row["out_port"], row["lost_packets"]) for row in used] == [(1, 3, 2), (7, None, 4)]
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (entry,) = manifest["fabrics"][1]["repeats"][0]["changes"]
    assert [entry[name] for name in FIGURES] == pytest.approx([0.011, 0.014, 0.017, 0.003])
    assert [plane["dark"] for plane in entry["data_plane"]] == [0.012, 0.014, None]
