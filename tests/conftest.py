"""For all tests: the quick ones first, those that need a lab last; and no silent skips."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.skips import NoSilentSkips, allowed_skips

_TESTS = Path(__file__).resolve().parent
_ORDER = ("unit", "lab")


def pytest_configure(config: pytest.Config) -> None:
    """Let skipped tests fail the session."""
    config.pluginmanager.register(NoSilentSkips(allowed_skips(_TESTS.parent / "README.md")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Unit tests, then labs, then whole runs; within each in the order of the files."""
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[int, bool, bool]:
    parts = item.path.relative_to(_TESTS).parts if item.path.is_relative_to(_TESTS) else ()
    directory = _ORDER.index(parts[0]) if parts and parts[0] in _ORDER else len(_ORDER)
    return directory, item.get_closest_marker("lab") is not None, "runs" in parts
