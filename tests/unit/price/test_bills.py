"""Bills as commands and reports ask for them."""

from __future__ import annotations

import pytest

from emu.errors import InputError
from emu.price import bills_of, load_price_table, performance_per_dollar, similar_cost
from topologies.fat_tree import fat_tree
from topologies.pricing import relative_costs
from topologies.rail import rail

MIXNET, OPUS = load_price_table("mixnet"), load_price_table("opus")


def test_an_unknown_table_is_the_users_error() -> None:
    with pytest.raises(InputError, match="there is no price table 'opu'; did you mean 'opus'"):
        load_price_table("opu")


def test_a_rate_without_a_price_names_the_fabric_and_what_to_do() -> None:
    with pytest.raises(InputError, match=r"fabric fat-tree: table mixnet has no dollars for NICs of 1 Gb/s.*--table"):
        bills_of([fat_tree(rate=10**9)], MIXNET)


def test_a_comparison_from_fabrics_to_values() -> None:
    """128 NICs; rails cost 7405 of a fat-tree's 10903 a NIC, and this one takes a tenth longer."""
    tree, rails = fat_tree(k=8), rail(hosts=16)
    bills = bills_of([tree, rails], MIXNET, OPUS)
    assert relative_costs(bills) == pytest.approx((1, 7405 / 10903))
    similar = similar_cost(tree, bills, MIXNET)
    assert similar["fat-tree"].links[0].rate == tree.links[0].rate
    assert 200e9 < similar["rail"].links[0].rate < 400e9
    times = {"fat-tree": 1.0, "rail": 1.1}
    values = performance_per_dollar(times, {bill.fabric: bill for bill in bills}, equal_cost={"rail": 1.3})
    assert values[1].per_dollar == pytest.approx(10903 / 7405 / 1.1)
    assert values[1].equal_cost == pytest.approx(1.3 / 1.1)


def test_a_cost_that_no_rate_gives_is_left_out() -> None:
    small, large = fat_tree(k=4), fat_tree(k=16)
    bills = bills_of([small, large], MIXNET)
    assert list(similar_cost(small, bills[:1], MIXNET)) == ["fat-tree"]
    assert similar_cost(small, bills[1:], MIXNET) == {}
