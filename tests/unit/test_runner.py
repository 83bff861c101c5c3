"""What a run leaves behind where it is refused; no lab is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu import runner
from emu.errors import EmuError, InputError
from emu.lab.job import Job
from emu.lab.rooms import HostRoom
from emu.progress import Listener

FAT_TREE = "fabrics: [{kind: fat-tree, k: 4, rate: 100Gbps}]\n"
DARK = "fabrics: [{kind: hybrid, pods: 4, reconfiguration: 10ms}]\n"  # no circuits and no core
ALL_REDUCE = "workload: {kind: collectives, steps: [{name: a, collective: all-reduce, size: 1GiB}]}\n"


@pytest.fixture(autouse=True)
def _no_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any machine will do, and none opens a lab."""

    def run(room: HostRoom, job: Job, directory: Path, listener: Listener) -> int:
        raise AssertionError("a lab was opened")

    monkeypatch.setattr(HostRoom, "check", lambda room, directory: None)
    monkeypatch.setattr(HostRoom, "run", run)


def refused(folder: Path, text: str) -> InputError:
    path = folder / "some.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        runner.run(path, out=folder / "out")
    return caught.value


def test_a_scale_that_takes_too_long_leaves_no_run_directory(tmp_path: Path) -> None:
    error = refused(tmp_path, "emulation: {scale: {sigma: 1, beta: 100000}}\n" + FAT_TREE + ALL_REDUCE)
    assert "more than its budget" in error.problem
    assert not (tmp_path / "out").exists()


def test_what_no_circuits_carry_is_refused_before_a_lab_is_opened(tmp_path: Path) -> None:
    assert "can never end" in refused(tmp_path, DARK + ALL_REDUCE).problem
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("2026|INFO|fine\nOSError: [Errno 28] No space left on device\n", "the lab ended early: OSError: [Errno 28]"),
        (None, "the lab was ended before it measured anything"),
    ],
)
def test_a_lab_that_finds_no_capacity_leaves_its_log_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str | None, reason: str
) -> None:
    def run(room: HostRoom, job: Job, directory: Path, listener: Listener) -> int:
        if log is not None:
            (directory / "lab.log").write_text(log)
        return 1

    monkeypatch.setattr(HostRoom, "run", run)
    path = tmp_path / "some.yaml"
    path.write_text(FAT_TREE + ALL_REDUCE)
    with pytest.raises(EmuError) as caught:
        runner.run(path, out=tmp_path / "out")
    assert str(caught.value).startswith(reason)
    assert str(caught.value).endswith(f"its log is {tmp_path}/out/labs/fat-tree/lab.log")
