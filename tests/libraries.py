"""The two OpenFlow libraries that the controller runs on, and how a test picks one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from controllers.process import INTERPRETER

OS_KEN, RYU = "os_ken", "ryu"
LIBRARIES = (OS_KEN, RYU)
VERSIONS = {OS_KEN: "os_ken 4.", RYU: "ryu 4.34"}
"""How the name and version begin that the controller says it runs on."""

RYU_PYTHON = Path(__file__).resolve().parents[1] / ".venv-ryu" / "bin" / "python"


def use(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every controller that this test starts run on `library`. Fails the test where Ryu is not installed."""
    if library == RYU and not os.access(RYU_PYTHON, os.X_OK):
        pytest.fail(f"{RYU_PYTHON} is missing; `make test` installs Ryu there", pytrace=False)
    monkeypatch.setenv("EMU_RYU", library)
    if library == RYU:
        monkeypatch.setenv(INTERPRETER, str(RYU_PYTHON))
    else:
        monkeypatch.delenv(INTERPRETER, raising=False)
