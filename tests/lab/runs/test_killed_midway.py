"""A run that is killed in the midst of a change of circuits leaves nothing: no process, namespace, interface, file."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.lab.runs.machine import Footprint, descendants, left_over, start_watched, sysctls, wait_for_stage

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

_SCENARIO = """
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


@pytest.mark.parametrize(("moment", "what"), [(0.9, "prepared"), (2.0, "dark")])
def test_a_run_killed_amid_a_change_leaves_nothing(tmp_path: Path, moment: float, what: str) -> None:
    """While its bundles wait in the switches, and while its circuits are dark."""
    scenario = tmp_path / "change.yaml"
    scenario.write_text(_SCENARIO)
    before, settings = Footprint.take(), sysctls()
    process, log = start_watched(scenario, tmp_path / "run")
    wait_for_stage(log, "traffic")
    time.sleep(moment)
    assert descendants(process.pid), f"the run ended before its change was {what}"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not left_over(before), what
    assert sysctls() == settings
    assert not (tmp_path / "run" / "manifest.json").exists()
