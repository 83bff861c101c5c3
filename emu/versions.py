"""Which versions a result depends on: of emu itself, of Python, the kernel, and the libraries that emu asks for."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TIMEOUT = 5.0


def emu_version() -> str:
    """The installed version of emu, or "unknown" if it runs from files that were never installed."""
    try:
        return importlib.metadata.version("emu")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def emu_revision(root: Path = _ROOT) -> str:
    """What `git describe` says of the checkout that runs, `-dirty` if files were changed; empty outside a checkout."""
    if not (root / ".git").exists():
        return ""  # installed as a package, perhaps below somebody else's repository
    # emu often runs as root in a user's checkout; git is told that this one may be read.
    command = ["git", "-c", f"safe.directory={root}", "-C", str(root), "describe", "--tags", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=_TIMEOUT).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def library_versions() -> Mapping[str, str]:
    """Python, the kernel, and by name every library that emu asks for, `missing` where it is not installed."""
    return {
        "python": platform.python_version(),
        "kernel": platform.release(),
        **{name: _installed(name) for name in sorted(_libraries())},
    }


def _libraries() -> set[str]:
    """The names of emu's own dependencies, without those of its extras."""
    try:
        needs = importlib.metadata.requires("emu") or []
    except importlib.metadata.PackageNotFoundError:
        needs = _declared()
    return {found[0] for need in needs if "extra ==" not in need and (found := _NAME.match(need))}


def _declared() -> list[str]:
    """What pyproject.toml asks for, where emu runs from a checkout that was never installed."""
    try:
        project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    except OSError:
        return []
    return [str(need) for need in project["dependencies"]]


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
