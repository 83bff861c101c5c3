"""The machine that benchmarks run on, and the wait until it is idle."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from emu.lab.system import CpuTimes

IDLE = 0.85
"""Share of idle processor time that the gate asks for."""


def describe() -> str:
    """One line about this machine."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}, Python {platform.python_version()}"


def wait_until_idle(patience: float = 120.0, window: float = 3.0) -> float:
    """Wait until the processors were idle for `window` seconds; returns the idle share that was seen last."""
    deadline = time.monotonic() + patience
    while True:
        before = CpuTimes.read()
        time.sleep(window)
        idle = CpuTimes.read().idle_share_since(before)
        if idle >= IDLE or time.monotonic() > deadline:
            return idle
