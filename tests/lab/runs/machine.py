"""What a run could leave on a machine, listed so that before and after can be compared."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

_TAG = "EMU_TEST_RUN"
_WATCHED = ("/run", "/etc/openvswitch", "/var/lib/openvswitch", "/var/log/openvswitch", "/var/tmp")
_OURS = re.compile(r"emu|ovs|mn|mininet|lab|vhost")
_VOLATILE = re.compile(
    r"random/|ns_last_pid|pty/nr|file-nr|inode-|dentry-state|nr_|sched_domain|usermodehelper|cap_last|stat_refresh"
    r"|entropy|conntrack_count|perf_event_max_sample|perf_cpu|tainted|netdev_rss_key|fail_over|netdev_budget"
)


def sysctls() -> dict[str, str]:
    """Every readable setting of the machine that does not change by itself."""
    found = {}
    for folder, _, names in os.walk("/proc/sys"):
        for name in names:
            path = f"{folder}/{name}"
            if _VOLATILE.search(path):
                continue
            try:
                found[path] = Path(path).read_text()
            except OSError:
                continue
    return found


@dataclass(frozen=True)
class Footprint:
    """What is on the machine: processes that carry this test's tag, their namespaces, interfaces, files."""

    processes: frozenset[tuple[int, str]]
    namespaces: frozenset[str]
    interfaces: frozenset[str]
    files: frozenset[str]

    @classmethod
    def take(cls) -> Footprint:
        """Look now."""
        return cls(_processes(), _namespaces(), _interfaces(), _files())

    def more_than(self, before: Footprint) -> dict[str, set[object]]:
        """What is here and was not there."""
        pairs = {name: set(getattr(self, name)) - set(getattr(before, name)) for name in self.__dataclass_fields__}
        return {name: extra for name, extra in pairs.items() if extra}


def left_over(before: Footprint, patience: float = 5.0) -> Mapping[str, set[object]]:
    """What is still here after the kernel had a moment to tear things down."""
    deadline = time.monotonic() + patience
    while (extra := Footprint.take().more_than(before)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return extra


def tagged_environment() -> dict[str, str]:
    """What a run is started with, so that every process below it can be told from those of other people."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", _TAG: str(os.getpid())}


def start_emu(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start `emu` as a user would, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "emu", *arguments],
        cwd=cwd,
        env=tagged_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


_WATCHER = """
import dataclasses, json, sys, time
from pathlib import Path
from emu.runner import run
began = time.monotonic()
log = open(sys.argv[3], "w", buffering=1)
def listen(progress):
    print(f"{time.monotonic() - began:.3f}", json.dumps(dataclasses.asdict(progress)), file=log)
run(Path(sys.argv[1]), out=Path(sys.argv[2]), listener=listen)
print(f"{time.monotonic() - began:.3f}", json.dumps({"stage": "end"}), file=log)
"""


def start_watched(scenario: Path, out: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """A run whose progress is logged to a file beside its directory."""
    log = out.with_suffix(".log")
    command = [sys.executable, "-c", _WATCHER, str(scenario), str(out), str(log)]
    return subprocess.Popen(command, cwd=out.parent, env=tagged_environment(), start_new_session=True), log


def stages(output: Path) -> dict[str, float]:
    """By stage, when it began in the run whose log lines were stamped into `output`."""
    began: dict[str, float] = {}
    for line in output.read_text().splitlines():
        stamp, _, text = line.partition(" ")
        began.setdefault(json.loads(text)["stage"], float(stamp))
    return began


def wait_for_stage(log: Path, stage: str, patience: float = 60.0) -> None:
    """Wait until a run that logs to `log` has come to a stage."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if log.exists() and stage in stages(log):
            return
        time.sleep(0.05)
    pytest.fail(f"the run did not come to {stage} within {patience} s")


def descendants(pid: int) -> list[int]:
    """Every process below `pid`, nearest first."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                parent = int(Path(entry.path, "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, queue = [], [pid]
    while queue:
        below = children.get(queue.pop(0), [])
        found += below
        queue += below
    return found


def command_of(pid: int) -> str:
    """A process's command line, "" if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _tagged() -> Iterator[int]:
    wanted = f"{_TAG}={os.getpid()}".encode()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if wanted in Path(entry.path, "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)
            except OSError:
                continue


def _processes() -> frozenset[tuple[int, str]]:
    return frozenset((pid, command_of(pid)) for pid in _tagged())


def _namespaces() -> frozenset[str]:
    """Network namespaces that tagged processes are in, or that anything keeps mounted."""
    found = {line.split()[3] for line in Path("/proc/self/mountinfo").read_text().splitlines() if " nsfs " in line}
    for pid in _tagged():
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/net"))
        except OSError:
            continue
    return frozenset(found)


def _interfaces() -> frozenset[str]:
    return frozenset(os.listdir("/sys/class/net"))


def _files() -> frozenset[str]:
    """Files of a lab's kind: whatever is new under Open vSwitch's and the system's directories, and in /tmp by name."""
    found = {f"/tmp/{name}" for name in os.listdir("/tmp") if _OURS.match(name)}
    for top in _WATCHED:
        for folder, _, names in os.walk(top):
            found.update(f"{folder}/{name}" for name in names)
    return frozenset(found)
