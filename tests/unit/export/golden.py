"""Exports as text, and the golden files in tests/data/exports that they are held against.

`UPDATE_GOLDEN=1 pytest tests/unit/export` writes the files anew; look at the difference before you commit it.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from emu.export.formats import export
from emu.results import read_run

FOLDER = Path(__file__).parents[2] / "data" / "exports"


def exported(directory: Path, to: str, fabric: str | None = None, repeat: int | None = None) -> str:
    """What a text format makes of a run."""
    stream = io.BytesIO()
    export(directory, to, stream, fabric=fabric, repeat=repeat)
    return stream.getvalue().decode()


def check_bytes(name: str, content: bytes, run: Path) -> None:
    """The same for a format that is no text, in which the scenario's hash gives way to noughts."""
    found = content.replace(read_run(run).manifest.scenario_hash.encode(), b"0" * 64)
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(found)
        pytest.fail(f"{path} was written anew")
    assert found == path.read_bytes()


def check(name: str, text: str, run: Path) -> None:
    """Hold an export of `run` against a golden file, which does not say the scenario's hash: new keys change it."""
    text = text.replace(read_run(run).manifest.scenario_hash, "SCENARIO-HASH")
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
        pytest.fail(f"{path} was written anew")
    assert text == path.read_text()
