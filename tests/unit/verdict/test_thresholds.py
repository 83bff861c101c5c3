"""The table of thresholds: its bands, and its page."""

from __future__ import annotations

import math

import pytest

from emu.verdict.levels import Reason, Verdict, worst
from emu.verdict.thresholds import Band, Level, at_least, at_most, table


@pytest.mark.parametrize(
    ("value", "level"),
    [
        (0.98, "VALID"),
        (1.10, "VALID"),
        (0.979, "DEGRADED"),
        (1.30, "DEGRADED"),
        (0.949, "INVALID"),
        (1.301, "INVALID"),
        (math.inf, "INVALID"),
        (math.nan, "INVALID"),
    ],
)
def test_a_band_has_two_ranges_that_include_their_ends(value: float, level: Level) -> None:
    assert Band((0.98, 1.10), (0.95, 1.30)).level(value) == level


def test_one_sided_bands() -> None:
    assert [at_most(1, 2).level(value) for value in (-5, 1, 2, 3)] == ["VALID", "VALID", "DEGRADED", "INVALID"]
    assert [at_least(2, 1).level(value) for value in (9, 2, 1, 0)] == ["VALID", "VALID", "DEGRADED", "INVALID"]
    assert at_most(0).level(1e9) == "DEGRADED"


def test_the_worst_level_is_that_of_the_worst_reason() -> None:
    degraded, invalid = Reason("DEGRADED", "a", "x"), Reason("INVALID", "b", "y")
    assert worst([]) == "VALID"
    assert Verdict.of([degraded, invalid]) == Verdict("INVALID", (degraded, invalid))


def test_every_threshold_is_explained() -> None:
    for name, good, _, meaning in table():
        assert good, name
        assert len(meaning) > 20, name
