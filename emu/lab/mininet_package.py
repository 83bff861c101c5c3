"""Finds the system's Mininet from inside a virtual environment.

Mininet comes as a Debian package, because it carries the `mnexec` program; its Python part then sits where a virtual
environment does not look. Only that one package is taken from there, nothing else of the system's.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import warnings
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from emu.lab.errors import LabError

_DEBIAN = "/usr/lib/python3/dist-packages"


def ensure_mininet() -> None:
    """Make `import mininet` work; raises LabError if Mininet is not installed."""
    warnings.filterwarnings("ignore", message="distutils", category=DeprecationWarning)
    warnings.filterwarnings("ignore", message="The distutils", category=DeprecationWarning)
    if "mininet" in sys.modules or importlib.util.find_spec("mininet") is not None:
        return
    spec = _find()
    if spec is None or spec.loader is None:
        raise LabError("Mininet is not installed; fix: apt-get install mininet")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mininet"] = module
    spec.loader.exec_module(module)


def mininet_version() -> str:
    """The version of the Mininet that labs take, `missing` if there is none. Read, not imported: that takes long."""
    spec = _find()
    if spec is None or spec.origin is None:
        return "missing"
    try:
        text = Path(spec.origin).with_name("net.py").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    found = re.search(r"^VERSION = ['\"]([^'\"]+)['\"]", text, flags=re.MULTILINE)
    return found[1] if found else "unknown"


def _find() -> ModuleSpec | None:
    return importlib.util.find_spec("mininet") or PathFinder.find_spec("mininet", [_DEBIAN])
