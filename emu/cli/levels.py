"""How verdicts look at a terminal."""

from __future__ import annotations

from typing import Final, Literal

from rich.text import Text

from emu.verdict.levels import Level

Shown = Level | Literal["PREDICTED"]
"""A verdict, or what stands in its place where nothing was measured that could be judged."""

_COLOURS: Final[dict[Shown, str]] = {"VALID": "green", "DEGRADED": "yellow", "INVALID": "red", "PREDICTED": "cyan"}


def level_text(level: Shown) -> Text:
    """A verdict in its colour."""
    return Text(level, style=_COLOURS[level])
