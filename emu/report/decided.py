"""What was decided about circuits, when and why: the policy's part of a run's events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from emu.report import words
from emu.report.collectives import Cell
from emu.report.series import Series, numbers, texts

MOST_DECISIONS: Final = 200
OUTCOMES: Final = ("plan", "keep", "skip", "drain")
"""The events that are decisions, as docs/results.md lists them; what circuits then did has tables of its own."""


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision on one fabric. at: modelled time. what: one of OUTCOMES. epoch: `epoch 3`, the one that is meant."""

    place: int
    fabric: str
    repeat: int
    at: Cell
    what: str
    epoch: str
    reason: str


def decisions(series: Sequence[Series]) -> tuple[list[Decided], int]:
    """The first decisions of the fabrics that have an OCS, by fabric, repeat and time; and how many more there are.

    Where there are too many, each fabric has its share of the rows.
    """
    found = [list(_of(one)) for one in series if one.entry.ocses]
    found = [rows for rows in found if rows]
    total = sum(len(rows) for rows in found)
    share = MOST_DECISIONS if total <= MOST_DECISIONS else max(1, MOST_DECISIONS // len(found))
    shown = [row for rows in found for row in rows[:share]]
    return shown, total - len(shown)


def _of(one: Series) -> Iterator[Decided]:
    rows = one.events[one.events["event"].isin(OUTCOMES)].sort_values(["repeat", "at_s"], kind="stable")
    columns = (
        numbers(rows, "repeat"),
        numbers(rows, "at_s"),
        *(texts(rows, n) for n in ("event", "subject", "detail")),
    )
    for repeat, at, event, subject, detail in zip(*columns, strict=True):
        when = Cell(words.duration(float(at)), float(at))
        yield Decided(one.place, one.label, int(repeat), when, str(event), str(subject), str(detail))
