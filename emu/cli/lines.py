"""Lines of text for people."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text


def show_line(console: Console, text: str, style: str = "", *, indent: int = 0) -> None:
    """A line of text; wrapped with its indent at a terminal, kept whole in a file."""
    if console.is_terminal:
        console.print(Padding(Text(text, style=style), (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent + text, style=style), soft_wrap=True)
