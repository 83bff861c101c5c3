"""Lines of text for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text


def show_line(console: Console, text: str, style: str = "", *, indent: int = 0) -> None:
    """A line of text; wrapped with its indent at a terminal, kept whole in a file."""
    if console.is_terminal:
        console.print(Padding(Text(text, style=style), (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent + text, style=style), soft_wrap=True)


def show_columns(console: Console, rows: Sequence[Sequence[Text]], header: Sequence[str] = ()) -> None:
    """Columns of text: folded to fit a terminal, one line for each row in a file."""
    if console.is_terminal:
        _show_folded(console, rows, header)
        return
    whole = [[Text(name) for name in header], *rows] if header else rows
    widths = [max(len(cell) for cell in column) for column in zip(*whole, strict=True)]
    for row in whole:
        line = "  ".join(f"{cell.plain:<{width}}" for cell, width in zip(row, widths, strict=True))
        console.print(Text(line.rstrip()), soft_wrap=True)


def _show_folded(console: Console, rows: Sequence[Sequence[Text]], header: Sequence[str]) -> None:
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, show_header=bool(header), pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for place in range(len(rows[0])):
        table.add_column(header[place] if header else "", overflow="fold", no_wrap=place == 0)
    for row in rows:
        table.add_row(*row)
    console.print(table)
