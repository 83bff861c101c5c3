"""The machine in one line, for files whose numbers hold for it."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe_machine() -> str:
    """Processors and kernel, as in "2 x AMD EPYC 7B13, Linux 6.1.0"."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{os.cpu_count()} x {next(named, platform.machine())}, Linux {platform.release()}"
