"""Measured by predicted, with spread: each step and phase on each fabric of some packet runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from emu.model.ideal import Prediction
from emu.model.transport import IDEAL
from emu.progress import Listener, Progress, silent
from emu.validate.fitted import FittedTransport
from emu.validate.held import Group, HeldRun, groups_of
from emu.verdict.levels import Level

CLOSE: Final = {"collective": 0.05, "phase": 0.10}
"""How far from its prediction a median is still called close: bulk collectives, and phases that mix what they do."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Ratios of measured to predicted times: the median, the smallest and the largest."""

    median: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class Line:
    """One step or phase on one fabric of a run.

    kind: `collective` or `phase`. what: algorithm and collective. count: measured times, all sizes and repeats.
    ideal: against the ideal transport, None if it predicts no time. fitted: against the fitted one, None where there is
    none or where it was fitted on this workload, fabric or size. verdict: of the fabric's run, by the ideal alone.
    """

    run: str
    fabric: str
    fabric_kind: str
    kind: str
    name: str
    what: str
    count: int
    ideal: Spread | None
    fitted: Spread | None
    verdict: Level

    @property
    def close(self) -> bool | None:
        """Whether the median is within `CLOSE` of the ideal; None without one."""
        return None if self.ideal is None else abs(self.ideal.median - 1) <= CLOSE[self.kind]


def validate(
    directories: Sequence[Path], fitted: FittedTransport | None = None, listener: Listener = silent
) -> list[Line]:
    """Hold the packet runs in these directories against the model of today, run by run in their order.

    Raises InputError for a directory without a whole packet run.
    """
    lines = []
    for directory in directories:
        run = HeldRun.load(directory)
        listener(Progress("predict", str(directory)))
        lines += _lines(run, fitted)
    return lines


def _lines(run: HeldRun, fitted: FittedTransport | None) -> list[Line]:
    by_ideal = {built.fabric.name: run.predict(built, IDEAL) for built in run.built}
    groups = list(groups_of(run, by_size=False))
    unseen = {group.fabric for group in groups if fitted is not None and fitted.unseen(group)}
    by_fitted = {
        built.fabric.name: run.predict(built, fitted.at(run.scale))
        for built in run.built
        if fitted is not None and built.fabric.name in unseen
    }
    return [_line(group, by_ideal[group.fabric], by_fitted.get(group.fabric), fitted) for group in groups]


def _line(group: Group, ideal: Prediction, fitted: Prediction | None, transport: FittedTransport | None) -> Line:
    entry = next(entry for entry in group.run.manifest.fabrics if entry.name == group.fabric)
    shown = fitted is not None and transport is not None and transport.unseen(group)
    return Line(
        run=group.run.manifest.name,
        fabric=group.fabric,
        fabric_kind=entry.kind,
        kind=group.kind,
        name=group.name,
        what=group.what,
        count=len(group.times),
        ideal=_spread(group.ratios(ideal)),
        fitted=_spread(group.ratios(fitted)) if shown and fitted is not None else None,
        verdict=entry.verdict.level,
    )


def _spread(ratios: Sequence[float]) -> Spread | None:
    return Spread(statistics.median(ratios), min(ratios), max(ratios)) if ratios else None
