"""What the rules of a verdict look at, and what several of them work out."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from emu.measurement import Measurement, Repeat
from emu.model.ideal import Prediction
from emu.verdict.levels import Reason
from emu.verdict.thresholds import Band, Thresholds
from emu.wire import payload_per_frame

_DEFAULT_MTU = 9000


@dataclass(frozen=True, slots=True)
class Case:
    """One fabric's measurement, its prediction, and the thresholds."""

    measurement: Measurement
    prediction: Prediction
    thresholds: Thresholds

    @property
    def tdf(self) -> float:
        """Wall seconds per modelled second."""
        return self.measurement.beta / self.measurement.sigma

    @property
    def segment(self) -> int:
        """Payload bytes of a full frame in the lab."""
        facts = self.measurement.facts
        return payload_per_frame(facts.mtu if facts else _DEFAULT_MTU)

    def repeats(self) -> Iterator[tuple[str, Repeat]]:
        """Every repeat with the name of its place: "run", or "repeat 2" if there are several."""
        several = len(self.measurement.repeats) > 1
        for number, repeat in enumerate(self.measurement.repeats, start=1):
            yield (f"repeat {number}" if several else "run"), repeat

    def segments(self, repeat: Repeat) -> float:
        """How many segments a repeat's transfers need at least."""
        sent = sum(row.bytes for row in repeat.trace.flows if row.how == "packets")
        return max(1.0, sent / self.measurement.sigma / self.segment)


def graded(rule: str, band: Band, value: float, place: str, text: str) -> Iterator[Reason]:
    """The reason that a number gives, if it gives one."""
    level = band.level(value)
    if level != "VALID":
        yield Reason(level, place, text, rule)


def median(values: Iterable[float]) -> float | None:
    """The median, or None of nothing."""
    ordered = list(values)
    return statistics.median(ordered) if ordered else None


def percent(share: float) -> str:
    """0.0312 as "3.1 %"."""
    return f"{100 * share:.2g} %" if abs(share) < 0.1 else f"{100 * share:.0f} %"
