"""The controller, or one switch's connection, lost at each stage of a change: the old epoch, or an error that says so.

A stage is held by what is outside the controller: before the instant the bundles wait in the switches, in the dark they
wait for LIGHT, and "commit" is the time in which COMMIT was sent and no switch has answered, since it stands still.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controllers.channel import Aborted, ControllerLost, RuleChange
from controllers.client import ControllerClient
from controllers.tables import Rule
from tests.lab.controllers.sealed import Lab, run, sealed

pytestmark = pytest.mark.lab

OLD, NEW = Rule(10, 2, in_port=1), Rule(10, 3, in_port=1)
_MS = 1_000_000
_LONG_NS = 60_000 * _MS
_PATIENCE = 5.0
"""Seconds in which a loss must be told."""


@contextmanager
def _in_stage(lab: Lab, stage: str) -> Iterator[ControllerClient]:
    """Two switches with a change between OLD and NEW that is in `stage`; at the end the switches go on."""
    client = lab.bridges(1, 2)
    client.install({1: (OLD,), 2: (OLD,)}, 5)
    dark = dict.fromkeys((1, 2), RuleChange(delete=(OLD,)))
    light = dict.fromkeys((1, 2), RuleChange(add=(NEW,)))
    at_ns = {"prepare": time.monotonic_ns() + _LONG_NS, "dark": None, "commit": time.monotonic_ns() + 300 * _MS}[stage]
    client.prepare("c", dark=dark, light=light, at_ns=at_ns, reconfiguration_ns=_LONG_NS)
    if stage == "commit":
        lab.signal_switches(signal.SIGSTOP)
    time.sleep(0.5)
    try:
        yield client
    finally:
        lab.signal_switches(signal.SIGCONT)


def _entries(dpid: int) -> list[str]:
    """What a switch holds, by its own word: where frames that enter by port 1 leave."""
    dump = run("ovs-ofctl", "-O", "OpenFlow14", "dump-flows", f"b{dpid}")
    return [line.rpartition("output:")[2].strip() for line in dump.splitlines() if "in_port=1 " in line + " "]


def _cut_one() -> None:
    """Have the kernel destroy the connection of one switch, as seen from the controller."""
    ends = run("ss", "-Htn", "state", "established", "sport = :6653").split("\n")[0].split()
    peer = ends[3].rpartition(":")[2]
    run("ss", "-K", "sport", "=", ":6653", "dport", "=", f":{peer}")


@pytest.mark.parametrize(("stage", "held"), [("prepare", ["2"]), ("dark", ["none"]), ("commit", ["2", "none"])])
@sealed
def test_a_controller_killed_at_each_stage_is_told_as_lost(lab: Lab, stage: str, held: list[str]) -> None:
    """No switch is ever between the epochs: it holds the old circuit, or is dark as the stage has it."""
    with _in_stage(lab, stage) as client:
        os.kill(lab.controller.pid, signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(ControllerLost, match="the controller process has ended"):
            client.wait_change("c", _PATIENCE)
        assert time.monotonic() - began < _PATIENCE
    time.sleep(0.2)
    for dpid in (1, 2):
        assert (_entries(dpid) or ["none"])[0] in held


@pytest.mark.parametrize(
    ("stage", "outcome"), [("prepare", ["discarded"]), ("dark", ["failed"]), ("commit", ["failed", "restored"])]
)
@sealed
def test_a_connection_lost_at_each_stage_ends_the_change(lab: Lab, stage: str, outcome: list[str]) -> None:
    """The lost switch is named, and the other one is back in the old epoch."""
    with _in_stage(lab, stage) as client:
        _cut_one()
    began = time.monotonic()
    end = client.wait_change("c", _PATIENCE)
    assert time.monotonic() - began < _PATIENCE
    assert isinstance(end, Aborted)
    assert end.outcome in outcome
    assert end.dpid in (1, 2)
    assert "connection" in end.reason
    assert _entries(3 - end.dpid) == ["2"]
    if stage == "prepare":
        assert _entries(end.dpid) == ["2"]
    elif end.outcome == "failed":
        assert f"could not restore the old epoch at switch {end.dpid}" in end.reason
