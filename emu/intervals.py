"""Sets of instants, as disjoint intervals in order: united, cut out of each other, and measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Interval = tuple[float, float]
"""From an instant to a later one; one that has no length is of no account."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The instants that lie in any of the intervals, whatever their order and overlap."""
    out: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


def without(these: Sequence[Interval], those: Sequence[Interval]) -> list[Interval]:
    """The instants of `these` that are not in `those`; both as `union` gives them."""
    out: list[Interval] = []
    place = 0
    for start, end in these:
        while place < len(those) and those[place][1] <= start:
            place += 1
        at = start
        for cut_start, cut_end in those[place:]:
            if cut_start >= end:
                break
            if cut_start > at:
                out.append((at, cut_start))
            at = cut_end
        if at < end:
            out.append((at, end))
    return out


def common(these: Sequence[Interval], those: Sequence[Interval]) -> list[Interval]:
    """The instants that are in both; both as `union` gives them."""
    return without(these, without(these, those))


def length(intervals: Iterable[Interval]) -> float:
    """How long disjoint intervals are together."""
    return sum(end - start for start, end in intervals)
