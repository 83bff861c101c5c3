"""A lab leaves nothing behind, changes nothing of the machine, and two of them do not see each other."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import emu
from tests.lab.runs.machine import (
    Footprint,
    descendants,
    left_over,
    stages,
    start_emu,
    start_watched,
    sysctls,
    tagged_environment,
    wait_for_stage,
)

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

_SCENARIO = """
emulation: {scale: {sigma: 400, beta: 20000}}
fabrics:
  - {kind: hybrid, pods: 2, hosts_per_pod: 2, uplinks: 1, reconfiguration: 10ms, circuits: {o0: [t0-t1]}}
workload:
  kind: collectives
  steps:
    - {name: ring, phase: training, collective: all-reduce, algorithm: ring, size: 4GB}
"""
_KILLS = int(os.environ.get("EMU_TEST_KILLS", "8"))


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(_SCENARIO)
    return path


def test_kill_9_at_any_moment_leaves_nothing(scenario: Path, tmp_path: Path) -> None:
    """The outer process is killed at seeded moments over the whole length of a run, at least one in each stage."""
    before = Footprint.take()
    settings = sysctls()
    whole, log = start_watched(scenario, tmp_path / "whole")
    assert whole.wait(120) == 0
    began = stages(log)
    for number, moment in enumerate(_moments(began)):
        process, _ = start_watched(scenario, tmp_path / f"killed{number}")
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not left_over(before), f"killed after {moment:.2f} s"
        assert sysctls() == settings, f"killed after {moment:.2f} s"


def _moments(began: dict[str, float]) -> list[float]:
    """One in the middle of each stage that matters, the rest anywhere."""
    ends = sorted(began.values())
    middles = [
        (began[stage] + min((end for end in ends if end > began[stage]), default=began[stage] + 0.2)) / 2
        for stage in ("build", "controller", "traffic", "write")
    ]
    generator = random.Random(7)
    anywhere = [generator.uniform(0, max(ends)) for _ in range(_KILLS - len(middles))]
    return [*middles, *anywhere]


def test_no_setting_of_the_machine_differs_while_a_lab_runs(scenario: Path, tmp_path: Path) -> None:
    before = sysctls()
    process, _ = start_watched(scenario, tmp_path / "run")
    looks = 0
    while process.poll() is None:
        now = sysctls()
        assert now == before, {name for name in now if now[name] != before.get(name)}
        looks += 1
    assert process.returncode == 0
    assert looks > 3
    assert sysctls() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_within_three_seconds_and_keeps_what_was_measured(
    scenario: Path, tmp_path: Path, number: signal.Signals
) -> None:
    before = Footprint.take()
    process, log = start_watched(scenario, tmp_path / "run")
    wait_for_stage(log, "traffic")
    time.sleep(1.0)
    began = time.monotonic()
    process.send_signal(number)
    process.wait(10)
    assert time.monotonic() - began < 3.0
    record = emu.load(tmp_path / "run")
    assert record.manifest.partial
    assert len(record.links)  # the lab handed over what it had
    assert not left_over(before)


def test_two_labs_at_once_do_not_see_each_other(scenario: Path, tmp_path: Path) -> None:
    before = Footprint.take()
    pair = [start_watched(scenario, tmp_path / name) for name in ("one", "two")]
    for _, log in pair:
        wait_for_stage(log, "traffic")
    views = [_interfaces(process.pid) for process, _ in pair]
    assert views[0] == views[1]  # the same names, side by side
    assert _lab_namespace(pair[0][0].pid) != _lab_namespace(pair[1][0].pid)
    assert [process.wait(120) for process, _ in pair] == [0, 0]
    assert not left_over(before)


def _lab_namespace(pid: int) -> str:
    inner = descendants(pid)[-1]
    return os.readlink(f"/proc/{inner}/ns/pid")


def _interfaces(pid: int) -> list[str]:
    """The interface names of the lab below a process."""
    inner = next(child for child in descendants(pid) if "ovs-vswitchd" in os.readlink(f"/proc/{child}/exe"))
    shown = subprocess.run(
        ["nsenter", "-t", str(inner), "-n", "ls", "/sys/class/net"], check=True, capture_output=True, text=True
    )
    listed = Path(f"/proc/{inner}/net/dev").read_text().splitlines()[2:]
    assert shown.returncode == 0
    return sorted(line.split(":")[0].strip() for line in listed)


_SYSTEM_SWITCH = """
set -e
mount -t tmpfs t /run; mkdir -p /run/openvswitch /run/db; export OVS_DBDIR=/run/db OVS_LOGDIR=/run/db
ovsdb-tool create /run/db/conf.db /usr/share/openvswitch/vswitch.ovsschema
ovsdb-server --remote=punix:/run/openvswitch/db.sock --detach --no-chdir --pidfile /run/db/conf.db
ovs-vsctl --no-wait init
ovs-vswitchd --detach --no-chdir --pidfile --log-file=/run/db/log
ovs-vsctl add-br br0 -- set bridge br0 datapath_type=netdev
state() {
  ovs-vsctl list bridge; cat /run/openvswitch/*.pid; ls /run/openvswitch
  ovs-ofctl --no-stats dump-flows br0
}
state > /run/before
"$@" >&2
state > /run/after
diff /run/before /run/after
"""


def test_the_systems_own_open_vswitch_is_untouched(scenario: Path, tmp_path: Path) -> None:
    """A machine with its own Open vSwitch running and a bridge on it, played in namespaces."""
    seal = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
    emu = [sys.executable, "-m", "emu", "run", str(scenario), "--out", str(tmp_path / "run")]
    done = subprocess.run(
        [*seal, "bash", "-c", _SYSTEM_SWITCH, "bash", *emu],
        env=tagged_environment(),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert "VALID" in done.stderr or (tmp_path / "run" / "manifest.json").exists(), done.stderr[-2000:]
    assert done.stdout == "", done.stdout


def test_a_run_directory_under_run_is_refused(scenario: Path, tmp_path: Path) -> None:
    process = start_emu("run", str(scenario), "--out", "/run/emu-test", cwd=tmp_path)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "/run" in words
    assert "Traceback" not in words
    assert not Path("/run/emu-test").exists()
