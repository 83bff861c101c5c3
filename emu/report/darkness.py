"""Dark time by its four figures, each a distribution of its own: asked, control, data plane, service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from emu.report import words
from emu.report.completions import distribution
from emu.report.series import Floats, Series, numbers, texts
from emu.report.shapes import Json, shorts

FIGURES: Final = (
    ("asked", "asked_dark_s", "what the schedule or policy asked for"),
    ("control", "control_dark_s", "last delete sent to last barrier reply"),
    ("data plane", "data_plane_dark_s", "last frame by a circuit that goes to first by one that comes, by probes"),
    ("service", "service_dark_s", "how long the affected flows stood still, TCP's recovery included"),
)
"""Name, column and meaning. They are never mixed."""
MODELLED: Final = (
    "asked",
    "asked_dark_s",
    "what the schedule or policy asked for, which the model takes for the whole",
)
"""All that there is of a predicted run."""
_SHARE: Final = ("transport's share", "transport_share_s", "service less data plane")


@dataclass(frozen=True, slots=True)
class DarkRow:
    """One figure on one fabric, over all changes of all repeats. measured: in how many of them it was."""

    place: int
    fabric: str
    figure: str
    meaning: str
    measured: str
    low: str
    median: str
    high: str


def dark_rows(series: Sequence[Series]) -> list[DarkRow]:
    """Every figure of every fabric whose circuits changed."""
    return [row for one in series for row in _rows(one)]


def dark_points(series: Sequence[Series]) -> list[Json]:
    """For each fabric and figure: its values, the smallest first, and which changes they are of where those are few."""
    out = []
    for one in series:
        for name, column, _ in (MODELLED,) if one.predicted else FIGURES:
            values = numbers(one.circuits, column)
            known = np.flatnonzero(np.isfinite(values))
            if len(known):
                out.append({"series": one.place, "figure": name, **_points(one, values, known)})
    return out


def unsuccessful(series: Sequence[Series]) -> list[tuple[str, str, str]]:
    """Changes that were aborted, or that probes found wrong: fabric, epoch and what happened; the first ones."""
    found = []
    for one in series:
        epochs = numbers(one.circuits, "epoch")
        for epoch, outcome in zip(epochs, texts(one.circuits, "outcome"), strict=True):
            if outcome != "committed":
                found.append((one.label, f"epoch {int(epoch)}", outcome))
    return found[:20]


def _points(one: Series, values: Floats, known: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Json:
    if len(known) > 400:
        return {"seconds": shorts(distribution(values[known])[0]), "changes": [], "count": len(known)}
    order = known[np.argsort(values[known], kind="stable")]
    epochs, repeats = numbers(one.circuits, "epoch"), numbers(one.circuits, "repeat")
    changes = [f"epoch {int(epochs[at])}, repeat {int(repeats[at])}" for at in order]
    return {"seconds": shorts(values[order]), "changes": changes, "count": len(known)}


def _rows(one: Series) -> Iterator[DarkRow]:
    total = len(one.circuits)
    figures = (MODELLED,) if one.predicted else (*FIGURES, _SHARE)
    for name, column, meaning in figures if total else ():
        values = numbers(one.circuits, column)
        known = values[np.isfinite(values)]
        low, middle, high = (
            (words.duration(float(of(known))) for of in (np.min, np.median, np.max))
            if len(known)
            else (words.NONE,) * 3
        )
        measured = f"modelled, {total}" if one.predicted else f"{len(known)} of {total}"
        yield DarkRow(one.place, one.label, name, meaning, measured, low, middle, high)
