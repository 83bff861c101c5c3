"""Which interpreter and which library the controller process takes, and what is said where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from controllers.channel import ControllerError
from controllers.process import INTERPRETER, ControllerProcess, interpreter


def test_the_controller_runs_in_this_interpreter_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INTERPRETER, raising=False)
    assert interpreter() == sys.executable
    monkeypatch.setenv(INTERPRETER, "")
    assert interpreter() == sys.executable


def test_another_is_found_by_its_path_or_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link stays a link: followed, it would no longer be its virtual environment's."""
    link = tmp_path / "python-of-ryu"
    link.symlink_to(sys.executable)
    monkeypatch.setenv(INTERPRETER, str(link))
    assert interpreter() == str(link)
    monkeypatch.setenv(INTERPRETER, link.name)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert interpreter() == str(link)


def test_one_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INTERPRETER, "/nowhere/python")
    process = ControllerProcess(tmp_path / "controller.sock")
    with pytest.raises(ControllerError, match="EMU_CONTROLLER_PYTHON=/nowhere/python: there is no such program"):
        process.start()
    process.stop()


@pytest.mark.parametrize(
    ("library", "reason"), [("pox", "EMU_RYU=pox: it is either ryu or os_ken"), ("ryu", "No module")]
)
def test_a_library_that_is_unknown_or_missing_is_named(
    library: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter of the tests has os-ken, not Ryu."""
    monkeypatch.delenv(INTERPRETER, raising=False)
    monkeypatch.setenv("EMU_RYU", library)
    with pytest.raises(ControllerError, match=reason):
        ControllerProcess(tmp_path / "controller.sock").start(5)
