"""Runs that something spoils from outside must not pass, and must say what it was.

Nothing in emu knows of these spoils: they are processes, tc, ovs-ofctl and socket options that this test brings to bear
on a lab it finds among its own children. Each has an unspoiled twin, the same scenario in the same test run; a spoil
proves nothing where the twin does not pass.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from controllers.epochs import Epoch
from controllers.routes import path, routes
from emu.outcome import Outcome
from emu.progress import Progress
from emu.runner import run
from tests.lab.runs.spoils import lab_process, reasons, unspoiled
from topologies.fabric import Port
from topologies.fat_tree import fat_tree

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]

_SCENARIO = """
emulation:
  scale: {{sigma: {sigma}, beta: {beta}}}
fabrics:
  - {{kind: fat-tree, k: 4}}
workload:
  kind: collectives
  steps:
    - {{name: ring, phase: training, collective: all-reduce, algorithm: ring, size: 4GB, repeat: 2}}
"""
_CALM = {"sigma": 400, "beta": 20000}  # 20 Mb/s a NIC

Spoil = Callable[[ExitStack], None]


def _run(directory: Path, scale: dict[str, int], stage: str = "", spoil: Spoil | None = None) -> Outcome:
    """Run the scenario; at the first sign of `stage`, spoil it."""
    directory.mkdir()
    scenario = directory / "ring.yaml"
    scenario.write_text(_SCENARIO.format(**scale))
    done = False
    with ExitStack() as stack:

        def listen(progress: Progress) -> None:
            nonlocal done
            if spoil is not None and progress.stage == stage and not done:
                done = True
                spoil(stack)

        outcome = run(scenario, out=directory / "run", listener=listen)
    assert spoil is None or done, f"the run never came to {stage}"
    return outcome


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The unspoiled run, VALID in at least one of three tries."""
    return unspoiled(lambda folder: _run(folder, _CALM), tmp_path_factory)


def _inside(*command: str) -> None:
    """Run a command in the lab's network and mount namespaces, talking to its Open vSwitch."""
    seal = ["nsenter", "-t", str(lab_process("ovs-vswitchd ")), "-n", "-m", "env", "OVS_RUNDIR=/run/emu/ovs"]
    subprocess.run([*seal, *command], check=True, capture_output=True)


# -- the spoils ------------------------------------------------------------


def _hog_processors(stack: ExitStack) -> None:
    for _ in range(2 * (os.cpu_count() or 1)):
        hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        stack.callback(hog.wait)
        stack.callback(hog.kill)


def _shrink_buffers(_: ExitStack) -> None:
    libc, pid = ctypes.CDLL(None, use_errno=True), lab_process("ovs-vswitchd ")
    pidfd = os.pidfd_open(pid)
    for fd in os.listdir(f"/proc/{pid}/fd"):
        if not os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
            continue
        copy = socket.socket(fileno=libc.syscall(438, pidfd, int(fd), 0))
        if copy.family == socket.AF_PACKET:
            copy.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 << 10)  # the kernel doubles it
        copy.close()
    os.close(pidfd)


def _slow_a_link(_: ExitStack) -> None:
    place = ("dev", "t2-eth1", "parent", "1:", "classid", "1:1")
    shape = ("rate", "14mbit", "burst", "9100", "cburst", "9100", "quantum", "9100", "overhead", "24")
    _inside("tc", "class", "change", *place, "htb", *shape)


def _divert_a_flow(_: ExitStack) -> None:
    """h3 -> h4 leaves its pod by one of t1's two uplinks, ports 3 and 4; pin it to the other."""
    fabric = fat_tree(k=4)
    src, dst = Port("h3", 0), Port("h4", 0)
    way = path(fabric, routes(fabric, Epoch()), src, dst)
    assert way is not None
    match = f"ip,nw_src={fabric.address(src)},nw_dst={fabric.address(dst)}"
    rule = f"priority=60000,{match},actions=output:{7 - way[1].number}"
    _inside("ovs-ofctl", "-O", "OpenFlow14", "add-flow", way[1].node, rule)


# -- what they must lead to ------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    return tmp_path / "spoiled"


def test_busy_processors_are_named(twin: Outcome, folder: Path) -> None:
    outcome = _run(folder, _CALM, "traffic", _hog_processors)
    assert outcome.verdict != "VALID"
    assert "processors" in reasons(outcome)


def test_small_switch_buffers_are_named(twin: Outcome, folder: Path) -> None:
    outcome = _run(folder, _CALM, "traffic", _shrink_buffers)
    assert outcome.verdict != "VALID"
    assert "65536" in reasons(outcome)
    assert "AF_PACKET" in reasons(outcome)


@pytest.mark.parametrize("stage", ["calibrate", "traffic"])
def test_a_slow_link_is_named(twin: Outcome, folder: Path, stage: str) -> None:
    outcome = _run(folder, _CALM, stage, _slow_a_link)
    assert outcome.verdict != "VALID"
    assert "t2:1 -> h4:0" in reasons(outcome)


def test_a_flow_on_a_wrong_path_is_named(twin: Outcome, folder: Path) -> None:
    outcome = _run(folder, _CALM, "traffic", _divert_a_flow)
    assert outcome.verdict != "VALID"
    assert "t1" in reasons(outcome)
    assert "rule" in reasons(outcome)


def test_a_rate_beyond_the_datapath_is_named(twin: Outcome, folder: Path) -> None:
    """The twin's scenario at 2 Gb/s a NIC: sixteen of them are far more than any two cores switch."""
    outcome = _run(folder, {"sigma": 20, "beta": 200})
    assert outcome.verdict != "VALID"
    assert "datapath" in reasons(outcome)
