"""The text that nccl-tests prints: one such output for each test, one after the other.

Both halves of a line hold the same measurement: emu moves bytes and has no buffers in which a result could be put in
place or out of place. `#wrong` is N/A, as nccl-tests prints it when it does not check data (`-c 0`).
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import BinaryIO

from emu.export.nccl import DATA_TYPE, NO_ROOT, Benchmark, Size, benchmarks_of
from emu.export.selection import Selection
from emu.export.stream import write_text

_HALF = ("time", "algbw", "busbw", "#wrong"), ("(us)", "(GB/s)", "(GB/s)", "")


def write(selection: Selection, stream: BinaryIO) -> None:
    """Write the tables. Raises InputError for a run without collectives or with several fabrics."""
    write_text(stream, _lines(selection))


def _lines(selection: Selection) -> Iterator[str]:
    fabric = selection.one_fabric("an nccl-tests table")
    run = selection.manifest
    for benchmark in benchmarks_of(selection):
        yield f"# emu {run.emu}: run {run.name}, fabric {fabric.name}, step {benchmark.label}, {fabric.verdict.level}"
        yield from _header(benchmark, fabric.name)
        yield from (_line(benchmark, size) for size in benchmark.sizes)
        yield from _footer(benchmark)


def _header(benchmark: Benchmark, host: str) -> Iterator[str]:
    step, unit = benchmark.step
    smallest, largest = benchmark.sizes[0].bytes, benchmark.sizes[-1].bytes
    yield f"# Collective test starting: {benchmark.program}"
    yield (
        f"# nThread 1 nGpus 1 minBytes {smallest} maxBytes {largest} step: {step}({unit}) warmup iters: 0 "
        f"iters: {benchmark.iterations} agg iters: 1 validation: 0 graph: 0 unalign: 0"
    )
    yield "#"
    yield "# Using devices"
    for rank in range(benchmark.ranks):
        yield f"#  Rank {rank:2d} Group  0 Pid {0:6d} on {host:>10} device {rank:2d} [0000:00:00] emulated"
    yield "#"
    yield f"{_left('', '', '', '', '')}           out-of-place                       in-place          "
    names, units = ("  ".join(_right(*half) for half in (half, half)) for half in _HALF)
    yield f"{_left('size', 'count', 'type', 'redop', 'root')}  {names} "
    yield f"{_left('(B)', '(elements)', '', '', '')}  {units} "


def _left(size: str, count: str, data_type: str, redop: str, root: str) -> str:
    return f"# {size:>10}  {count:>12}  {data_type:>8}  {redop:>6}  {root:>6}"


def _right(time: str, algbw: str, busbw: str, wrong: str) -> str:
    return f"{time:>7}  {algbw:>6}  {busbw:>6}  {wrong:>6}"


def _line(benchmark: Benchmark, size: Size) -> str:
    left = f"{size.bytes:12d}  {benchmark.count(size):12d}  {DATA_TYPE:>8}  {benchmark.redop:>6}  {_root(benchmark):6d}"
    half = _right(fitted(size.mean * 1e6, 7), fitted(benchmark.algbw(size), 6), fitted(benchmark.busbw(size), 6), "N/A")
    return f"{left}  {half}  {half}"


def _root(benchmark: Benchmark) -> int:
    return 0 if benchmark.kind == "broadcast" else NO_ROOT


def _footer(benchmark: Benchmark) -> Iterator[str]:
    average = fmean(benchmark.busbw(size) for size in benchmark.sizes)
    yield f"# {'Out of bounds values':<20} : 0 OK"
    yield f"# {'Avg bus bandwidth':<20} : {average:g} "
    yield "#"
    yield f"# Collective test concluded: {benchmark.program}"
    yield "#"


def fitted(value: float, width: int) -> str:
    """A number in a column of nccl-tests: as many decimals, two at most, as the width leaves room for."""
    for decimals in (2, 1, 0):
        shown = f"{value:{width}.{decimals}f}"
        if len(shown) <= width:
            return shown
    return f"{value:{width}.{1 if width >= 7 else 0}e}"
