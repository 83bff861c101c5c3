"""Lists of message sizes: sweeps, and layer buckets merged into fewer."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple


class Bucket(NamedTuple):
    """`merged` neighbouring messages sent as one of `bytes`."""

    bytes: int
    merged: int


def sweep(first: int, last: int, factor: int = 2) -> tuple[int, ...]:
    """The sizes that nccl-tests steps through for -b first -e last -f factor, in bytes.

    Raises ValueError if the sizes do not grow from 1 byte or more.
    """
    if first < 1 or last < first or factor < 2:
        raise ValueError(f"a sweep needs 1 <= first <= last and factor >= 2, not {first}, {last} and {factor}")
    sizes = itertools.accumulate(itertools.repeat(factor), lambda size, by: size * by, initial=first)
    return tuple(itertools.takewhile(lambda size: size <= last, sizes))


def merge_buckets(sizes: Sequence[int], count: int) -> tuple[Bucket, ...]:
    """Merge neighbours into `count` buckets (fewer if there are fewer sizes) that are as even as possible.

    As even as possible: the sum of the squared bucket sizes is the least. Order and total bytes are kept. Takes of the
    order of count * len(sizes)^2 / 2 steps. Raises ValueError for a count below 1.
    """
    if count < 1:
        raise ValueError(f"the number of buckets must be at least 1, not {count}")
    if count >= len(sizes):
        return tuple(Bucket(size, 1) for size in sizes)
    ends = list(itertools.accumulate(sizes, initial=0))
    edges = itertools.pairwise(_even_cuts(ends, count))
    return tuple(Bucket(ends[stop] - ends[start], stop - start) for start, stop in edges)


def _even_cuts(ends: Sequence[int], count: int) -> list[int]:
    """Indices into the cumulated sizes, first and last included, that cut them into `count` parts.

    Dynamic programming: the best cut of the first n sizes into p parts follows a best cut of fewer into p - 1.
    """
    total = len(ends) - 1
    cost: dict[int, int] = {0: 0}
    choices: list[dict[int, int]] = []
    for part in range(1, count + 1):
        best: dict[int, int] = {}
        choice: dict[int, int] = {}
        for stop in range(part, total - (count - part) + 1):
            before = [start for start in range(part - 1, stop) if start in cost]
            choice[stop] = min(before, key=lambda start: cost[start] + (ends[stop] - ends[start]) ** 2)
            best[stop] = cost[choice[stop]] + (ends[stop] - ends[choice[stop]]) ** 2
        cost = best
        choices.append(choice)
    cuts = [total]
    for choice in reversed(choices):
        cuts.append(choice[cuts[-1]])
    return cuts[::-1]
