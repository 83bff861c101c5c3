"""A run whose controller, or one switch's connection, is lost around a change of circuits says so and ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from emu.progress import Progress
from emu.runner import run
from tests.lab.runs.machine import command_of, descendants

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

_SCENARIO = """
emulation: {scale: {sigma: 400, beta: 20000}}
fabrics:
  - kind: hybrid
    pods: 2
    hosts_per_pod: 1
    uplinks: 2
    reconfiguration: 40ms
    circuits: {o0: [1-3]}
    schedule: [{at: 20ms, circuits: {o0: [1-4]}}]
workload:
  kind: collectives
  steps:
    - {name: ring, phase: training, collective: all-reduce, algorithm: ring, size: 4GB}
"""
"""TDF 50: the change is handed over 0.8 s after time zero, begins at 1 s and takes 2 s; the ring takes far longer."""
_MOMENTS = {"prepared": 0.9, "dark": 2.0}
_PATIENCE = 20.0
"""Seconds from the loss in which a run must have ended: the ring would take longer by far if nobody noticed."""


def _controller() -> int:
    return next(pid for pid in descendants(os.getpid()) if "controllers.process" in command_of(pid))


def _kill_controller() -> None:
    os.kill(_controller(), signal.SIGKILL)


def _cut_one_connection() -> None:
    inside = ["nsenter", "-t", str(_controller()), "-n"]
    listing = subprocess.run([*inside, "ss", "-Htn", "sport", "=", ":6653"], check=True, capture_output=True, text=True)
    peer = next(line.split()[4] for line in listing.stdout.splitlines() if line.startswith("ESTAB"))
    port = peer.rpartition(":")[2]
    subprocess.run(
        [*inside, "ss", "-K", "sport", "=", ":6653", "dport", "=", f":{port}"], check=True, capture_output=True
    )


@pytest.mark.parametrize("moment", sorted(_MOMENTS))
@pytest.mark.parametrize(
    ("loss", "words"),
    [(_kill_controller, "the controller process has ended"), (_cut_one_connection, "its OpenFlow connection is lost")],
)
def test_a_loss_amid_a_change_is_told(tmp_path: Path, moment: str, loss: Callable[[], None], words: str) -> None:
    scenario = tmp_path / "change.yaml"
    scenario.write_text(_SCENARIO)
    lost: list[float] = []
    begun = threading.Event()

    def lose() -> None:
        loss()
        lost.append(time.monotonic())

    def listen(progress: Progress) -> None:
        if progress.stage == "traffic" and not begun.is_set():
            begun.set()
            threading.Timer(_MOMENTS[moment], lose).start()

    outcome = run(scenario, out=tmp_path / "run", listener=listen)
    assert time.monotonic() - lost[0] < _PATIENCE
    assert outcome.verdict == "INVALID"
    reasons = "\n".join(f"{reason.place}: {reason.text}" for reason in outcome.fabrics[0].verdict.reasons)
    assert re.search(rf"lab: circuits: .*{words}", reasons)
    assert "the workload did not come to its end" in reasons
