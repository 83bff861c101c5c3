"""The JSON that nccl-tests writes with `-J` (its version 3), with each iteration's time as `-I 1` adds it.

nccl-tests writes one test a file; here the lines of all of a run's benchmarks are in `results`, told apart by
`experiment_name` (the step) and `emu` (what nccl-tests has no key for). Booleans are text, as nccl-tests writes them.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any, BinaryIO, Final

from emu.export.nccl import DATA_TYPE, NO_ROOT, Benchmark, Size, benchmarks_of, spread
from emu.export.selection import Selection
from emu.export.stream import write_text

VERSION: Final = 3
_DECIMALS = 6


def write(selection: Selection, stream: BinaryIO) -> None:
    """Write the JSON. Raises InputError for a run without collectives or with several fabrics."""
    write_text(stream, [json.dumps(_document(selection), indent=1)])


def _document(selection: Selection) -> dict[str, Any]:
    fabric, run, benchmarks = selection.one_fabric("nccl-tests' JSON"), selection.manifest, benchmarks_of(selection)
    busbw = fmean(benchmark.busbw(size) for benchmark in benchmarks for size in benchmark.sizes)
    return {
        "version": VERSION,
        "start_time": _clock(run.began),
        "args": [benchmarks[0].program],
        "env": [],
        "nccl_version": 0,
        "config": _config(benchmarks, fabric.name),
        "results": [_result(benchmark, size) for benchmark in benchmarks for size in benchmark.sizes],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": round(busbw, _DECIMALS), "okay": "unchecked"},
        "errors": [],
        "end_time": _clock(run.began + timedelta(seconds=run.wall_s)),
        "emu": {
            "version": run.emu,
            "run": run.name,
            "fabric": fabric.name,
            "verdict": fabric.verdict.level,
            "scenario_hash": run.scenario_hash,
        },
    }


def _config(benchmarks: list[Benchmark], host: str) -> dict[str, Any]:
    sizes = [size.bytes for benchmark in benchmarks for size in benchmark.sizes]
    step, unit = benchmarks[0].step
    return {
        "nthreads": 1,
        "ngpus": 1,
        "minimum_bytes": min(sizes),
        "maximum_bytes": max(sizes),
        f"step_{unit}": step,
        "warmup_iters": 0,
        "iterations": max(benchmark.iterations for benchmark in benchmarks),
        "aggregated_iterations": 1,
        "validation": 0,
        "graph": 0,
        "blocking_collectives": "false",
        "per_iter_timing": "true",
        "per_iter_skip": 0,
        "parallel_init": "false",
        "devices": [_device(rank, host) for rank in range(max(benchmark.ranks for benchmark in benchmarks))],
    }


def _device(rank: int, host: str) -> dict[str, Any]:
    return {
        "rank": rank,
        "group": 0,
        "pid": 0,
        "hostname": host,
        "device": rank,
        "device_hex": "0000:00:00",
        "device_info": "emulated",
    }


def _result(benchmark: Benchmark, size: Size) -> dict[str, Any]:
    half = {
        "time": _rounded(size.mean * 1e6),
        "alg_bw": _rounded(benchmark.algbw(size)),
        "bus_bw": _rounded(benchmark.busbw(size)),
        "nwrong": None,
    }
    return {
        "size": size.bytes,
        "count": benchmark.count(size),
        "type": DATA_TYPE,
        "redop": benchmark.redop,
        "root": f"{0 if benchmark.kind == 'broadcast' else NO_ROOT:6d}",
        "out_of_place": half,
        "out_of_place_per_iter": _iterations(size),
        "in_place": half,
        "in_place_per_iter": _iterations(size),
        "actual_iterations": len(size.times),
        "experiment_name": benchmark.label,
        "emu": {
            "collective": benchmark.kind,
            "program": benchmark.program,
            "algorithm": benchmark.algorithm,
            "ranks": benchmark.ranks,
        },
    }


def _iterations(size: Size) -> dict[str, Any]:
    found = spread(size.times)
    return {
        "skipped_iterations": 0,
        "min_us": _rounded(found.min),
        "max_us": _rounded(found.max),
        "avg_us": _rounded(found.avg),
        "p50_us": _rounded(found.p50),
        "p95_us": _rounded(found.p95),
        "p99_us": _rounded(found.p99),
        "stdev_us": _rounded(found.stdev),
        "cv_pct": _rounded(found.cv),
        "times_us": [_rounded(time * 1e6) for time in size.times],
    }


def _rounded(value: float) -> float:
    return round(value, _DECIMALS)


def _clock(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")
