"""What a sweep came to, as a table for people: one group for each fabric, one row for each combination of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from emu.cli.grid import Field, Group, show_grid
from emu.cli.levels import level_text
from emu.sweep.points import short_name
from emu.sweep.table import WHOLE, Cell
from emu.units import format_duration

_WIDEST = 14
"""Characters of a phase's name above its column."""


def show_sweep(console: Console, cells: Sequence[Cell], *, measured: bool) -> None:
    """Print the medians over the seeds. measured: whether there are verdicts."""
    if not cells:
        return
    phases = list(dict.fromkeys(cell.phase for cell in cells if cell.phase != WHOLE))
    several = any(cell.seeds > 1 or cell.lowest != cell.highest for cell in cells)
    fields = [Field(WHOLE, len(WHOLE))]
    fields += [Field("min", 9, keep=1), Field("max", 9, keep=1)] if several else []
    fields += [Field(phase[:_WIDEST], max(9, min(len(phase), _WIDEST)), keep=2) for phase in phases]
    fields += [Field("changes", 7, keep=3)]
    fields += [Field("verdict", 8, left=True)] if measured else []
    names = ", ".join(short_name(key) for key in cells[0].values)
    show_grid(console, names, fields, _groups(cells, phases))


def _groups(cells: Sequence[Cell], phases: Sequence[str]) -> list[Group]:
    groups: dict[str, dict[tuple[str, ...], dict[str, Text]]] = {}
    for cell in cells:
        values = tuple(map(str, cell.values.values()))
        row = groups.setdefault(cell.fabric, {}).setdefault(values, _empty(phases))
        row.update(_cells(cell))
    return [
        Group(fabric, [(", ".join(values), row) for values, row in rows.items()]) for fabric, rows in groups.items()
    ]


def _empty(phases: Sequence[str]) -> dict[str, Text]:
    """Cells of a combination of which nothing is known yet; a phase may be missing at one point and not at another."""
    names: list[Any] = [WHOLE, "min", "max", "changes", "verdict", *(phase[:_WIDEST] for phase in phases)]
    return {name: Text("-") for name in names}


def _cells(cell: Cell) -> dict[str, Text]:
    if cell.phase != WHOLE:
        return {cell.phase[:_WIDEST]: Text(format_duration(cell.median))}
    return {
        WHOLE: Text(format_duration(cell.median)),
        "min": Text(format_duration(cell.lowest)),
        "max": Text(format_duration(cell.highest)),
        "changes": Text(f"{cell.changes:g}"),
        "verdict": level_text(cell.verdict),
    }
