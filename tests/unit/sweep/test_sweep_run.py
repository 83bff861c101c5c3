"""Sweeps by the model: what is kept, resumed, written, drawn and told."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from emu.cli.app import run_command
from emu.results.directory import read_manifest
from emu.scenario import load
from emu.sweep.plot import plot_data, scale_of
from emu.sweep.points import points
from emu.sweep.running import run_sweep
from emu.sweep.store import Store
from emu.sweep.table import WHOLE, cells_of, rows_of
from tests.unit.sweep.test_sweep_spec import SCENARIO

SWEEP = "sweep: {parameters: {'workload.steps[0].size': [16MiB, 32MiB]}, seeds: [1, 2]}\n"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "example.yaml"
    path.write_text(SCENARIO + SWEEP)
    return path


@pytest.fixture(scope="module")
def swept(file: Path) -> Path:
    """A sweep that ran to its end."""
    out = file.parent / "out"
    assert run_command(["sweep", str(file), "--out", str(out)]) == 0
    return out


def test_the_table_has_a_row_for_each_point_fabric_and_phase(swept: Path) -> None:
    rows = list(csv.DictReader((swept / "sweep.csv").open()))
    assert len(rows) == 2 * 2 * 2 * 2  # sizes, seeds, fabrics, training and the whole
    fat_tree = [row for row in rows if row["fabric"] == "fat-tree" and row["phase"] == "training"]
    sizes, times = zip(*((row["workload.steps[0].size"], float(row["duration_s"])) for row in fat_tree), strict=True)
    assert sizes == ("16MiB", "16MiB", "32MiB", "32MiB")
    # A ring moves 2 * 15/16 of the size over each NIC: 100 Gb/s, of which 8948/9038 are payload.
    assert times[0] == pytest.approx(2 * 15 / 16 * 8 * (16 << 20) / (100e9 * 8948 / 9038), rel=1e-6)
    assert times[2] == pytest.approx(2 * times[0], rel=1e-6)
    assert {row["verdict"] for row in rows} == {"VALID"}
    assert all((swept / row["directory"] / "manifest.json").is_file() for row in rows)


def test_points_that_are_there_are_kept(file: Path, swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in swept.glob("points/*/manifest.json")}
    assert len(before) == 4
    assert run_command(["sweep", str(file), "--out", str(swept)]) == 0
    assert "4 points, 4 of which were there" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in swept.glob("points/*/manifest.json")} == before


def test_half_a_point_is_run_again(file: Path, swept: Path) -> None:
    found = points(load(file), "model")
    store = Store.open(swept)
    (store.place(found[2]) / "manifest.json").unlink()
    left = store.place(found[3])
    left.rename(left.with_name(left.name + ".part"))
    done = run_sweep(found, store, "model", jobs=1)
    assert [result.kept for result in done] == [True, True, False, False]
    assert all(store.holds(point) for point in found)
    assert not list(swept.glob("points/*.part"))


def test_a_sweep_that_is_killed_leaves_no_process_and_goes_on_later(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    sizes = ", ".join(f"{size}MiB" for size in range(16, 416))
    path.write_text(SCENARIO + f"sweep: {{parameters: {{'workload.steps[0].size': [{sizes}]}}}}\n")
    command = [sys.executable, "-m", "emu", "sweep", str(path), "--out", str(tmp_path / "out"), "--jobs", "1"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("out/points/*/manifest.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    children = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert children
    while any(_alive(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in children if _alive(pid)]
    found, store = points(load(path), "model"), Store(tmp_path / "out")
    held = [point for point in found if store.holds(point)]
    assert 2 <= len(held) < len(found)
    done = run_sweep(held, store, "model", jobs=1)
    assert all(result.kept for result in done)


def _alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_point_that_fails_is_told_and_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "failing.yaml"
    circuits = "[{o0: [t0-t1, t1-t2, t2-t3, t3-t0]}, {o0: [t0-t1]}]"
    text = SCENARIO.replace("    schedule: [{at: 10ms, circuits: {o0: [t0-t1, t0-t2, t1-t3]}}]\n", "")
    path.write_text(f"{text}sweep: {{parameters: {{fabrics.optical.circuits: {circuits}}}}}\n")
    assert run_command(["sweep", str(path), "--out", str(tmp_path / "out")]) == 1
    out = capsys.readouterr().out
    assert "failed: circuits={'o0': ['t0-t1']}, seed 5" in out
    assert "can never end" in out
    assert len(list(tmp_path.glob("out/points/*"))) == 1


def test_json_has_the_cells_over_the_seeds(file: Path, swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["sweep", str(file), "--out", str(swept), "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)
    assert len(cells) == 2 * 2 * 2
    assert {cell["seeds"] for cell in cells} == {2}
    assert all(cell["lowest"] <= cell["median"] <= cell["highest"] for cell in cells)


def test_the_page_needs_no_network_and_has_every_line(file: Path, swept: Path) -> None:
    html = (swept / "sweep.html").read_text()
    assert "default-src 'none'" in html
    assert "Plotly.react" in html
    assert "<script src" not in html
    done = run_sweep(points(load(file), "model"), Store.open(swept), "model")
    data = plot_data(cells_of(rows_of(done)))
    assert (data["axis"], data["kind"], data["phases"]) == ("size", "size", [WHOLE, "training"])
    assert [one["label"] for one in data["series"]] == ["fat-tree", "optical"]
    assert [line["x"] for line in data["lines"]["training"]] == [[16 << 20, 32 << 20]] * 2


@pytest.mark.parametrize(
    ("values", "kind", "numbers"),
    [
        (["10us", "1ms"], "seconds", [1e-5, 1e-3]),
        (["100Gbps"], "rate", [100e9]),
        (["1KiB"], "size", [1024]),
        ([4, 8], "number", [4, 8]),
        (["ring", "tree"], "words", ["ring", "tree"]),
        ([True, False], "words", ["True", "False"]),
    ],
)
def test_axes_take_the_kind_of_their_values(values: list[object], kind: str, numbers: list[object]) -> None:
    assert scale_of(values) == (kind, numbers)


def test_a_run_directory_is_no_place_for_a_sweep(file: Path, swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = next(swept.glob("points/*"))
    assert read_manifest(run).engine == "model"
    assert run_command(["sweep", str(file), "--out", str(run)]) == 2
    assert "is a run directory" in capsys.readouterr().err
