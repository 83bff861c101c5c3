"""Tables of what the model predicted: the columns of measured ones, without those that need a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from emu.cli.grid import Field, Group

_MEASURED, _PREDICTED = "measured", "predicted"
_OF_MEASURING = ("ideal", "ratio", "verdict")


def for_engine(engine: str, fields: Sequence[Field], groups: Sequence[Group]) -> tuple[list[Field], list[Group]]:
    """Columns and groups as they are shown for an engine: a model's have predicted times and nothing beside them."""
    if engine != "model":
        return list(fields), list(groups)
    kept = [field for field in fields if field.header not in _OF_MEASURING]
    shown = [replace(field, header=_PREDICTED) if field.header == _MEASURED else field for field in kept]
    named = [
        Group(
            group.heading,
            [
                (name, {**cells, _PREDICTED: cells[_MEASURED]} if _MEASURED in cells else cells)
                for name, cells in group.rows
            ],
        )
        for group in groups
    ]
    return shown, named
