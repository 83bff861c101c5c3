"""The inner program and its room where something goes wrong that nobody expected; no lab is built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emu.lab import inner, rooms, session
from emu.lab.errors import LabError
from emu.lab.job import MEASUREMENT, Job, decode_progress
from emu.measurement import Finding, Measurement
from emu.progress import Progress
from emu.scenario import load

SCENARIO = """\
fabrics: [{kind: fat-tree, k: 4}]
workload: {kind: collectives, steps: [{name: a, collective: all-reduce, size: 1GiB}]}
"""
NOISY = """
import os
from emu.lab import inner
from emu.progress import Progress
tell = inner.teller(inner.keep_for_progress())
print("a plugin says something")
os.system("echo a program too")
tell(Progress("build", "16 hosts", "f"))
"""


class Broken:
    """A session that measures something and then meets a defect."""

    def __init__(self, *_: Any) -> None:  # noqa: ANN401 - as Session
        self.measurement = Measurement("f", 1.0, 1.0)
        self.recorder = SimpleNamespace()

    def measure(self) -> Measurement:
        """See Session."""
        self.measurement.findings.append(Finding("link", "t0:1", "slow"))
        raise ZeroDivisionError("by zero")


def test_a_defect_in_a_lab_does_not_cost_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.yaml"
    path.write_text(SCENARIO)
    monkeypatch.setattr(session, "Session", Broken)
    inner._work(Job("measure", load(path).to_json(), 0), tmp_path, lambda progress: None)
    measurement = Measurement.read(tmp_path / MEASUREMENT)
    assert [finding.place for finding in measurement.findings] == ["t0:1"]
    assert measurement.error == "defect: ZeroDivisionError: by zero"


class Dying(Broken):
    """A session whose lab breaks, so that its counters cannot be read either."""

    def measure(self) -> Measurement:
        """See Session."""
        try:
            raise LabError("Open vSwitch has ended during the run")
        finally:
            raise LabError("ovs-ofctl failed")


def test_the_reason_of_a_lab_that_broke_is_its_first_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.yaml"
    path.write_text(SCENARIO)
    monkeypatch.setattr(session, "Session", Dying)
    inner._work(Job("measure", load(path).to_json(), 0), tmp_path, lambda progress: None)
    assert Measurement.read(tmp_path / MEASUREMENT).error == "Open vSwitch has ended during the run"


def test_nothing_but_progress_is_on_the_standard_output() -> None:
    done = subprocess.run([sys.executable, "-c", NOISY], capture_output=True, check=True)
    assert decode_progress(done.stdout) == Progress("build", "16 hosts", "f")
    assert done.stderr.splitlines().count(b"a program too") == 1


def test_a_second_interrupt_does_not_leave_the_lab_running(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE)
    wait, calls = process.wait, []

    def interrupted(timeout: float | None = None) -> int:
        calls.append(timeout)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return wait(timeout)

    monkeypatch.setattr(process, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rooms._stop(process)
    assert process.poll() == -9
