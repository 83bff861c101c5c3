"""What a verdict is: a level, and the reasons for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

Level = Literal["VALID", "DEGRADED", "INVALID"]
LEVELS: Final[tuple[Level, ...]] = ("VALID", "DEGRADED", "INVALID")
"""From good to bad."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a run is not simply valid.

    level: DEGRADED or INVALID. place: the link, collective, phase, host or repeat that is meant.
    text: what was found there, one line, both numbers named. rule: which row of the table of thresholds says so.
    """

    level: Level
    place: str
    text: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether numbers can be trusted; without reasons, they can."""

    level: Level
    reasons: tuple[Reason, ...] = ()

    @classmethod
    def of(cls, reasons: Iterable[Reason]) -> Verdict:
        """The verdict that these reasons make, in their order: causes come first."""
        ordered = tuple(reasons)
        return cls(worst(reason.level for reason in ordered), ordered)


def worst(levels: Iterable[Level]) -> Level:
    """The worst of some levels, VALID if there are none."""
    return max(levels, key=LEVELS.index, default="VALID")
