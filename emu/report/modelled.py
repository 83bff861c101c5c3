"""Counterfactuals beside a run: its fabrics if circuits changed in no time, or never, as the model has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from emu.report import words
from emu.report.series import Series, numbers

WHOLE: Final = "whole run"
INSTANT: Final = "no dark time"
NEVER: Final = "no reconfiguration"


@dataclass(frozen=True, slots=True)
class Other:
    """A time that the model gives. problem: why there is none, or empty."""

    text: str
    problem: str


@dataclass(frozen=True, slots=True)
class Modelled:
    """One phase, or the whole run, of one fabric. was: as it was, the median over the repeats."""

    place: int
    fabric: str
    phase: str
    was: str
    ideal: str
    instant: Other
    never: Other

    @property
    def problems(self) -> list[str]:
        """Why it has no time where it has none."""
        return [other.problem for other in (self.instant, self.never) if other.problem]


def counterfactual_rows(series: Sequence[Series]) -> list[Modelled]:
    """The whole run and every phase of each fabric that has counterfactuals."""
    return [row for one in series if one.entry.counterfactuals for row in _rows(one)]


def _rows(one: Series) -> Iterator[Modelled]:
    ends = [repeat.end_s for repeat in one.entry.repeats if repeat.complete]
    yield _row(one, WHOLE, float(np.median(ends)) if ends else None, None)
    medians = one.phases.groupby("phase", sort=False)[["duration_s", "ideal_s"]].median()
    times = {str(name): place for place, name in enumerate(medians.index)}
    was, ideal = numbers(medians, "duration_s"), numbers(medians, "ideal_s")
    for phase in one.phase_names:
        yield _row(one, phase, float(was[times[phase]]), float(ideal[times[phase]]))


def _row(one: Series, phase: str, was: float | None, ideal: float | None) -> Modelled:
    instant, never = (_other(one, kind, phase) for kind in (INSTANT, NEVER))
    return Modelled(one.place, one.label, phase, words.duration(was), words.duration(ideal), instant, never)


def _other(one: Series, kind: str, phase: str) -> Other:
    entry = next((each for each in one.entry.counterfactuals if each.kind == kind), None)
    if entry is None:
        return Other(words.NONE, "")
    if phase == WHOLE:
        problem = next(iter(entry.problems.values()), "") if entry.end_s is None else ""
        seconds = entry.end_s
    else:
        problem, seconds = entry.problems.get(phase, ""), entry.phases_s.get(phase)
    return Other("no path" if problem else words.duration(seconds), problem)
