"""Flow completion times as distributions, and slowdown by size. Flows that stay inside a host are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from emu.report import words
from emu.report.series import Floats, Series, numbers, phase_order, texts
from emu.report.shapes import Json, shorts

MOST_POINTS: Final = 240
"""Points of one distribution; below as many flows it is exact."""
MOST_SIZES: Final = 14
ALL: Final = "all phases"


def completions(series: Sequence[Series]) -> Json:
    """For every phase, and all of them, one distribution and one slowdown curve for each fabric."""
    names = phase_order(series)
    choices = names if len(names) == 1 else [ALL, *names]
    found: Json = {}
    for phase in choices:
        curves = [curve for one in series if (curve := _curve(one, phase)) is not None]
        if curves:
            found[phase] = curves
    return {"phases": [phase for phase in choices if phase in found], "curves": found}


def _curve(one: Series, phase: str) -> Json | None:
    rows = one.flows[one.flows["how"] != "local"]
    if phase != ALL:
        rows = rows[rows["phase"] == phase]
    if not len(rows):
        return None
    times = numbers(rows, "fct_s")
    seconds, shares = distribution(times)
    median, tail = (words.duration(float(np.percentile(times, at, method="inverted_cdf"))) for at in (50, 99))
    return {
        "series": one.place,
        "count": len(rows),
        "fct": shorts(seconds, 5),
        "share": shorts(shares, 5),
        "text": f"median {median}, 99th percentile {tail}",
        "resent": None if one.predicted else int(np.nansum(numbers(rows, "retransmits"))),
        "charged": texts(rows, "how").count("charged"),
        **_slowdowns(numbers(rows, "bytes"), numbers(rows, "slowdown")),
    }


def distribution(values: Floats) -> tuple[Floats, Floats]:
    """The empirical distribution: values in order and the share of all that do not exceed each.

    Every value if there are few; else quantiles that lie closer to each other at both ends.
    """
    ordered = np.sort(values)
    count = len(ordered)
    if count <= MOST_POINTS:
        return ordered, np.arange(1, count + 1) / count
    turn = (1 - np.cos(np.linspace(0, np.pi, MOST_POINTS))) / 2
    ranks = np.unique(np.round(turn * (count - 1)).astype(int))
    return ordered[ranks], (ranks + 1) / count


def _slowdowns(sizes: Floats, slowdowns: Floats) -> Json:
    """Median and 99th percentile of the slowdown, by size: each size if there are few, else groups of as many flows."""
    known = np.isfinite(slowdowns)
    sizes, slowdowns = sizes[known], slowdowns[known]
    medians, tails, middles, counts = [], [], [], []
    for group in _by_size(sizes):
        medians.append(float(np.median(slowdowns[group])))
        tails.append(float(np.percentile(slowdowns[group], 99, method="inverted_cdf")))
        middles.append(float(np.median(sizes[group])))
        counts.append(len(group))
    return {"size": shorts(middles), "median": shorts(medians), "p99": shorts(tails), "counts": counts}


def _by_size(sizes: Floats) -> list[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """The places of the sizes of each group, from small to large."""
    if not len(sizes):
        return []
    order = np.argsort(sizes, kind="stable")
    different, first = np.unique(sizes[order], return_index=True)
    if len(different) <= MOST_SIZES:
        return np.split(order, first[1:])
    edges = np.unique(np.searchsorted(sizes[order], np.quantile(sizes, np.linspace(0, 1, MOST_SIZES + 1))[1:-1]))
    return [group for group in np.split(order, edges) if len(group)]
