"""Cells of a run's tables with the type that their column declares."""

from __future__ import annotations

from collections.abc import Mapping

from emu.results.columns import Value

Row = Mapping[str, Value]


def text(row: Row, column: str) -> str:
    """The cell of a text column."""
    return str(row[column])


def whole(row: Row, column: str) -> int:
    """The cell of an int column that always has a number."""
    return int(row[column] or 0)


def real(row: Row, column: str) -> float:
    """The cell of a float column that always has a number."""
    return float(row[column] or 0)


def maybe(row: Row, column: str) -> float | None:
    """The cell of a column of numbers; None where there is no such number."""
    value = row[column]
    return None if value is None else float(value)
