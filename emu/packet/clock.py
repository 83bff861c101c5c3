"""Modelled time: it runs at wall time over the dilation (TDF) while bytes move, and jumps over idle stretches."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Jump:
    """An idle stretch that was skipped, in modelled seconds."""

    start: float
    end: float


class ModelClock:
    """Modelled seconds since time zero. One wall second is 1/tdf modelled seconds."""

    def __init__(self, tdf: float) -> None:
        """Stand at zero until `start`."""
        self.tdf = tdf
        self.jumps: list[Jump] = []
        self._origin = 0.0

    def start(self) -> None:
        """Time zero is now."""
        self._origin = time.monotonic()

    def now(self) -> float:
        """The modelled time at this moment."""
        return (time.monotonic() - self._origin) / self.tdf

    def wall(self, modelled: float) -> float:
        """The CLOCK_MONOTONIC second at which that modelled time comes, if nothing is skipped until then."""
        return self._origin + modelled * self.tdf

    def jump(self, to: float) -> None:
        """Make it `to` now. A time that has passed is left alone: modelled time never goes back."""
        now = self.now()
        if to > now:
            self.jumps.append(Jump(now, to))
            self._origin -= (to - now) * self.tdf
