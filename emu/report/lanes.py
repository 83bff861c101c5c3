"""Rows of a timeline that many intervals share: side by side where they overlap."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from emu.report.series import Floats


def lanes(starts: Sequence[float], ends: Sequence[float], most: int, slack: float = 0.0) -> tuple[list[int], int]:
    """For each interval the lane that it is drawn in, from 0, and how many lanes there are.

    Intervals must be sorted by start. Above `most` lanes some are drawn over each other.
    slack: by how much two may overlap in one lane.
    """
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    out: list[int] = []
    made = 0
    for start, end in zip(starts, ends, strict=True):
        while busy and busy[0][0] <= start + slack:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, made = made, made + 1
        heapq.heappush(busy, (end, lane))
        out.append(lane % most)
    return out, min(max(made, 1), most)


def binned(starts: Floats, ends: Floats, amounts: Floats, edges: Floats) -> Floats:
    """How much of some amounts, each spread evenly from its start to its end, falls between each two edges."""
    times = np.maximum(ends - starts, 1e-6 * (edges[1] - edges[0]))  # no slope is so steep that it drowns the others
    at = np.concatenate([starts, starts + times])
    slope = np.concatenate([amounts / times, -amounts / times])
    order = np.argsort(at, kind="stable")
    at, slope = at[order], np.cumsum(slope[order])
    total = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(at))]) if len(at) else np.zeros(0)
    return np.diff(np.interp(edges, at, total)) if len(at) else np.zeros(len(edges) - 1)
