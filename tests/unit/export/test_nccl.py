"""nccl-tests' table and JSON: against golden files, by hand-computed numbers, and read as their users read them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from emu.errors import InputError
from emu.export.nccl import Benchmark, Size, spread
from emu.export.nccl_table import fitted
from tests.unit.export import golden
from tests.unit.export.golden import exported

MB = 10**6


def read_by_header(output: str, column: str) -> dict[int, float]:
    """A column by size, found in the header from its end, as dashboards do it: names on the left may be empty."""
    values: dict[int, float] = {}
    place = None
    for line in output.splitlines():
        words = line.lstrip("#").split()
        if words[:2] == ["size", "count"]:
            place = words.index(column) - len(words)
        elif place is not None and words and words[0].isdecimal() and not line.startswith("#"):
            values[int(words[0])] = float(words[place])
    return values


LINE = re.compile(
    r"^\s*(?P<size>\d+)\s+(?P<count>\d+)\s+(?P<type>\w+)\s+(?P<redop>\w+)\s+(?P<root>-?\d+)"
    r"\s+(?P<time>[\d.e+]+)\s+(?P<algbw>[\d.e+]+)\s+(?P<busbw>[\d.e+]+)\s+(?P<wrong>\d+|N/A)"
    r"\s+(?P<itime>[\d.e+]+)\s+(?P<ialgbw>[\d.e+]+)\s+(?P<ibusbw>[\d.e+]+)\s+(?P<iwrong>\d+|N/A)\s*$"
)


@pytest.fixture
def table(run: Path) -> str:
    return exported(run, "nccl-tests", "optical")


def test_the_table_is_as_it_was(run: Path, table: str) -> None:
    golden.check("nccl-tests.txt", table, run)


def test_the_json_is_as_it_was(run: Path) -> None:
    golden.check("nccl-tests.json", exported(run, "nccl-json", "optical"), run)


def test_a_line_holds_the_mean_over_all_iterations_and_repeats(table: str) -> None:
    # 100 MB took 10 and 20 ms, and in the second repeat 15 and 30: 18.75 ms on average, so 5.33 GB/s, times 2*3/4.
    assert read_by_header(table, "time")[100 * MB] == 18750.0
    assert read_by_header(table, "algbw")[100 * MB] == 5.33
    assert read_by_header(table, "busbw")[100 * MB] == 8.0


def test_one_repeat_can_be_chosen(run: Path) -> None:
    assert read_by_header(exported(run, "nccl-tests", "optical", 1), "time")[100 * MB] == 15000.0
    assert read_by_header(exported(run, "nccl-tests", "optical", 2), "time")[100 * MB] == 22500.0


def test_every_line_that_is_no_comment_matches_what_users_match(table: str) -> None:
    rows = [LINE.match(line) for line in table.splitlines() if not line.startswith("#")]
    assert len(rows) == 3
    assert all(rows)
    gathered = rows[2]
    assert gathered is not None
    # An all-gather's count is one rank's part; it reduces nothing. 400 MB in 62.5 ms are 6.4 GB/s, times 3/4.
    assert gathered.group("size", "count", "type", "redop", "root") == ("400000000", "100000000", "uint8", "none", "-1")
    assert gathered.group("time", "algbw", "busbw", "wrong") == ("62500.0", "6.40", "4.80", "N/A")


def test_each_step_has_an_output_of_its_own_with_its_average(table: str) -> None:
    programs = re.findall(r"^# Collective test (starting|concluded): (\S+)$", table, re.MULTILINE)
    assert [name for _, name in programs] == ["all_reduce_perf"] * 2 + ["all_gather_perf"] * 2
    averages = [float(line.split()[-1]) for line in table.splitlines() if "Avg bus bandwidth" in line]
    # 200 MB took 40 and 60 ms: 4 GB/s, times 1.5.
    assert averages == [pytest.approx((8.0 + 6.0) / 2), pytest.approx(4.8)]
    assert table.count("Out of bounds values : 0 OK") == 2


def test_the_header_says_how_sizes_grow_and_names_each_rank(table: str) -> None:
    first = table.partition("# Collective test concluded")[0]
    assert "minBytes 100000000 maxBytes 200000000 step: 2(factor) warmup iters: 0 iters: 4 " in first
    assert len(re.findall(r"^#  Rank +\d+ Group +0 Pid +0 on +optical device +\d+ \[", first, re.MULTILINE)) == 4


def test_the_table_names_fabric_step_and_verdict(table: str) -> None:
    assert table.startswith("# emu 1.2.3: run hand-made, fabric optical, step gradients, VALID\n")


def test_the_json_has_what_its_readers_look_for(run: Path) -> None:
    found: dict[str, Any] = json.loads(exported(run, "nccl-json", "optical"))
    assert found["version"] == 3
    assert found["start_time"] == "2023-11-14 22:13:20"
    assert found["end_time"] == "2023-11-14 22:14:00"
    assert found["average_bus_bandwidth"]["bandwidth"] == pytest.approx((8.0 + 6.0 + 4.8) / 3)
    assert [row["experiment_name"] for row in found["results"]] == ["gradients", "gradients", "weights"]
    first = found["results"][0]
    assert first["out_of_place"] == first["in_place"]
    assert first["out_of_place"]["time"] == 18750.0
    assert first["out_of_place"]["bus_bw"] == pytest.approx(8.0)
    assert first["out_of_place"]["nwrong"] is None
    assert first["out_of_place_per_iter"]["times_us"] == [10000.0, 20000.0, 15000.0, 30000.0]
    assert first["actual_iterations"] == 4


def test_a_spread_is_by_nearest_ranks() -> None:
    found = spread(tuple(n * 1e-6 for n in range(1, 101)))
    assert (found.min, found.max, found.avg) == pytest.approx((1.0, 100.0, 50.5))
    assert (found.p50, found.p95, found.p99) == pytest.approx((51.0, 95.0, 99.0))
    assert found.stdev == pytest.approx(28.866, abs=1e-3)
    assert found.cv == pytest.approx(100 * 28.866 / 50.5, abs=1e-2)


def test_sizes_that_grow_unevenly_or_not_at_all_have_a_step_in_bytes() -> None:
    def step(*sizes: int) -> tuple[int, str]:
        return Benchmark("s", "all-reduce", "ring", 4, tuple(Size(size, (1.0,)) for size in sizes)).step

    assert step(8) == (0, "bytes")
    assert step(8, 16, 32) == (2, "factor")
    assert step(8, 16, 24) == (8, "bytes")


def test_kinds_that_nccl_tests_does_not_have_are_named_as_emus_own() -> None:
    assert Benchmark("s", "incast", "direct", 4, ()).program == "emu_incast"
    assert Benchmark("s", "permutation", "direct", 4, ()).program == "sendrecv_perf"


def test_a_collective_that_took_no_time_has_no_bandwidth() -> None:
    local = Benchmark("s", "all-reduce", "ring", 2, (Size(8, (0.0,)),))
    assert local.algbw(local.sizes[0]) == 0.0


def test_large_numbers_lose_decimals_before_they_lose_digits() -> None:
    assert fitted(18.754, 7) == "  18.75"
    assert fitted(12345.678, 7) == "12345.7"
    assert fitted(123456.7, 7) == " 123457"
    assert fitted(123456789.0, 7) == "1.2e+08"
    assert fitted(1234567.0, 6) == " 1e+06"


def test_several_fabrics_are_refused_with_their_names(run: Path) -> None:
    with pytest.raises(InputError, match=r"2 fabrics.*--fabric: optical, electrical"):
        exported(run, "nccl-tests")
