"""The provisioning script on a Debian that has nothing yet: a clean root file system, by a user who may only sudo.

It takes two to three minutes, most of them for packages, and up to 2 GiB of memory, which holds that file system.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.provision.settings import Settings
from tests.unit.test_locks import read

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("clean_root.sh")
# Not the network: packages come from outside. When the test dies, so does all that it started, and with it the mounts.
SEALED = ["setpriv", "--pdeathsig", "KILL", "--"]
SEALED += ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "--ipc", "--"]
BUSY = {"idle_before", "idle_during", "loop_lag"}
"""Rules of the verdict that other programs on the machine break."""

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What every stage of clean_root.sh said."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount file systems")
    folder = tmp_path_factory.mktemp("clean")
    root, settings = folder / "root", folder / "settings"
    root.mkdir()
    settings.mkdir()
    Settings().write(settings)
    before = _traces()
    command = [*SEALED, "bash", str(SCRIPT), str(root), str(settings), str(ROOT)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        pytest.fail("\n".join(done.stdout.splitlines()[-80:]), pytrace=False)
    assert (_traces(), list(root.iterdir())) == (before, [])
    parts = re.split(r"^== (\w+) \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _traces() -> tuple[str, set[str]]:
    """What could be left behind: mounts and interfaces."""
    return Path("/proc/mounts").read_text(), set(os.listdir("/sys/class/net"))


def test_the_machine_can_run_labs(stages: Mapping[str, str]) -> None:
    said = stages["provision"]
    assert "Labs can run here." in said
    assert "FAIL" not in said
    assert "at every start: /etc/modules-load.d/emu.conf" in said


def test_a_second_time_changes_nothing(stages: Mapping[str, str]) -> None:
    said = stages["again"]
    assert "Labs can run here." in said
    assert "Nothing to be done for 'install'" in said
    assert not re.search(r"installing|at every start", said, flags=re.IGNORECASE)


def test_what_is_installed_is_what_the_lock_names(stages: Mapping[str, str]) -> None:
    lines = re.findall(r"^([\w.-]+)==(\S+)$", stages["installed"], flags=re.MULTILINE)
    installed = {canonicalize_name(name): version for name, version in lines if name != "pip"}
    here = {"python_version": "3.11", "python_full_version": "3.11.2", "sys_platform": "linux"}
    locked = {
        name: next(iter(pin.specifier)).version
        for name, pins in read("emu").items()
        for pin, _ in pins
        if pin.marker is None or pin.marker.evaluate(here)
    }
    assert installed == locked


def test_a_scenario_is_checked_and_a_lab_runs(stages: Mapping[str, str]) -> None:
    assert "scenarios/quickstart.yaml: it can be run" in stages["check"]
    summary, _ = json.JSONDecoder().raw_decode(stages["run"][stages["run"].index("\n{") :].lstrip())
    (fabric,) = summary["fabrics"]
    reasons = {reason["rule"] for reason in fabric["verdict"]["reasons"] if reason["level"] == "INVALID"}
    assert reasons <= BUSY
    (collective,) = fabric["collectives"]
    assert 0.9 < collective["ratio"] < 1.5 or reasons


def test_clean_removes_what_install_made(stages: Mapping[str, str]) -> None:
    assert stages["clean"].endswith("nothing is left\n")


@pytest.mark.parametrize(
    ("checkout", "words"), [("/no/such/directory", "stopped at line"), ("/usr", "/usr is no checkout of emu")]
)
def test_a_failure_says_where_and_why(checkout: str, words: str) -> None:
    done = subprocess.run(
        [ROOT / "provision/provision.sh", checkout], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode != 0
    assert words in done.stderr
