"""What a plan is, and how it reads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from emu.scale import Scale
from emu.units import format_duration, format_rate


@dataclass(frozen=True, slots=True)
class Estimate:
    """Wall seconds that one fabric is expected to take, all its repeats included."""

    fabric: str
    start: float
    calibrate: float
    traffic: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.start + self.calibrate + self.traffic


@dataclass(frozen=True, slots=True)
class Plan:
    """What is decided before a lab is built.

    scale: the one that all fabrics, seeds and repeats share.
    buckets: layer gradients are merged into at most so many collectives; None: none are merged.
    rate: what the fastest NICs run at in the lab, bit/s.
    estimates: one for each fabric, in order.
    budget: wall seconds that the scenario allows.
    binding: which limits chose beta and sigma, a line each.
    merged: what was merged, "" if nothing was.
    nominal: the machine was not measured; typical figures stand in.
    notes: what a user should know beside.
    """

    scale: Scale
    buckets: int | None
    rate: float
    estimates: tuple[Estimate, ...]
    budget: float
    binding: tuple[str, ...]
    merged: str = ""
    nominal: bool = False
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """Expected wall seconds of the whole scenario, one lab after the other."""
        return sum(estimate.total for estimate in self.estimates)


def describe(plan: Plan) -> list[str]:
    """The plan for people, one line each: scale, why, merging, wall time, notes."""
    return list(_lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    scale = plan.scale
    yield (
        f"scale: sigma {scale.sigma:g} (bytes), beta {scale.beta:g} (rates), TDF {scale.tdf:g}: the fastest NICs run "
        f"at {format_rate(plan.rate)}, one modelled second takes {format_duration(scale.tdf)}"
    )
    yield from (f"because: {reason}" for reason in plan.binding)
    if plan.merged:
        yield f"merged: {plan.merged}"
    for estimate in plan.estimates:
        yield (
            f"time: {estimate.fabric} about {seconds(estimate.total)} (start {seconds(estimate.start)}, "
            f"calibration {seconds(estimate.calibrate)}, traffic {seconds(estimate.traffic)})"
        )
    yield f"time: about {seconds(plan.total)} in all; the budget is {format_duration(plan.budget)}"
    if plan.nominal:
        yield "nominal: this machine was not measured; typical figures stand in for it"
    yield from (f"note: {note}" for note in plan.notes)


def seconds(value: float) -> str:
    """Wall seconds, rounded up, as precisely as an estimate deserves."""
    return f"{math.ceil(value)} s" if value >= 10 else format_duration(float(f"{value:.2g}"))
