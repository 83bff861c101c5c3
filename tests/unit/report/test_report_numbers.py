"""The arithmetic of reports: lanes, bins, distributions, numbers for pages and for people."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.report import words
from emu.report.budget import Budget
from emu.report.completions import MOST_POINTS, _by_size, _slowdowns, distribution
from emu.report.lanes import binned, lanes
from emu.report.shapes import script_json, short

TIMES = st.floats(0, 100, allow_nan=False)
INTERVALS = st.lists(st.tuples(TIMES, TIMES).map(sorted), min_size=1, max_size=40).map(sorted)


@given(INTERVALS)
def test_intervals_in_one_lane_do_not_overlap(found: list[list[float]]) -> None:
    starts, ends = [start for start, _ in found], [end for _, end in found]
    places, count = lanes(starts, ends, 1000)
    assert max(places) + 1 == count
    last: dict[int, float] = {}
    for start, end, lane in zip(starts, ends, places, strict=True):
        assert start >= last.get(lane, 0.0)
        last[lane] = end


def test_lanes_are_taken_again_and_bounded() -> None:
    assert lanes([0, 1, 2], [2, 3, 4], 9) == ([0, 1, 0], 2)
    assert lanes([0, 0, 0], [9, 9, 9], 2) == ([0, 1, 0], 2)
    assert lanes([0.0, 0.9], [1.0, 2.0], 9, slack=0.2) == ([0, 0], 1)


def test_bins_get_what_falls_into_them() -> None:
    """10 bytes from 0 to 2, and 6 bytes within 2.5..2.5: in bins of one second 5, 5 and 6."""
    moved = binned(np.array([0.0, 2.5]), np.array([2.0, 2.5]), np.array([10.0, 6.0]), np.arange(4.0))
    assert moved == pytest.approx([5, 5, 6], rel=1e-5)
    assert binned(np.zeros(0), np.zeros(0), np.zeros(0), np.arange(4.0)).tolist() == [0, 0, 0]


@given(INTERVALS, st.lists(st.integers(1, 10**9), min_size=40, max_size=40))
def test_bins_lose_nothing(found: list[list[float]], amounts: list[int]) -> None:
    starts, ends = np.array([start for start, _ in found]), np.array([end for _, end in found])
    each = np.array(amounts[: len(found)], dtype=float)
    assert binned(starts, ends, each, np.linspace(0, 101, 38)).sum() == pytest.approx(each.sum(), rel=1e-6)


def test_few_values_are_distributed_exactly() -> None:
    seconds, shares = distribution(np.array([3.0, 1.0, 2.0, 2.0]))
    assert seconds.tolist() == [1, 2, 2, 3]
    assert shares.tolist() == [0.25, 0.5, 0.75, 1]


def test_many_values_are_distributed_by_quantiles_that_hold() -> None:
    values = np.arange(1.0, 100_001.0)
    seconds, shares = distribution(values[::-1])
    assert len(seconds) <= MOST_POINTS
    assert shares == pytest.approx(seconds / 100_000)
    assert (seconds[0], seconds[-1], shares[-1]) == (1, 100_000, 1)
    assert (shares > 0.99).sum() > 10  # the tail is what readers look for


def test_slowdowns_are_taken_by_size() -> None:
    sizes = np.array([2.0, 1.0, 2.0, 2.0, 1.0])
    found = _slowdowns(sizes, np.array([4.0, 1.0, 2.0, 3.0, np.nan]))
    assert found == {"size": [1, 2], "median": [1, 3], "p99": [1, 4], "counts": [1, 3]}


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=300))
def test_every_flow_is_in_one_group_of_sizes(sizes: list[int]) -> None:
    values = np.array(sizes, dtype=float)
    groups = _by_size(values)
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(sizes)))
    assert all(values[low].max() < values[high].min() for low, high in pairwise(groups))


# -- pages and people ------------------------------------------------------------------------------------------------


@given(st.text())
def test_json_cannot_leave_its_script(text: str) -> None:
    written = script_json({"label": f"{text}</script><!--&"})
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written)["label"] == f"{text}</script><!--&"


@pytest.mark.parametrize(
    ("value", "written"), [(0.123456789, 0.12346), (2.0, 2), (None, None), (float("nan"), None), (float("inf"), None)]
)
def test_numbers_are_short(value: float | None, written: float | None) -> None:
    assert short(value) == written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (words.duration(0.0104), "10.4 ms"),
        (words.duration(0.0), "0 s"),
        (words.duration(float("nan")), "–"),
        (words.size(None), "–"),
        (words.bandwidth(48.6174e9), "48.62 GB/s"),
        (words.ratio(1.0336), "1.034"),
        (words.percent(0.00854), "0.85 %"),
        (words.percent(0.635), "63.5 %"),
        (words.percent(0.0), "0 %"),
        (words.percent(1.0), "100 %"),
        (words.count(100_000), "100\u2009000"),
    ],
)
def test_people_read_units(text: str, expected: str) -> None:
    assert text == expected


@given(st.integers(0, 10_000))
def test_a_page_holds_the_more_views_the_less_of_each(views: int) -> None:
    one, more = Budget.of(views), Budget.of(views + 1)
    assert (one.bars, one.bins, one.cells) >= (more.bars, more.bins, more.cells)
    assert more.bars >= 300
