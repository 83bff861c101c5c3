"""The Vagrantfile is valid for both providers, and what it names is there. No provider and no box is needed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Vagrantfile").read_text(encoding="utf-8")
# Vagrant checks a provider's settings only if that provider answers; of VirtualBox, it asks no more than its version.
VBOXMANAGE = "#!/bin/sh\necho 7.0.20r163906\n"


def validate(where: Path, tmp_path: Path, provider: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `vagrant validate` for one provider; all that it keeps goes below `tmp_path`."""
    programs = tmp_path / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "VBoxManage").write_text(VBOXMANAGE)
    (programs / "VBoxManage").chmod(0o755)
    settings = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "VAGRANT_CHECKPOINT_DISABLE": "1",
        "VAGRANT_DEFAULT_PROVIDER": provider,
        "VAGRANT_DOTFILE_PATH": str(tmp_path / "dot"),
        "VAGRANT_HOME": str(tmp_path / "home"),
    }
    return subprocess.run(
        ["vagrant", "validate", "--no-color"],
        cwd=where,
        env={**os.environ, **settings, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("provider", ["libvirt", "virtualbox"])
def test_it_is_valid(provider: str, tmp_path: Path) -> None:
    done = validate(ROOT, tmp_path, provider)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "validated successfully" in done.stdout


@pytest.mark.parametrize(("provider", "setting"), [("libvirt", "libvirt.nested"), ("virtualbox", "virtualbox.memory")])
def test_a_setting_that_does_not_exist_is_found(provider: str, setting: str, tmp_path: Path) -> None:
    changed = TEXT.replace(f"{setting} =", f"{provider}.no_such_setting =")
    assert changed != TEXT
    shutil.copytree(ROOT / "provision", tmp_path / "provision")
    (tmp_path / "Vagrantfile").write_text(changed)
    done = validate(tmp_path, tmp_path, provider)
    assert done.returncode == 1
    assert "shouldn't exist: no_such_setting" in done.stdout + done.stderr


def test_a_size_that_is_no_number_is_refused(tmp_path: Path) -> None:
    done = validate(ROOT, tmp_path, "libvirt", EMU_MEMORY="much")
    assert done.returncode != 0
    assert "much" in done.stdout + done.stderr


def test_the_box_is_pinned_and_the_script_is_there() -> None:
    assert re.search(r'^ *config\.vm\.box_version = "12\.\d{8}\.\d+"$', TEXT, flags=re.MULTILINE)
    (script,) = re.findall(r'path: "([^"]+)"', TEXT)
    assert os.access(ROOT / script, os.X_OK)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for environment in re.findall(r"^\w*VENV := (\S+)$", makefile, flags=re.MULTILINE):
        assert f"{environment}/" in TEXT, "an environment of the host would be copied over that of the machine"


@pytest.mark.parametrize("script", sorted(ROOT.glob("provision/*.sh")) + sorted(ROOT.glob("tests/provision/*.sh")))
def test_scripts_have_no_known_mistake(script: Path) -> None:
    done = subprocess.run(["shellcheck", "--norc", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
