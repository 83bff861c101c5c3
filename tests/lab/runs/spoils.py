"""What tests of spoiled runs share: a run with one change of circuits, its processes, and what a verdict says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from emu.outcome import Outcome
from tests.lab.runs.machine import command_of, descendants

TRIES = 3

ONE_CHANGE = """
emulation: {scale: {sigma: 400, beta: 20000}}
fabrics:
  - kind: hybrid
    pods: 2
    hosts_per_pod: 1
    uplinks: 2
    reconfiguration: 40ms
    circuits: {o0: [1-3]}
    schedule: [{at: 20ms, circuits: {o0: [1-4]}}]
workload:
  kind: collectives
  steps:
    - {name: ring, phase: training, collective: all-reduce, algorithm: ring, size: 4GB}
"""
"""TDF 50: the change is handed over 0.8 s after time zero, begins at 1 s and takes 2 s; the ring takes far longer."""
MOMENTS = {"prepared": 0.9, "dark": 2.0}
"""Wall seconds after time zero at which its bundles wait in the switches, and at which its circuits are dark."""


def lab_process(name: str) -> int:
    """A process of the lab that runs below this one, by a part of its command line."""
    return next(pid for pid in descendants(os.getpid()) if name in command_of(pid))


def reasons(outcome: Outcome) -> str:
    """Everything that a verdict gives as its reason, a line each."""
    return "\n".join(str(reason) for fabric in outcome.fabrics for reason in fabric.verdict.reasons)


def unspoiled(run: Callable[[Path], Outcome], factory: pytest.TempPathFactory) -> Outcome:
    """A run that nothing spoils, VALID in at least one of three tries: a spoil proves nothing where it is not."""
    heard = []
    for _ in range(TRIES):
        outcome = run(factory.mktemp("twin") / "run")
        if outcome.verdict == "VALID":
            return outcome
        heard.append(reasons(outcome))
    pytest.fail(f"the unspoiled twin was not VALID in {TRIES} tries:\n" + "\n--\n".join(heard))
