"""Collectives as nccl-tests reports them: one test for each step of the workload, one line for each size.

nccl-tests runs a collective many times and divides; here every collective that a step ran at a size, in every repeat
that is exported, is an iteration. Times are modelled; algbw = size / time and busbw = algbw times the kind's factor
(doc/PERFORMANCE.md of nccl-tests), in GB/s = 1e9 byte/s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Final, cast

from emu.errors import InputError
from emu.export.cells import Row, real, text, whole
from emu.export.selection import Selection
from workloads.collectives import bus_factor
from workloads.protocol import CollectiveKind

DATA_TYPE: Final = "uint8"
"""emu counts bytes, whatever they stand for: so an element is a byte."""
NO_ROOT: Final = -1
_PROGRAMS: Final[Mapping[str, str]] = {
    "all-reduce": "all_reduce_perf",
    "all-gather": "all_gather_perf",
    "reduce-scatter": "reduce_scatter_perf",
    "all-to-all": "alltoall_perf",
    "broadcast": "broadcast_perf",
    "permutation": "sendrecv_perf",
}
"""The programs of nccl-tests. Others are emu's own and named so: no factor of theirs means what nccl-tests means."""
_REDUCING: Final = frozenset({"all-reduce", "reduce-scatter"})
_SHARED_OUT: Final = frozenset({"all-gather", "reduce-scatter", "all-to-all"})
"""Kinds whose count is that of one rank's part, as nccl-tests prints it."""


@dataclass(frozen=True, slots=True)
class Size:
    """All collectives of one size. times: how long each took, modelled seconds, in the order of their starts."""

    bytes: int
    times: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Their mean time in seconds."""
        return fmean(self.times)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One step's collectives of one kind among so many ranks. sizes: ascending."""

    label: str
    kind: str
    algorithm: str
    ranks: int
    sizes: tuple[Size, ...]

    @property
    def program(self) -> str:
        """The program of nccl-tests that measures this, or `emu_<kind>` where none does."""
        return _PROGRAMS.get(self.kind, f"emu_{self.kind.replace('-', '_')}")

    @property
    def redop(self) -> str:
        """`sum` where something is reduced."""
        return "sum" if self.kind in _REDUCING else "none"

    def count(self, size: Size) -> int:
        """Elements (bytes) that a rank puts in or gets, as nccl-tests counts them for this kind."""
        return size.bytes // self.ranks if self.kind in _SHARED_OUT else size.bytes

    def algbw(self, size: Size) -> float:
        """Algorithm bandwidth in GB/s; 0 for a collective that took no time (all inside one host)."""
        return size.bytes / 1e9 / size.mean if size.mean > 0 else 0.0

    def busbw(self, size: Size) -> float:
        """Bus bandwidth in GB/s."""
        return self.algbw(size) * float(bus_factor(cast(CollectiveKind, self.kind), self.ranks))

    @property
    def iterations(self) -> int:
        """How often the size that ran most often was run."""
        return max(len(size.times) for size in self.sizes)

    @property
    def step(self) -> tuple[int, str]:
        """How sizes grow: by a `factor`, or else by `bytes` (from the first to the second)."""
        sizes = [size.bytes for size in self.sizes]
        if len(sizes) < 2:
            return 0, "bytes"
        factor = sizes[1] // sizes[0] if sizes[0] else 0
        geometric = factor > 1 and all(b == a * factor for a, b in pairwise(sizes))
        return (factor, "factor") if geometric else (sizes[1] - sizes[0], "bytes")


@dataclass(frozen=True, slots=True)
class Spread:
    """How the iterations of one size differ, in microseconds, by the formulas of nccl-tests' `-I`."""

    min: float
    max: float
    avg: float
    p50: float
    p95: float
    p99: float
    stdev: float

    @property
    def cv(self) -> float:
        """Coefficient of variation in per cent."""
        return self.stdev / self.avg * 100 if self.avg > 0 else 0.0


def benchmarks_of(selection: Selection) -> list[Benchmark]:
    """The benchmarks of a run's one fabric, in the order in which they started.

    Raises InputError for a run without collectives or with several fabrics.
    """
    selection.one_fabric("an nccl-tests table")
    rows = selection.tables["collectives"]
    if not rows:
        raise InputError(
            f"{selection.directory}: its workload ran no collectives, and nccl-tests reports nothing else",
            hint="its flows can be exported with --to hpcc-fct",
        )
    groups: dict[tuple[str, str, str, int], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (whole(row, "repeat"), real(row, "start_s"))):
        key = text(row, "label"), text(row, "kind"), text(row, "algorithm"), whole(row, "ranks")
        groups.setdefault(key, []).append(row)
    return [Benchmark(*key, _sizes(members)) for key, members in groups.items()]


def spread(times: tuple[float, ...]) -> Spread:
    """The spread of some times in seconds; percentiles are values that occurred, ranks rounded up."""
    ordered = sorted(time * 1e6 for time in times)

    def percentile(p: int) -> float:
        return ordered[math.ceil(len(ordered) * p / 100) - 1]

    return Spread(
        min=ordered[0],
        max=ordered[-1],
        avg=fmean(ordered),
        p50=ordered[len(ordered) // 2],
        p95=percentile(95),
        p99=percentile(99),
        stdev=pstdev(ordered),
    )


def _sizes(rows: list[Row]) -> tuple[Size, ...]:
    times: dict[int, list[float]] = {}
    for row in rows:
        times.setdefault(whole(row, "bytes"), []).append(real(row, "cct_s"))
    return tuple(Size(size, tuple(times[size])) for size in sorted(times))
