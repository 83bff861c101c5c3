"""Rates that a lab is asked for, and round dilations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.plan import own_rate
from emu.plan.rates import clean_tdf, clean_tdf_below, nominal_capacity, own_beta
from tests.unit.plan.plan_pieces import capacity
from topologies.fat_tree import fat_tree


@pytest.mark.parametrize(
    ("carried", "rate"),
    [(60e6, 20_000_000), (34e6, 20_000_000), (33e6, 10_000_000), (100e6, 50_000_000), (170e3, 100_000), (0.0, 1)],
)
def test_own_rate_is_a_round_step_below_60_percent(carried: float, rate: int) -> None:
    assert own_rate(carried) == rate


@given(st.floats(1e3, 1e11))
def test_own_rate_uses_at_most_60_percent_and_wastes_less_than_a_step(carried: float) -> None:
    rate = own_rate(carried)
    assert 0.6 * carried / 2.5 < rate * (1 + 1e-6)
    assert rate <= 0.6 * carried * (1 + 1e-6)
    assert str(rate).rstrip("0") in ("1", "2", "5")


@pytest.mark.parametrize(
    ("least", "tdf"),
    [(0.0, 1), (1, 1), (1.1, 2), (5.5, 6), (7, 8), (9, 10), (11, 12), (19.3, 20), (85, 100), (101, 120), (1440, 1500)],
)
def test_dilations_are_rounded_up_to_few_digits(least: float, tdf: int) -> None:
    assert clean_tdf(least) == tdf


@given(st.floats(1, 1e6))
def test_a_rung_is_the_next_one_above(least: float) -> None:
    tdf = clean_tdf(least)
    assert tdf >= least * (1 - 1e-6)
    assert clean_tdf(tdf) == tdf == clean_tdf_below(tdf)
    if tdf > 1:
        assert clean_tdf_below(tdf - 0.5) < least


def test_the_slowest_fabric_sets_beta() -> None:
    fast, slow = fat_tree(k=4, rate=400_000_000_000), fat_tree(k=2, rate=100_000_000_000)
    beta, fabric, _ = own_beta([(fast, capacity(rate=60e6)), (slow, capacity(rate=60e6))])
    assert (beta, fabric) == (20_000, fast)  # 400 Gb/s to 20 Mb/s; the other would do with 5000
    beta, fabric, _ = own_beta([(fast, capacity(rate=60e6)), (slow, capacity(rate=6e6))])
    assert (beta, fabric) == (50_000, slow)  # 100 Gb/s to 2 Mb/s


def test_nominal_nics_share_what_the_machine_carries() -> None:
    assert nominal_capacity(fat_tree(k=4)).host_rate == 60e6
    assert nominal_capacity(fat_tree(k=6)).host_rate == pytest.approx(960e6 / 54)
