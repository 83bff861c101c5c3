"""Markdown that generated parts are made of."""

from __future__ import annotations

from collections.abc import Iterable


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table. White space in cells is one space; bars in them are escaped."""
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "".join("| " + " | ".join(_cell(text) for text in line) + " |\n" for line in lines)


def code(text: str) -> str:
    """A block of commands or output."""
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
