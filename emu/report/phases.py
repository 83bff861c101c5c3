"""Phases measured against their ideal, for every fabric side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from emu.report import words
from emu.report.series import Floats, Series, numbers, phase_order

if TYPE_CHECKING:
    import pandas as pd

_ALIKE = 40.0
"""Phases whose longest is so many times the shortest are not drawn to one scale: the short ones would vanish."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One fabric in one phase. Lengths are percent of the widest; texts are for people.

    measured: the median over the repeats. low, high: the shortest and the longest, where there are several repeats.
    exposed, hidden: communication that nothing hid, and that computation hid.
    """

    place: int
    label: str
    measured: float
    ideal: float | None
    low: float
    high: float
    time: str
    ratio: str
    spread: str
    exposed: float
    hidden: float
    detail: Sequence[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class PhaseBars:
    """One phase on every fabric that has it."""

    phase: str
    bars: Sequence[Bar]


def phase_bars(series: Sequence[Series]) -> tuple[list[PhaseBars], bool]:
    """Every phase in the order of time; and whether all are drawn to one scale."""
    names = phase_order(series)
    longest = {name: max(_longest(one, name) for one in series) for name in names}
    known = [seconds for seconds in longest.values() if seconds > 0]
    common = bool(known) and max(known) / min(known) <= _ALIKE
    widest = max(known, default=1.0)
    return [
        PhaseBars(name, list(_bars(series, name, widest if common else longest[name] or 1.0))) for name in names
    ], common


def _longest(one: Series, phase: str) -> float:
    rows = one.phases[one.phases["phase"] == phase]
    both = np.concatenate([numbers(rows, "duration_s"), numbers(rows, "ideal_s")])
    return float(np.nanmax(both)) if np.isfinite(both).any() else 0.0


def _bars(series: Sequence[Series], phase: str, widest: float) -> Iterator[Bar]:
    for one in series:
        rows = one.phases[one.phases["phase"] == phase]
        if len(rows):
            yield _bar(one, rows, widest)


def _bar(one: Series, rows: pd.DataFrame, widest: float) -> Bar:
    def median(column: str) -> float | None:
        return _median(numbers(rows, column))

    times = numbers(rows, "duration_s")
    measured, ideal = median("duration_s") or 0.0, median("ideal_s")
    several = len(rows) > 1
    spread = f"{words.duration(times.min())} to {words.duration(times.max())}" if several else ""
    return Bar(
        place=one.place,
        label=one.label,
        measured=100 * measured / widest,
        ideal=None if ideal is None else 100 * ideal / widest,
        low=100 * float(times.min()) / widest,
        high=100 * float(times.max()) / widest,
        time=words.duration(measured),
        ratio=words.ratio(measured / ideal if ideal else None),
        spread=spread,
        exposed=100 * (median("exposed_s") or 0.0) / widest,
        hidden=100 * (median("hidden_s") or 0.0) / widest,
        detail=[
            ("ideal", words.duration(ideal), ""),
            ("exposed", words.duration(median("exposed_s")), words.duration(median("ideal_exposed_s"))),
            ("hidden", words.duration(median("hidden_s")), words.duration(median("ideal_hidden_s"))),
            *_optics(one, median("dark_share"), median("ideal_dark_share"), median("circuit_bytes")),
        ],
    )


def _optics(
    one: Series, dark: float | None, ideal: float | None, carried: float | None
) -> Iterator[tuple[str, str, str]]:
    if one.entry.ocses:
        yield "dark", words.percent(dark), words.percent(ideal)
        yield "by circuits", words.size(carried), ""


def _median(values: Floats) -> float | None:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else None
