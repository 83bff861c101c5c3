"""`emu shell`: commands reach the lab, circuits change what reaches what, and whichever way one leaves, all is gone."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.lab.runs.machine import Footprint, left_over, tagged_environment

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]

SCENARIO = """\
emulation: {scale: {sigma: 400, beta: 20000}}
fabrics:
  - kind: hybrid
    pods: 3
    hosts_per_pod: 1
    uplinks: 1
    reconfiguration: 10ms
    circuits: {o0: [t0-t1]}
workload:
  kind: collectives
  steps:
    - {name: ring, phase: training, collective: all-reduce, algorithm: ring, size: 4MB}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return path


def said(scenario: Path, commands: str) -> tuple[int, str]:
    """What a shell answers to a script, and its status."""
    done = subprocess.run(
        [sys.executable, "-m", "emu", "shell", str(scenario)],
        input=commands,
        env=tagged_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + (done.stderr if done.returncode not in (0, 2) else "")


def test_commands_reach_hosts_and_circuits_decide_who_reaches_whom(scenario: Path) -> None:
    before = Footprint.take()
    status, out = said(
        scenario,
        "nodes\npingall 0.4\ncircuits\n"
        "h1 iperf3 -s -1 -D\nh0 iperf3 -c h1 -n 64K -f k\n"
        "circuits o0 t1-t2\npingall 0.4\nh2 ping -c 1 -W 2 h1\n"
        "dark t2\npingpair 0.3\nepoch 0\npingpair\n"
        "links h0\nroutes o0\ncounters h0\niperf h0 h1\n"
        "switch t0 stop\nswitch t0 start\npingpair\nlink h0 t0 down\npingpair 0.3\nlink h0 t0 up\npingpair\nexit\n",
    )
    assert status == 0, out
    assert "c0 h0 h1 h2 o0 t0 t1 t2" in out
    first, second, third, fourth, fifth, sixth, seventh = re.findall(r"\*\*\* Results: .*?\((\d+/\d+) received\)", out)
    assert (first, second) == ("2/6", "2/6")
    assert "h0 -> h1 X\nh1 -> h0 X\nh2 -> X X\n" in out
    assert "h0 -> X X\nh1 -> X h2\nh2 -> X h1\n" in out
    assert (third, fourth, fifth, sixth, seventh) == ("0/2", "2/2", "2/2", "0/2", "2/2")
    assert "epoch 0\no0: t0:2-t1:2\n" in out
    assert "iperf Done" in out
    assert "1 packets transmitted, 1 received" in out
    change = re.search(r"epoch 1: 2 lit, 2 gone .*dark for ([\d.]+) ms \(here ([\d.]+) ms\), asked 10 ms", out)
    assert change
    assert 10 <= float(change[1]) < 14
    assert float(change[2]) == pytest.approx(50 * float(change[1]), rel=1e-3)
    assert "h0-eth0<->t0-eth1 (OK OK) 400 Gb/s, here 20 Mb/s" in out
    assert re.search(r"from 1 \(t0:2\) +2 +t1:2", out)
    assert re.search(r"h0:0 +t0:1 +\d{5,} ", out)
    rate = re.search(r"h0 -> h1: ([\d.]+) Mb/s of payload", out)
    assert rate
    assert 18 < float(rate[1]) < 20
    assert not left_over(before)


def test_what_a_script_says_wrong_is_named_and_counted(scenario: Path) -> None:
    status, out = said(scenario, "frobnicate\nlight t0-t2\nlight o0 t0-t9\nroutes t9\nh0 echo still here\n")
    assert status == 2
    assert "*** there is no command or node 'frobnicate'" in out
    assert "*** o0: more circuits name t0 than the 1 uplinks that it has there" in out
    assert "*** o0: 't9' is not wired to it; t0, t1, t2 are" in out
    assert "*** routes of which switch? There are t0 t1 t2 o0" in out
    assert "still here" in out


# -- at a terminal -----------------------------------------------------------------------------------------------------


class Terminal:
    """A person at a terminal of their own."""

    def __init__(self, descriptor: int, pid: int) -> None:
        self.descriptor, self.pid, self.seen = descriptor, pid, ""

    def expect(self, words: str, patience: float = 60.0) -> str:
        """Read until the words come; what came before and with them."""
        deadline = time.monotonic() + patience
        while words not in self.seen:
            ready, _, _ = select.select([self.descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no {words!r} in {self.seen!r}"
            try:
                self.seen += os.read(self.descriptor, 4096).decode()
            except OSError:
                pytest.fail(f"it ended without {words!r}: {self.seen!r}")
        at = self.seen.index(words) + len(words)
        found, self.seen = self.seen[:at], self.seen[at:]
        return found

    def type(self, keys: str) -> None:
        """Type."""
        os.write(self.descriptor, keys.encode())

    def status(self, patience: float = 15.0) -> int:
        """How it ended."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            pid, how = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(how)
            time.sleep(0.05)
        raise AssertionError(f"it goes on: {self.seen!r}")


@contextmanager
def terminal(scenario: Path) -> Iterator[Terminal]:
    pid, descriptor = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "emu", "shell", str(scenario)], tagged_environment())
    try:
        yield Terminal(descriptor, pid)
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.close(descriptor)


def test_ctrl_c_ends_a_command_and_ctrl_d_the_shell(scenario: Path) -> None:
    before = Footprint.take()
    with terminal(scenario) as person:
        person.expect("mininet> ")
        person.type("h0 sleep 60\n")
        time.sleep(1.0)
        began = time.monotonic()
        person.type("\x03")
        person.expect("mininet> ")
        assert time.monotonic() - began < 5
        person.type("half a line\x03")
        person.expect("Interrupt")
        person.expect("mininet> ")
        person.type("circuits\n")
        person.expect("o0: t0:2-t1:2")
        person.type("\x04")
        assert person.status() == 0
    assert not left_over(before)


def test_kill_9_leaves_nothing(scenario: Path) -> None:
    before = Footprint.take()
    with terminal(scenario) as person:
        person.expect("mininet> ")
        person.type("h0 sleep 600\n")
        time.sleep(0.5)
        os.kill(person.pid, signal.SIGKILL)
        assert person.status() == -signal.SIGKILL
    assert not left_over(before)
