"""What breaks is reported with its name, in time, and never as a hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from controllers.channel import ControllerError, ControllerLost, RuleChange, SwitchLost
from controllers.client import ControllerClient
from controllers.process import ControllerProcess
from controllers.tables import Rule
from tests.lab.controllers.sealed import Lab, run, sealed

pytestmark = pytest.mark.lab

OLD, NEW = Rule(10, 2, in_port=1), Rule(10, 3, in_port=1)


def wait_lost(client: ControllerClient, timeout: float) -> dict[int, str]:
    """The switches lost within the time-out, with the reasons; returns at the first."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        lost = {event.dpid: event.reason for event in client.poll() if isinstance(event, SwitchLost)}
        if lost:
            return lost
        time.sleep(0.01)
    return {}


def wait_gone(pid: int, timeout: float = 3.0) -> bool:
    """Whether a process has ended within the time-out (a zombie has)."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


@sealed
def test_a_killed_switch_is_lost_within_three_seconds(lab: Lab) -> None:
    """The event names the switch; asking it anything afterwards is refused."""
    client = lab.bridges(1)
    lab.signal_switches(signal.SIGKILL)
    assert wait_lost(client, 3) == {1: "its OpenFlow connection is lost"}
    assert client.connected == set()
    with pytest.raises(ControllerError, match="switch 1: it is not connected"):
        client.install({1: ()}, 1)


@sealed
def test_a_frozen_switch_is_lost_and_comes_back(lab: Lab) -> None:
    """A switch that is connected but answers nothing times out with its name, is lost, and can be installed again."""
    client = lab.bridges(1)
    lab.signal_switches(signal.SIGSTOP)
    with pytest.raises(ControllerError, match=r"switch 1: no close of a bundle in time"):
        client.install({1: (OLD,)}, 0.3)
    assert wait_lost(client, 3.5)
    lab.signal_switches(signal.SIGCONT)
    client.wait_connected([1], 5)
    assert client.install({1: (OLD,)}, 5).rules == 1


@sealed
def test_what_the_switch_refuses_is_said_in_its_words(lab: Lab) -> None:
    """A full table fails the whole bundle: the old table stays, and the reason is OpenFlow's."""
    client = lab.bridges(1)
    client.install({1: (OLD,)}, 5)
    limit = ["create", "Flow_Table", "flow_limit=1", "overflow_policy=refuse"]
    run("ovs-vsctl", "--id=@t", *limit, "--", "set", "bridge", "b1", "flow_tables:0=@t")
    with pytest.raises(ControllerError, match=r"switch 1: OpenFlow error: .*OFPFMFC_TABLE_FULL"):
        client.install({1: (NEW, Rule(10, 1, in_port=2))}, 5)
    assert client.verify([1], 2).rules == 1


@sealed
def test_a_killed_controller_is_lost(lab: Lab) -> None:
    """Whatever is tried on the client says that the controller has ended; the switch keeps what it holds."""
    client = lab.bridges(1)
    client.install({1: (OLD,)}, 5)
    dark = {1: RuleChange(delete=(OLD,))}
    client.prepare("c", dark=dark, light={}, at_ns=time.monotonic_ns() + 500_000_000, reconfiguration_ns=0)
    os.kill(lab.controller.pid, signal.SIGKILL)
    with pytest.raises(ControllerLost, match="the controller process has ended"):
        client.wait_change("c", 2)
    with pytest.raises(ControllerLost):
        client.install({1: ()}, 1)
    with pytest.raises(ControllerLost):
        client.poll()
    time.sleep(0.6)
    assert "in_port=1" in run("ovs-ofctl", "-O", "OpenFlow14", "dump-flows", "b1").replace('"', "")


@sealed
def test_the_controller_ends_with_its_engine(lab: Lab) -> None:
    """It ends when the engine hangs up; and when the engine's process is killed, even before it is connected to."""
    _ = lab.client
    pid = lab.controller.pid
    lab.controller.stop()
    assert wait_gone(pid)
    script = (
        "import sys, time; from pathlib import Path; from controllers.process import ControllerProcess\n"
        "process = ControllerProcess(Path(sys.argv[1])); client = process.start()\n"
        "print(process.pid, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script, str(lab.directory / "other.sock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        orphan = int(engine.stdout.readline())
        engine.kill()
    assert wait_gone(orphan)


@sealed
def test_a_controller_that_cannot_start_says_why(lab: Lab) -> None:
    """A public address is refused with the reason from its log; a port that is taken is never shared."""
    with pytest.raises(ControllerError, match="loopback interface only"):
        ControllerProcess(lab.directory / "a.sock", listen="0.0.0.0:6653").start(5)
    _ = lab.client
    with pytest.raises(ControllerError, match=r"ended.*cannot listen at 127\.0\.0\.1:6653: Address already in use"):
        ControllerProcess(lab.directory / "b.sock").start(5)
