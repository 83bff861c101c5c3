"""A run that is killed in the midst of a change of circuits leaves nothing: no process, namespace, interface, file."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.lab.runs.machine import Footprint, descendants, left_over, start_watched, sysctls, wait_for_stage
from tests.lab.runs.spoils import MOMENTS, ONE_CHANGE

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]


@pytest.mark.parametrize("what", MOMENTS)
def test_a_run_killed_amid_a_change_leaves_nothing(tmp_path: Path, what: str) -> None:
    """While its bundles wait in the switches, and while its circuits are dark."""
    scenario = tmp_path / "change.yaml"
    scenario.write_text(ONE_CHANGE)
    before, settings = Footprint.take(), sysctls()
    process, log = start_watched(scenario, tmp_path / "run")
    wait_for_stage(log, "traffic")
    time.sleep(MOMENTS[what])
    assert descendants(process.pid), f"the run ended before its change was {what}"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not left_over(before), what
    assert sysctls() == settings
    assert not (tmp_path / "run" / "manifest.json").exists()
