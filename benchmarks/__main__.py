"""`python -m benchmarks [NAME ...]`: run benchmarks one after the other on an idle machine; needs root."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.circuits import bench_commit, bench_dark, bench_service
from benchmarks.collectives import bench_collectives, bench_dilation
from benchmarks.darkmodes import bench_darkmodes, bench_rotor
from benchmarks.machine import IDLE, describe, wait_until_idle
from benchmarks.model import bench_model
from benchmarks.startup import bench_startup
from benchmarks.validation import bench_validation


def bench_kills() -> bool:
    """`kill -9` of a run at 40 seeded moments: the test of it, with more of them."""
    test = Path(__file__).resolve().parents[1] / "tests/lab/runs/test_sealed.py"
    command = [sys.executable, "-m", "pytest", "-q", "-k", "kill_9", str(test)]
    return subprocess.run(command, env={**os.environ, "EMU_TEST_KILLS": "40"}, check=False).returncode == 0


BENCHMARKS: dict[str, Callable[[], bool]] = {
    "collectives": bench_collectives,
    "dilation": bench_dilation,
    "commit": bench_commit,
    "dark": bench_dark,
    "service": bench_service,
    "darkmodes": bench_darkmodes,
    "rotor": bench_rotor,
    "model": bench_model,
    "validation": bench_validation,
    "startup": bench_startup,
    "kills": bench_kills,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all of them; the status is 1 if a bound was missed."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    print(describe())
    good = True
    for name in names or BENCHMARKS:
        idle = wait_until_idle()
        print(
            f"-- {name}: processors {idle:.0%} idle before" + ("" if idle >= IDLE else ", which is too busy to judge")
        )
        good &= BENCHMARKS[name]()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
