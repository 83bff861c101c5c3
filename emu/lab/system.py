"""What the machine is and does: versions, processors' idle time."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from emu.lab.mininet_package import mininet_version

Datapath = Literal["kernel", "user"]

_DESCRIPTORS = 1 << 16
"""More would cost: Mininet's mnexec closes each of them, open or not, whenever it starts something."""
_IDLE_COLUMNS = (3, 4)  # idle and iowait


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Processor time since boot, in ticks over all processors: idle, and all kinds together."""

    idle: int
    total: int

    @classmethod
    def read(cls) -> Self:
        """The times now."""
        ticks = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return cls(sum(ticks[column] for column in _IDLE_COLUMNS), sum(ticks))

    def idle_share_since(self, before: CpuTimes) -> float:
        """The share of all processors' time, 0 to 1, that was idle since `before` (1 if no tick has passed)."""
        total = self.total - before.total
        return (self.idle - before.idle) / total if total else 1.0


def probe_datapath() -> Datapath:
    """`kernel` if the openvswitch module is loaded, else `user`. Loading a module would change the machine."""
    return "kernel" if Path("/sys/module/openvswitch").exists() else "user"


def raise_descriptor_limit() -> None:
    """Allow this process, and those it starts, many open files where it may: lanes and hosts' shells take thousands."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, _DESCRIPTORS), most))


def versions() -> dict[str, str]:
    """What a result depends on, by name."""
    return {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "openvswitch": _version("ovs-vswitchd", "--version"),
        "iperf3": _version("iperf3", "--version"),
        "mininet": mininet_version(),
        "processors": str(os.cpu_count()),
    }


def _version(*command: str) -> str:
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5).stdout
    except OSError:
        return "missing"
    found = re.search(r"\d+\.\d+(\.\d+)?", text)
    return found[0] if found else "unknown"
