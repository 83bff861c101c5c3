"""How a run is scaled: what stands between the modelled system and the lab."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """sigma divides bytes, beta divides rates; durations then stretch by tdf = beta/sigma."""

    sigma: float
    beta: float

    @property
    def tdf(self) -> float:
        """Wall seconds per modelled second."""
        return self.beta / self.sigma

    def bytes(self, modelled: int) -> int:
        """Bytes that are sent for so many modelled ones, never less than one."""
        return max(1, round(modelled / self.sigma))
