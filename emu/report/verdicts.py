"""What stands first in a report: whether its numbers can be trusted, why not, and what they come to."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from emu.report import words
from emu.report.series import Series, numbers
from emu.units import format_size
from emu.verdict.levels import Level, Reason

_ALIKE = 3
"""So many reasons of one rule are shown at once; the others can be unfolded."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """Reasons of one level and rule: the first few, and the others."""

    shown: Sequence[Reason]
    more: Sequence[Reason]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a card, with what it is."""

    value: str
    what: str


@dataclass(frozen=True, slots=True)
class Card:
    """One fabric: its verdict, why, and its figures. notes: what its lab could not do, and what ended it.

    level: None for a prediction, which nobody can judge.
    """

    place: int
    label: str
    level: Level | None
    reasons: Sequence[Reasons]
    notes: Sequence[str]
    figures: Sequence[Figure]
    partial: bool = field(default=False)


def cards(series: Sequence[Series]) -> list[Card]:
    """One card for each fabric."""
    return [_card(one) for one in series]


def _card(one: Series) -> Card:
    return Card(
        place=one.place,
        label=one.label,
        level=None if one.predicted else one.entry.verdict.level,
        reasons=list(_grouped(one.entry.verdict.reasons)),
        notes=list(_notes(one)),
        figures=list(_figures(one)),
        partial=one.entry.partial,
    )


def _grouped(reasons: Sequence[Reason]) -> Iterator[Reasons]:
    """Reasons of one rule together, in the order in which the first of each comes."""
    order = {key: place for place, key in reversed(list(enumerate((r.level, r.rule) for r in reasons)))}
    for _, group in groupby(sorted(reasons, key=lambda r: order[r.level, r.rule]), key=lambda r: (r.level, r.rule)):
        alike = list(group)
        yield Reasons(alike[:_ALIKE], alike[_ALIKE:])


def _notes(one: Series) -> Iterator[str]:
    if one.entry.error:
        yield one.entry.error
    elif one.entry.partial:
        yield "stopped before its end; its numbers are of the part that ran"
    facts = one.entry.facts
    if facts is not None:
        yield from facts.notes
        if facts.queue_floored:
            yield f"queues were kept at {format_size(facts.queue_bytes)}, more than the scenario's queue scales to"


def _figures(one: Series) -> Iterator[Figure]:
    """The whole run, its slowest phase against the ideal, dark time, and what TCP sent again."""
    repeats = one.entry.repeats
    ends = [repeat.end_s for repeat in repeats if repeat.complete]
    if ends:
        what = "whole workload" if len(repeats) == 1 else f"whole workload, median of {len(ends)}"
        yield Figure(words.duration(statistics.median(ends)), what)
    ratios = one.phases.groupby("phase", sort=False)["ratio"].median().dropna()
    if len(ratios):
        worst = str(ratios.idxmax())
        yield Figure(f"{ratios.max():.3f}×", f"the ideal: slowest phase, {worst}")
    if one.entry.ocses and len(one.circuits):
        dark = np.nansum(numbers(one.circuits, "control_dark_s")) / max(len(repeats), 1)
        changes = len(one.circuits) / max(len(repeats), 1)
        yield Figure(
            words.duration(float(dark)), f"dark, in {changes:g} change{'' if changes == 1 else 's'} of circuits"
        )
    if repeats and not one.predicted:
        sent = sum(repeat.health.retransmits for repeat in repeats) / len(repeats)
        yield Figure(words.count(sent), "segments sent again")
