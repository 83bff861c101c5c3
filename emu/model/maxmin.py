"""Max-min fair rates of flows on fixed paths.

An allocation is max-min fair if no flow's rate can grow without shrinking that of a flow which is no faster. It is
unique, and equivalent to: every flow crosses a bottleneck, a full link on which no flow is faster than it (Bertsekas
and Gallager, Data Networks, 6.5.2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Links = npt.NDArray[np.int32]
"""Numbers of links: paths of millions of flows fit the memory so."""
AnyInts = npt.NDArray[np.int64] | npt.NDArray[np.int32]

_TIE = 1e-9
"""Shares that differ by less, relatively, are one: sums in another order must not split a bottleneck."""


def rates(paths: Sequence[Sequence[int]], capacities: Sequence[float] | Floats) -> Floats:
    """The max-min fair rate of each flow, in the unit of `capacities`.

    paths: for each flow the indices of the links it crosses. A flow that crosses none is unbounded: its rate is inf.
    capacities: of each link, not negative.
    Raises ValueError for a negative capacity and IndexError for a link that has none.
    """
    limits = np.asarray(capacities, dtype=np.float64)
    if limits.size and limits.min() < 0:
        raise ValueError(f"link {int(limits.argmin())} has the negative capacity {limits.min()}")
    for flow, path in enumerate(paths):
        if path and not 0 <= min(path) <= max(path) < limits.size:
            raise IndexError(f"flow {flow} crosses {list(path)}, but there are {limits.size} links")
    return fill(padded(paths, limits.size), limits)


def padded(paths: Sequence[Sequence[int]], links: int) -> Ints:
    """Paths as a (flows, longest path) matrix of link indices; short rows are filled with the index `links`."""
    matrix = np.full((len(paths), max((len(path) for path in paths), default=0)), links, dtype=np.int64)
    for row, path in zip(matrix, paths, strict=True):
        row[: len(path)] = path
    return matrix


def fill(paths: AnyInts, capacities: Floats, weights: Floats | None = None) -> Floats:
    """Progressive filling over `padded` paths; returns the rate of each row.

    weights: for how many equal flows each row stands (default: one); its rate is that of each of them.

    All flows grow together until a link is full; its flows then keep their rates, the others go on. As the fair share
    of a link never falls while others fill, a link that is the tightest of every flow on it can be filled at once,
    however full the rest: one round settles all such links, so rounds count dependent bottlenecks, not links.
    """
    if paths.size < capacities.size:  # a few flows on a large network: only the links that they cross
        used, compact = np.unique(paths, return_inverse=True)
        paths, capacities = compact.reshape(paths.shape), capacities[used[used != capacities.size]]
    room = np.append(capacities, np.inf)  # the last one is the padding
    out = np.empty(len(paths))
    waiting = np.arange(len(paths))
    while waiting.size:
        settled, level = _round(paths, room, weights)
        out[waiting[settled]] = level[settled]
        _take(room, paths[settled], level[settled] if weights is None else (level * weights)[settled])
        going = ~settled
        waiting, paths = waiting[going], paths[going]
        weights = None if weights is None else weights[going]
    return out


def _round(paths: AnyInts, room: Floats, weights: Floats | None) -> tuple[Bools, Floats]:
    """Which flows cross a link that is the tightest of all its flows, and each flow's tightest fair share."""
    repeated = None if weights is None else np.repeat(weights, paths.shape[1])
    users = np.bincount(paths.ravel(), weights=repeated, minlength=room.size)
    share = room / np.maximum(users, 1)
    shares = share[paths]
    level = shares.min(axis=1, initial=np.inf)
    looser = shares > level[:, np.newaxis] * (1 + _TIE)
    bottleneck = np.ones(room.size, dtype=np.bool_)
    bottleneck[paths[looser]] = False
    bottleneck[-1] = False
    return bottleneck[paths].any(axis=1) | np.isinf(level), level


def _take(room: Floats, paths: AnyInts, level: Floats) -> None:
    """Reserve the rate `level` of each row on the links of its path."""
    taken = np.bincount(paths.ravel(), weights=np.repeat(level, paths.shape[1]), minlength=room.size)
    room[:-1] = np.maximum(room[:-1] - taken[:-1], 0.0)
