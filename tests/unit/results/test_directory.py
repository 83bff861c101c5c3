"""Run directories: what is written, what is read back, what is refused."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import jsonschema
import pytest

from emu.errors import EmuError, InputError
from emu.measurement import CircuitChange
from emu.outcome import Outcome
from emu.records import FailureRecord
from emu.results import create_directory, manifest_schema, read_run, write_run
from emu.results.columns import TABLES
from tests.unit.results.synthetic import FLOWS, outcome, scenario


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenario")


@pytest.fixture(scope="module")
def written(folder: Path) -> Outcome:
    """A good run with two repeats on two fabrics, in its directory."""
    run = outcome(folder, folder / "run")
    run.directory.mkdir()
    write_run(run)
    return run


# -- the directory ---------------------------------------------------------------------------------------------------


def test_without_out_it_is_named_after_scenario_and_time(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (create_directory(scenario(folder)) for _ in range(2))
    assert re.fullmatch(r"runs/example-\d{8}-\d{6}", str(first))
    assert first != second
    assert first.is_dir()
    assert second.is_dir()


def test_out_is_made_with_its_parents_or_taken_empty(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    assert create_directory(scenario(folder), out) == out
    assert create_directory(scenario(folder), out) == out


def test_a_directory_that_holds_anything_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        create_directory(scenario(folder), tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_file_in_the_way_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="cannot make the run directory"):
        create_directory(scenario(folder), tmp_path / "out")


def test_a_directory_that_is_gone_is_an_error_not_a_traceback(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(EmuError, match="cannot write"):
        write_run(outcome(folder, tmp_path / "gone"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_under_sudo_the_caller_owns_the_run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "1235")
    write_run(outcome(folder, tmp_path))
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in (tmp_path, *tmp_path.iterdir())}
    assert owners == {(1234, 1235)}


def test_it_holds_the_documented_files_and_no_drafts(written: Outcome) -> None:
    expected = {table.file for table in TABLES} | {"fabrics.json", "manifest.json", "scenario.json", "summary.json"}
    assert {path.name for path in written.directory.iterdir()} == expected


def test_nothing_inside_knows_where_it_is(written: Outcome) -> None:
    for path in written.directory.iterdir():
        assert str(written.directory.parent) not in path.read_text(), path.name


# -- the manifest ----------------------------------------------------------------------------------------------------


def test_the_manifest_fits_its_schema(written: Outcome) -> None:
    schema = manifest_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads((written.directory / "manifest.json").read_text()), schema)


def test_the_schema_refuses_another_version(written: Outcome) -> None:
    manifest = json.loads((written.directory / "manifest.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**manifest, "schema_version": 2}, manifest_schema())


def test_the_manifest_tells_what_was_run(written: Outcome) -> None:
    manifest = json.loads((written.directory / "manifest.json").read_text())
    assert (manifest["name"], manifest["seed"], manifest["repeat"], manifest["verdict"]) == ("example", 7, 2, "VALID")
    assert manifest["began"] == "2023-11-14T22:13:20Z"
    assert manifest["scale"] == {"sigma": 100, "beta": 2000, "tdf": 20, "chosen": "given"}
    assert manifest["transport"] == {"cc": "cubic", "rto_min": 0.004, "slow_start_after_idle": False, "initcwnd": 10}
    assert manifest["versions"].keys() >= {"python", "kernel", "numpy", "os-ken"}
    assert isinstance(manifest["emu_revision"], str)
    electrical, optical = manifest["fabrics"]
    assert (electrical["kind"], electrical["hosts"], electrical["ocses"]) == ("fat-tree", 16, 0)
    assert (optical["name"], optical["kind"], optical["ocses"], optical["reconfiguration_s"]) == (
        "optical",
        "hybrid",
        1,
        0.01,
    )
    assert electrical["parameters"]["k"] == 4
    assert electrical["facts"]["datapath"] == "user"
    assert [repeat["seed"] for repeat in electrical["repeats"]] == [7, 8]
    assert electrical["repeats"][0]["health"]["idle_cpu"] == 0.45


def test_the_scenario_beside_it_has_the_hash(written: Outcome) -> None:
    manifest = json.loads((written.directory / "manifest.json").read_text())
    text = (written.directory / manifest["scenario_file"]).read_bytes()
    assert hashlib.sha256(text).hexdigest() == manifest["scenario_hash"]


def test_a_missing_fabric_makes_the_run_partial(folder: Path, tmp_path: Path) -> None:
    run = outcome(folder, tmp_path)
    run.fabrics.pop()
    write_run(run)
    assert read_run(tmp_path).manifest.partial


def test_a_lab_that_never_was_is_written_too(folder: Path, tmp_path: Path) -> None:
    run = outcome(folder, tmp_path)
    for fabric in run.fabrics:
        fabric.measurement.facts = fabric.measurement.cross_check = None
        fabric.measurement.repeats.clear()
        fabric.measurement.error = "ovs-vswitchd did not start"
    write_run(run)
    stored = read_run(tmp_path)
    assert stored.manifest.fabrics[0].error == "ovs-vswitchd did not start"
    assert stored.tables["flows"] == []


# -- the tables ------------------------------------------------------------------------------------------------------


def test_what_is_read_back_is_what_was_measured(written: Outcome) -> None:
    stored = read_run(written.directory)
    measured = [row for f in written.fabrics for repeat in f.measurement.repeats for row in repeat.trace.flows]
    rows = stored.tables["flows"]
    assert [row["id"] for row in rows] == [row.id for row in measured]
    for row, record in zip(rows, measured, strict=True):
        assert row["fct_s"] == pytest.approx(record.fct, rel=1e-9)
        assert row["bytes"] == record.bytes
    assert stored.manifest.fabrics[0].verdict == written.fabrics[0].verdict


def test_collectives_have_the_bandwidths_of_nccl_tests(written: Outcome) -> None:
    """All-reduce of S = 512 MiB among 16: algbw = S/t, busbw = algbw * 2 * 15/16; all-gather: algbw * 15/16."""
    rows = read_run(written.directory).tables["collectives"]
    reduce = next(row for row in rows if row["id"] == "gradients#0" and row["fabric"] == "fat-tree")
    assert reduce["bytes"] == 512 << 20
    assert reduce["bytes_emulated"] == 5368709  # 536870912 / 100
    assert reduce["cct_s"] == pytest.approx(1.03 * reduce["ideal_s"], rel=1e-9)
    assert reduce["ratio"] == pytest.approx(1.03, rel=1e-9)
    assert reduce["cct_wall_s"] == pytest.approx(20 * reduce["cct_s"], rel=1e-9)
    assert reduce["algbw_Bps"] == pytest.approx(536870912 / reduce["cct_s"], rel=1e-9)
    assert reduce["busbw_Bps"] == pytest.approx(1.875 * reduce["algbw_Bps"], rel=1e-9)
    gather = next(row for row in rows if row["id"] == "sweep#0")
    assert gather["busbw_Bps"] == pytest.approx(0.9375 * gather["algbw_Bps"], rel=1e-9)


def test_repeats_and_seeds_are_told_apart(written: Outcome) -> None:
    rows = read_run(written.directory).tables["phases"]
    assert {(row["fabric"], row["repeat"], row["seed"]) for row in rows} == {
        (fabric, repeat, 6 + repeat) for fabric in ("fat-tree", "optical") for repeat in (1, 2)
    }


def test_links_are_in_modelled_units_with_the_labs_beside(written: Outcome) -> None:
    rows = read_run(written.directory).tables["links"]
    row = next(row for row in rows if row["link"] == "h0:0" and row["fabric"] == "fat-tree")
    assert row["peer"] == str(written.fabrics[0].built.fabric.peer(written.fabrics[0].built.fabric.nics("h0")[0]))
    assert (row["rate_bps"], row["rate_emulated_bps"]) == (100_000_000_000, 50_000_000)
    expected = written.fabrics[0].prediction.link_bytes[written.fabrics[0].built.fabric.nics("h0")[0]]
    assert row["expected_bytes"] == expected
    assert row["payload_bytes"] == pytest.approx(expected, rel=1e-4)
    # In the ideal every NIC sends all the time, so a run of 1.03 times that long leaves it 1/1.03 busy, and
    # acknowledgements of 90 bytes for every second frame of 9038 add half a percent of that.
    assert row["utilisation"] == pytest.approx(1.005 / 1.03, rel=1e-3)


def test_circuits_and_events_tell_of_changes_and_failures(folder: Path, tmp_path: Path) -> None:
    run = outcome(folder, tmp_path)
    repeat = run.fabrics[1].measurement.repeats[0]
    repeat.trace.failures.append(FailureRecord("sweep#1", "h3 is gone", 0.5))
    repeat.changes.append(CircuitChange(2, 2.0, 0.01, 2.0, 2.0, 0.0, "aborted: o0 did not answer"))
    repeat.jumps, repeat.jumped = 3, 0.75
    write_run(run)
    stored = read_run(tmp_path)
    change = stored.tables["circuits"][0]
    assert (change["fabric"], change["epoch"], change["asked_at_s"], change["outcome"]) == (
        "optical",
        1,
        1.0,
        "committed",
    )
    assert change["control_dark_s"] == pytest.approx(0.0102)
    assert change["control_dark_wall_s"] == pytest.approx(0.204)
    events = [(row["event"], row["subject"]) for row in stored.tables["events"] if row["repeat"] == 1]
    assert events == [
        ("failure", "sweep#1"),
        ("dark", "epoch 1"),
        ("lit", "epoch 1"),
        ("aborted", "epoch 2"),
        ("jumps", ""),
    ]
    assert stored.tables["events"][4]["detail"] == "3 jumps over 0.75 s of idle time"


def test_flow_lists_have_slowdowns(folder: Path, tmp_path: Path) -> None:
    write_run(outcome(folder, tmp_path, FLOWS))
    rows = read_run(tmp_path).tables["flows"]
    first = next(row for row in rows if row["id"] == "flows/f0")
    # 16 MiB alone at 100 Gb/s, 8948 of 9038 bytes of wire time: 1.3556 ms.
    assert first["ideal_s"] == pytest.approx((16 << 20) * 8 / 100e9 * 9038 / 8948, rel=1e-9)
    assert first["slowdown"] == pytest.approx(first["fct_s"] / first["ideal_s"])
    assert read_run(tmp_path).tables["collectives"] == []


# -- reading what cannot be read -------------------------------------------------------------------------------------


@pytest.fixture
def stored(written: Outcome, tmp_path: Path) -> Path:
    """A copy of the run to be spoiled."""
    return Path(shutil.copytree(written.directory, tmp_path / "copy"))


@pytest.mark.parametrize("name", ["manifest.json", "links.csv", "scenario.json"])
def test_a_missing_file_is_named(stored: Path, name: str) -> None:
    (stored / name).unlink()
    with pytest.raises(InputError, match=re.escape(name)):
        read_run(stored)


def test_a_later_version_is_refused(stored: Path) -> None:
    path = stored / "manifest.json"
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(InputError, match=r"schema_version.*this emu reads schema version 1"):
        read_run(stored)


def test_a_table_without_a_column_is_refused(stored: Path) -> None:
    path = stored / "links.csv"
    path.write_text(path.read_text().replace("utilisation", "use", 1))
    with pytest.raises(InputError, match="no column utilisation"):
        read_run(stored)


def test_a_cell_that_is_no_number_is_named_by_line(stored: Path) -> None:
    path = stored / "circuits.csv"
    lines = path.read_text().splitlines()
    lines[2] = lines[2].replace(",1,1,0.01,", ",one,1,0.01,")
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"circuits\.csv:3"):
        read_run(stored)
