"""`emu export`: what it writes where, and what it refuses."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import pytest

from emu.cli.app import run_command
from emu.errors import InputError
from emu.export.formats import BINARY, WRITERS, check_format, export
from emu.export.names import MEANINGS
from tests.unit.export import hand_made
from tests.unit.export.golden import exported

TEXT_FORMATS = sorted(set(MEANINGS) - BINARY)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one message of a command that must be refused."""
    assert run_command(["export", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("emu: error: ")
    assert said.err.count("\n") == 1
    return said.err


def test_every_named_format_has_a_writer() -> None:
    assert list(WRITERS) == list(MEANINGS)


@pytest.mark.parametrize("to", TEXT_FORMATS)
def test_a_text_format_goes_to_the_standard_output(
    run: Path, to: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run_command(["export", str(run), "--to", to, "--fabric", "optical"]) == 0
    assert capsysbinary.readouterr().out.decode() == exported(run, to, "optical")


def test_out_names_a_file(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "trace.json"
    assert run_command(["export", str(run), "--to", "chrome-trace", "--out", str(out)]) == 0
    assert len(json.loads(out.read_text())["traceEvents"]) > 100
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_notes_go_to_the_standard_error(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["export", str(run), "--to", "hpcc-fct", "--fabric", "optical", "--repeat", "1"]) == 0
    assert capsys.readouterr().err == "left out: 1 charged transfers, which sent no packets\n"


def test_an_unknown_format_is_refused_with_the_valid_ones(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, str(run), "--to", "perfetto")
    assert all(name in message for name in MEANINGS)
    with pytest.raises(InputError, match="did you mean 'hpcc-fct'"):
        check_format("hpcc")


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is no whole run directory" in refused(capsys, str(tmp_path), "--to", "prometheus")


def test_an_unknown_fabric_or_repeat_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, str(run), "--to", "prometheus", "--fabric", "optcal")
    assert "no measured fabric 'optcal'; did you mean 'optical'?" in message
    assert "no repeat 3; valid: 1 to 2" in refused(capsys, str(run), "--to", "prometheus", "--repeat", "3")


def test_a_run_without_collectives_has_no_nccl_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = hand_made.outcome(tmp_path, tmp_path / "run")
    for fabric in made.fabrics:
        for repeat in fabric.measurement.repeats:
            repeat.trace.collectives = []
    directory = str(hand_made.write(tmp_path, made))
    for to in ("nccl-tests", "nccl-json"):
        message = refused(capsys, directory, "--to", to, "--fabric", "optical")
        assert "ran no collectives" in message
        assert "--to hpcc-fct" in message


def test_a_run_that_measured_nothing_is_refused(tmp_path: Path) -> None:
    made = hand_made.outcome(tmp_path, tmp_path / "run")
    for fabric in made.fabrics:
        fabric.measurement.repeats = []
    with pytest.raises(InputError, match="no measured repeat"):
        exported(hand_made.write(tmp_path, made), "prometheus")


def test_a_file_that_cannot_be_made_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "no" / "such" / "file")
    assert "No such file or directory" in refused(capsys, str(run), "--to", "prometheus", "--out", missing)
    assert "is a directory" in refused(capsys, str(run), "--to", "prometheus", "--out", str(tmp_path))


def test_a_refused_export_leaves_an_old_file_alone(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "table.txt"
    out.write_text("old")
    refused(capsys, str(run), "--to", "nccl-tests", "--out", str(out))
    assert out.read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


def test_a_full_disk_is_one_message(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = Path("/dev/full")
    assert full.exists()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(io.FileIO(full, "w"), 16)))
    assert run_command(["export", str(run), "--to", "prometheus"]) == 1
    assert "No space left on device" in capsys.readouterr().err


def test_the_help_names_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["export", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in MEANINGS)
    assert "emu export runs/first" in said


def test_a_run_can_be_exported_after_it_was_moved(run: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(run, moved)
    assert exported(moved, "prometheus") == exported(run, "prometheus")


def test_exports_are_the_same_each_time(run: Path) -> None:
    for to in TEXT_FORMATS:
        first, second = io.BytesIO(), io.BytesIO()
        export(run, to, first, fabric="optical")
        export(run, to, second, fabric="optical")
        assert first.getvalue() == second.getvalue()
