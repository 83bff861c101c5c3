"""What a run says while it runs. The core emits these; the command line shows them, a library user may listen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Stage = Literal[
    "plan", "predict", "build", "controller", "verify", "calibrate", "traffic", "check", "write", "report", "done"
]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run is.

    fabric: which fabric's lab, "" for the run as a whole. stage: what it does. text: one line for people.
    fraction: how much of the stage is done, 0 to 1, or None if that is not known.
    """

    stage: Stage
    text: str
    fabric: str = ""
    fraction: float | None = None


Listener = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Nobody listens."""
