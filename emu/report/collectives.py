"""Collectives as a table: those of one step, kind and size together, for every fabric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from emu.report import words
from emu.report.series import Floats, Series, numbers, texts
from emu.report.shapes import Json, shorts
from emu.verdict.levels import Level
from emu.verdict.thresholds import THRESHOLDS

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS: Final = 240
_BOUNDS: Final[Mapping[Level, str]] = {"VALID": "yes", "DEGRADED": "beyond VALID's", "INVALID": "beyond DEGRADED's"}
"""Of the level that a ratio alone would have. A verdict weighs more, so none is written here."""
_SWEEP: Final = 3
_WIDE: Final = 4
"""A step with so many sizes, the largest so many times the smallest, is a sweep and drawn as one."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a table: for people, and for sorting."""

    text: str
    value: float


@dataclass(frozen=True, slots=True)
class Row:
    """Collectives of one step, kind and size on one fabric. bounds: whether their ratio is in those of a verdict."""

    place: int
    fabric: str
    phase: str
    label: str
    what: str
    count: Cell
    size: Cell
    cct: Cell
    spread: str
    ideal: Cell
    ratio: Cell
    algbw: Cell
    busbw: Cell
    bounds: str


def collective_rows(series: Sequence[Series]) -> tuple[list[Row], int]:
    """The rows in the order of phases and time, those of one step together; and how many more there are.

    Above the limit the rows with the largest ratios stay.
    """
    begun = _begun(series)
    found = sorted((pair for one in series for pair in _rows(one, begun)), key=lambda pair: pair[0])
    rows = [row for _, row in found]
    if len(rows) <= MOST_ROWS:
        return rows, 0
    order = sorted(range(len(rows)), key=lambda at: -rows[at].ratio.value)[:MOST_ROWS]
    return [rows[at] for at in sorted(order)], len(rows) - MOST_ROWS


def sweeps(series: Sequence[Series]) -> list[Json]:
    """Bus bandwidth by size, of steps that have several sizes: one curve for each step and fabric."""
    curves = []
    for one in series:
        for (label, kind), rows in one.collectives.groupby(["label", "kind"], sort=False):
            medians = rows.groupby("bytes")["busbw_Bps"].median().dropna()
            if len(medians) >= _SWEEP and medians.index.max() >= _WIDE * medians.index.min():
                curves.append(
                    {
                        "series": one.place,
                        "label": str(label),
                        "kind": str(kind),
                        "size": shorts(medians.index.to_numpy(dtype=float), 12),
                        "busbw": shorts(medians.to_numpy(dtype=float)),
                    }
                )
    return curves


_Order = tuple[int, str, float, str, float, int]


def _begun(series: Sequence[Series]) -> dict[tuple[str, str], float]:
    """By phase and step, when its first collective began on any fabric."""
    begun: dict[tuple[str, str], float] = {}
    for one in series:
        names = zip(texts(one.collectives, "phase"), texts(one.collectives, "label"), strict=True)
        for key, start in zip(names, numbers(one.collectives, "start_s").tolist(), strict=True):
            begun[key] = min(start, begun.get(key, start))
    return begun


def _rows(one: Series, begun: Mapping[tuple[str, str], float]) -> Iterator[tuple[_Order, Row]]:
    phases = {name: place for place, name in enumerate(one.phase_names)}
    for _, rows in one.collectives.groupby(["phase", "label", "kind", "algorithm", "bytes"], sort=False):
        phase, label, kind, algorithm = (texts(rows, name)[0] for name in ("phase", "label", "kind", "algorithm"))
        size = float(numbers(rows, "bytes")[0])
        order = (phases.get(phase, -1), phase, begun[phase, label], label, size, one.place)
        yield order, _row(one, phase, label, f"{algorithm} {kind}", size, rows)


def _row(one: Series, phase: str, label: str, what: str, size: float, rows: pd.DataFrame) -> Row:
    times = numbers(rows, "cct_s")
    cct, ideal = _median(times), _median(numbers(rows, "ideal_s"))
    ratio = cct / ideal if ideal > 0 else np.nan
    algbw, busbw = _median(numbers(rows, "algbw_Bps")), _median(numbers(rows, "busbw_Bps"))
    return Row(
        place=one.place,
        fabric=one.label,
        phase=phase,
        label=label,
        what=f"{what}, {int(rows['ranks'].iloc[0])} ranks",
        count=Cell(words.count(len(rows)), len(rows)),
        size=Cell(words.size(size), size),
        cct=Cell(words.duration(cct), cct),
        spread=f"{words.duration(times.min())} to {words.duration(times.max())}" if len(rows) > 1 else "",
        ideal=Cell(words.duration(ideal), ideal),
        ratio=Cell(words.ratio(ratio), ratio if np.isfinite(ratio) else -1.0),
        algbw=Cell(words.bandwidth(algbw), algbw),
        busbw=Cell(words.bandwidth(busbw), busbw),
        bounds=_BOUNDS[THRESHOLDS.completion.level(ratio)] if np.isfinite(ratio) and not one.predicted else words.NONE,
    )


def _median(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else float("nan")
