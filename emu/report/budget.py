"""How much of a run may be drawn one by one, so that a page stays small whatever the run was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from emu.report.series import Series

MOST_VIEWS: Final = 16
"""Timelines and drawings of one page: one for each fabric and repeat; above it, fewer repeats have one."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What one timeline and one drawing may hold.

    bars: flows, and collectives, that are drawn one by one. bins: into which time is cut where there are more.
    cells: directed links times steps.
    """

    bars: int
    bins: int
    cells: int

    @classmethod
    def of(cls, views: int) -> Budget:
        """That of each of so many."""
        share = max(views, 1)
        return cls(
            bars=_between(300, 16_000 // share, 3000),
            bins=_between(60, 2880 // share, 360),
            cells=_between(4000, 240_000 // share, 40_000),
        )


def views(series: Sequence[Series]) -> list[tuple[Series, int]]:
    """Which fabrics in which repeats are drawn: as many repeats of each, from the first one, as there is room for."""
    most = max(1, MOST_VIEWS // max(len(series), 1))
    return [(one, repeat + 1) for one in series for repeat in range(min(most, len(one.entry.repeats)))]


def _between(low: int, value: int, high: int) -> int:
    return max(low, min(value, high))
