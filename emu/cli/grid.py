"""Tables that fit their terminal: groups of rows under one header, the least important columns given up first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

_GAP = 1


@dataclass(frozen=True, slots=True)
class Field:
    """A column after the first. keep: from 0, which never goes; the highest goes first, before a name is folded."""

    header: str
    width: int
    keep: int = 0
    left: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Rows under a heading: the first cell of each, and the others by header."""

    heading: str
    rows: Sequence[tuple[str, Mapping[str, Text]]]


def show_grid(console: Console, first: str, fields: Sequence[Field], groups: Sequence[Group]) -> None:
    """Print the groups below each other, with the same columns; `first` is the header of the first one.

    The names in the first column stay whole: columns that may go are given up for them. They are folded only where
    the columns that never go leave too little room.
    """
    longest = max([len(first), *(len(name) for group in groups for name, _ in group.rows)])
    fields = _fitting(fields, console.width - longest)
    name_width = max(len(first), min(longest, console.width - _width(fields)))
    console.print(_table(first, name_width, fields, header=True))
    for group in groups:
        console.print(Text(group.heading, style="bold"))
        table = _table(first, name_width, fields, header=False)
        for name, cells in group.rows:
            table.add_row(Text(name), *(cells[field.header] for field in fields))
        console.print(table)


def _fitting(fields: Sequence[Field], width: int) -> list[Field]:
    """As many columns as fit beside the names; columns of one rank go together."""
    kept = list(fields)
    for rank in sorted({field.keep for field in fields if field.keep}, reverse=True):
        if _width(kept) <= width:
            break
        kept = [field for field in kept if field.keep != rank]
    return kept


def _width(fields: Sequence[Field]) -> int:
    return sum(field.width + _GAP for field in fields)


def _table(first: str, width: int, fields: Sequence[Field], *, header: bool) -> Table:
    table = Table(box=None, show_header=header, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    table.add_column(first, overflow="fold", width=width)
    for field in fields:
        justify: Literal["left", "right"] = "left" if field.left else "right"
        table.add_column(field.header, justify=justify, width=field.width, no_wrap=True)
    return table
