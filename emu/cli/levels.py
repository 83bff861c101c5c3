"""How verdicts look at a terminal."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from emu.verdict.levels import Level

_COLOURS: Final[dict[Level, str]] = {"VALID": "green", "DEGRADED": "yellow", "INVALID": "red"}


def level_text(level: Level) -> Text:
    """A verdict in its colour."""
    return Text(level, style=_COLOURS[level])
