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
from tests.lab.runs.spoils import MOMENTS, ONE_CHANGE, lab_process

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

_GONE = "its (OpenFlow connection is lost|connection was replaced by a new one)"
"""A switch whose connection is cut connects again at once; on a busy machine that is heard of first."""
_PATIENCE = 20.0
"""Seconds from the loss in which a run must have ended: the ring would take longer by far if nobody noticed."""


def _kill_controller() -> None:
    os.kill(lab_process("controllers.process"), signal.SIGKILL)


def _cut_one_connection() -> None:
    inside = ["nsenter", "-t", str(lab_process("controllers.process")), "-n"]
    listing = subprocess.run([*inside, "ss", "-Htn", "sport", "=", ":6653"], check=True, capture_output=True, text=True)
    peer = next(line.split()[4] for line in listing.stdout.splitlines() if line.startswith("ESTAB"))
    port = peer.rpartition(":")[2]
    subprocess.run(
        [*inside, "ss", "-K", "sport", "=", ":6653", "dport", "=", f":{port}"], check=True, capture_output=True
    )


@pytest.mark.parametrize("moment", sorted(MOMENTS))
@pytest.mark.parametrize(
    ("loss", "words"),
    [(_kill_controller, "the controller process has ended"), (_cut_one_connection, _GONE)],
)
def test_a_loss_amid_a_change_is_told(tmp_path: Path, moment: str, loss: Callable[[], None], words: str) -> None:
    scenario = tmp_path / "change.yaml"
    scenario.write_text(ONE_CHANGE)
    lost: list[float] = []
    begun = threading.Event()

    def lose() -> None:
        loss()
        lost.append(time.monotonic())

    def listen(progress: Progress) -> None:
        if progress.stage == "traffic" and not begun.is_set():
            begun.set()
            threading.Timer(MOMENTS[moment], lose).start()

    outcome = run(scenario, out=tmp_path / "run", listener=listen)
    assert time.monotonic() - lost[0] < _PATIENCE
    assert outcome.verdict == "INVALID"
    reasons = "\n".join(f"{reason.place}: {reason.text}" for reason in outcome.fabrics[0].verdict.reasons)
    assert re.search(rf"lab: circuits: .*{words}", reasons)
    assert "the workload did not come to its end" in reasons
