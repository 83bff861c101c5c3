"""What a manifest says of versions: emu's own, its checkout's, and those of the libraries that it asks for."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import tomllib
from pathlib import Path

from emu.versions import emu_revision, library_versions

ROOT = Path(__file__).resolve().parents[2]
SOMEBODY = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@a"}


def git(where: Path, *arguments: str) -> str:
    command = ["git", "-C", str(where), *arguments]
    environment = {**os.environ, **SOMEBODY}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def test_a_checkout_is_named_by_tag_commit_and_changes(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert emu_revision(tmp_path) == ""  # nothing is committed yet
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "--quiet", "--message", "one")
    commit = git(tmp_path, "rev-parse", "--short", "HEAD")
    assert emu_revision(tmp_path) == commit
    git(tmp_path, "tag", "v1")
    assert emu_revision(tmp_path) == "v1"
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "two")
    assert re.fullmatch(r"v1-1-g[0-9a-f]{7,}", emu_revision(tmp_path))
    (tmp_path / "file").write_text("two")
    assert emu_revision(tmp_path).endswith("-dirty")


def test_only_the_checkout_itself_counts(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "somebody else's")
    (tmp_path / "site-packages").mkdir()
    assert emu_revision(tmp_path / "site-packages") == ""


def test_every_library_that_emu_asks_for_has_its_version() -> None:
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    names = {re.split(r"[^A-Za-z0-9._-]", need)[0] for need in needs}
    versions = library_versions()
    assert {"python", "kernel"} < set(versions)
    assert set(versions) - {"python", "kernel"} == names
    assert versions["python"] == platform.python_version()
    assert versions["numpy"] == importlib.metadata.version("numpy")
    assert "missing" not in versions.values()
