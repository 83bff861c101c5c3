"""The hand-made run, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.export import hand_made


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the hand-made run."""
    return hand_made.written(tmp_path_factory.mktemp("export"))
