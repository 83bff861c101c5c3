"""Changes of circuits that something spoils from outside must not pass, and must say what it was.

The spoils are rules taken away by ovs-ofctl, and processes stopped around the change; nothing in emu knows of them. The
unspoiled twin is the same scenario in the same test run: a spoil proves nothing where the twin does not pass.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from emu.measurement import CircuitChange
from emu.outcome import Outcome
from emu.progress import Progress
from emu.runner import run
from tests.lab.runs.spoils import lab_process, reasons, unspoiled

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

_SCENARIO = """
emulation:
  scale: {sigma: 400, beta: 20000}
transport: {rto_min: 1ms}
fabrics:
  - kind: hybrid
    pods: 3
    hosts_per_pod: 1
    uplinks: 2
    reconfiguration: 4ms
    circuits: {o0: [1-3, 2-5, 4-6]}
    schedule: [{at: 20ms, circuits: {o0: [1-4, 2-5, 3-6]}}]
workload:
  kind: collectives
  steps:
    - {name: ring, phase: training, collective: all-reduce, algorithm: ring, size: 2GB}
"""
"""TDF 50: the change begins 1 s after time zero and takes 200 ms, of a ring that takes 2.7 s. Every two pods always
have a circuit: that of t0 and t2 (ports 2 and 5) stays, the others move to other ports."""
_CHANGE, _DARK = 1.0, 0.2

Spoil = Callable[[], None]


def _run(directory: Path, spoil: Spoil | None = None) -> Outcome:
    """Run the scenario; at the first sign of traffic, spoil it."""
    directory.mkdir()
    scenario = directory / "ring.yaml"
    scenario.write_text(_SCENARIO)
    done = threading.Event()

    def listen(progress: Progress) -> None:
        if spoil is not None and progress.stage == "traffic" and not done.is_set():
            done.set()
            spoil()

    outcome = run(scenario, out=directory / "run", listener=listen)
    assert spoil is None or done.is_set()
    return outcome


def _change(outcome: Outcome) -> CircuitChange:
    (change,) = outcome.fabrics[0].measurement.repeats[0].changes
    return change


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The unspoiled run, VALID in at least one of three tries."""
    return unspoiled(_run, tmp_path_factory)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a spoiled run goes."""
    return tmp_path / "spoiled"


# -- the spoils ------------------------------------------------------------------------------------------------------


def _without_rule(in_port: int) -> Spoil:
    """The OCS loses the rule of one port."""

    def spoil() -> None:
        switch = ["nsenter", "-t", str(lab_process("ovs-vswitchd ")), "-n", "-m", "env", "OVS_RUNDIR=/run/emu/ovs"]
        rule = ["ovs-ofctl", "-O", "OpenFlow14", "del-flows", "o0", f"in_port={in_port}"]
        subprocess.run([*switch, *rule], check=True, capture_output=True)

    return spoil


def _stopped(process: str, seconds: float, before: float = 0.1) -> Spoil:
    """A process of the lab stands still around the change, from a little before it."""

    def spoil() -> None:
        pid = lab_process(process)
        for delay, what in ((0.0, signal.SIGSTOP), (seconds, signal.SIGCONT)):
            threading.Timer(_CHANGE - before + delay, os.kill, (pid, what)).start()

    return spoil


# -- what they must lead to ------------------------------------------------------------------------------------------


def test_the_twin_has_all_four_figures(twin: Outcome) -> None:
    change = _change(twin)
    assert change.asked_dark == 0.004
    assert change.data_plane_dark is not None
    assert change.service_dark is not None
    assert abs(change.control_dark - 0.004) < 0.001
    assert abs(change.data_plane_dark - 0.004) < 0.001 + (change.resolution_wall or 0) / 50
    assert change.transport_share == change.service_dark - change.data_plane_dark
    used = twin.fabrics[0].measurement.repeats[0].circuits
    assert {(use.in_port, use.out_port) for use in used if use.epoch == 1 and use.packets} >= {(1, 4), (2, 5), (3, 6)}


def test_a_rule_missing_before_the_change_is_named_by_its_circuit(twin: Outcome, folder: Path) -> None:
    outcome = _run(folder, _without_rule(1))
    assert outcome.verdict == "INVALID"
    assert "no probe passed the circuit o0:1 -> o0:3 before it was to go dark" in reasons(outcome)


def test_a_rule_missing_to_the_end_is_named_by_its_switch(twin: Outcome, folder: Path) -> None:
    outcome = _run(folder, _without_rule(2))
    assert outcome.verdict == "INVALID"
    assert "rule: " in reasons(outcome)
    assert "o0" in reasons(outcome)


def test_a_switch_that_acts_late_is_named(twin: Outcome, folder: Path) -> None:
    """It stands still over DARK and LIGHT: commands were sent in time, and nothing came of them for 100 ms more."""
    outcome = _run(folder, _stopped("ovs-vswitchd ", 0.4))
    assert outcome.verdict != "VALID"
    assert "4 ms were asked for" in reasons(outcome)
    assert _change(outcome).late_wall < _DARK / 2


def test_a_change_committed_300_ms_late_is_named(twin: Outcome, folder: Path) -> None:
    outcome = _run(folder, _stopped("controllers.process", 0.4))
    assert outcome.verdict == "INVALID"
    assert "epoch 1" in reasons(outcome)
    assert "late, at 200 ms of dark wall time" in reasons(outcome)
    assert _change(outcome).late_wall > _DARK


def test_a_switch_that_does_not_acknowledge_is_named(twin: Outcome, folder: Path) -> None:
    """It stands still for longer than the controller waits for any answer."""
    outcome = _run(folder, _stopped("ovs-vswitchd ", 3.5))
    assert outcome.verdict == "INVALID"
    change = _change(outcome)
    assert re.match(r"aborted: (t\d|o0): ", change.outcome)
    assert f"the change of circuits was {change.outcome}" in reasons(outcome)
    assert (change.data_plane_dark, change.service_dark, change.transport_share) == (None, None, None)
