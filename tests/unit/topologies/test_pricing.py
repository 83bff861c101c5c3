"""Counts, bills and performance per dollar, against closed forms worked out by hand."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.fabric import Fabric
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.pricing import (
    Part,
    PriceError,
    at_cost,
    count_parts,
    load_table,
    mixnet,
    performance_per_dollar,
    price,
)
from topologies.rail import rail
from topologies.rfabric import rfabric
from topologies.topoopt import topoopt

G = 1_000_000_000
MIXNET, OPUS = load_table("mixnet"), load_table("opus")


class Each(NamedTuple):
    """What one NIC takes of each kind of part."""

    nic: float
    eps: float
    optics: float
    ocs: float = 0
    patch: float = 0

    def dollars(self, rate: int) -> float:
        """By MixNet's Table 4."""
        nic, optics, eps, ocs, patch = {
            100: (659, 99, 187, 520, 100),
            200: (1079, 239, 374, 520, 100),
            400: (1499, 659, 1090, 520, 100),
            800: (2248, 1399, 1400, 520, 100),
        }[rate]
        return self.nic * nic + self.eps * eps + self.optics * optics + self.ocs * ocs + self.patch * patch


def each(fabric: Fabric) -> Each:
    """What a fabric has of each kind, by NIC."""
    counts: Counter[str] = Counter()
    for part, count in count_parts(fabric).items():
        counts[part.kind] += count
    nics = counts["nic"]
    kinds = ("nic", "eps_port", "transceiver", "ocs_port", "patch_port")
    return Each(*(counts[kind] / nics for kind in kinds))


FAT_TREE = Each(1, 5, 6)
RAIL = Each(1, 3, 4)
TOPOOPT = Each(1, 0, 1, patch=1)


def optical(r: int) -> Each:
    """RFabric without its electrical network: ToR port and two transceivers, and for each uplink (one to r NICs) a ToR
    port, a transceiver and three OCS ports."""
    return Each(1, 1 + 1 / r, 2 + 1 / r, ocs=3 / r)


def full_rfabric(r: int, **more: object) -> Fabric:
    """1024 NICs: 4 pods of 8 ToRs, each with 4 hosts of 8 NICs."""
    given = {"tors_per_pod": 8, "hosts_per_tor": 4, "nics": 8, "oversubscription": r, "electrical": False}
    return rfabric(**{**given, **more})  # type: ignore[arg-type]


def test_a_fat_tree_counts_five_ports_and_six_transceivers_a_nic() -> None:
    fabric = fat_tree(k=16)
    assert count_parts(fabric) == {
        Part("nic", 400 * G): 1024,
        Part("transceiver", 400 * G): 6144,
        Part("eps_port", 400 * G): 5120,
    }
    assert each(fabric) == FAT_TREE


@pytest.mark.parametrize("r", [2, 3])
def test_an_oversubscribed_fat_tree_has_an_rth_of_the_upper_tiers(r: int) -> None:
    """n + e + 2t + (4e + 4t)/r."""
    assert each(fat_tree(k=8, oversubscription=r)) == pytest.approx(Each(1, 1 + 4 / r, 2 + 4 / r))


@pytest.mark.parametrize("hosts", [64, 128, 256])
def test_rails_count_three_ports_and_four_transceivers_a_nic(hosts: int) -> None:
    assert each(rail(hosts=hosts)) == RAIL


def test_a_leaf_spine_counts_like_rails() -> None:
    assert each(leaf_spine(leaves=8, hosts_per_leaf=8)) == RAIL


@pytest.mark.parametrize("r", [1, 2, 4])
def test_rfabric_counts_three_ocs_ports_an_uplink(r: int) -> None:
    assert each(full_rfabric(r)) == pytest.approx(optical(r))


def test_the_thin_network_adds_a_port_and_a_transceiver_at_each_end_of_32_links() -> None:
    thin = Counter(count_parts(full_rfabric(1, electrical=True, electrical_rate=100 * G)))
    thin.subtract(count_parts(full_rfabric(1)))
    assert {part: count for part, count in thin.items() if count} == {
        Part("transceiver", 100 * G): 64,
        Part("eps_port", 100 * G): 64,
    }


def test_topoopt_counts_a_patch_port_and_a_transceiver_a_nic() -> None:
    assert each(topoopt(hosts=128, nics=8)) == TOPOOPT
    assert each(topoopt(hosts=128, nics=8, patch_panel=False)) == Each(1, 0, 1, ocs=1)


@pytest.mark.parametrize(
    ("rate", "tree", "thin_tree", "rails", "panels", "circuits"),
    [
        (100, 2.24, 1.46, 1.65, 0.88, 2.96),
        (200, 4.49, 2.81, 3.23, 1.45, 4.20),
        (400, 11.16, 6.39, 7.58, 2.31, 7.39),
        (800, 18.07, 10.42, 12.33, 3.84, 11.06),
    ],
)
def test_1024_nics_cost_what_the_closed_forms_say(
    rate: int, tree: float, thin_tree: float, rails: float, panels: float, circuits: float
) -> None:
    """Millions of dollars by hand. The 3:1 tree of k=16 holds 3072 NICs, so it is scaled to 1024."""
    speed = rate * G
    fabrics = [fat_tree(k=16, rate=speed), rail(hosts=128, rate=speed), topoopt(hosts=128, nics=8, rate=speed)]
    fabrics.append(full_rfabric(1, rate=speed))
    dollars = [price(fabric, MIXNET).dollars for fabric in fabrics]
    assert [round(total / 1e6, 2) for total in dollars] == [tree, rails, panels, circuits]
    assert round(price(fat_tree(k=16, oversubscription=3, rate=speed), MIXNET).dollars / 3e6, 2) == thin_tree
    forms = (FAT_TREE, RAIL, TOPOOPT, optical(1))
    assert dollars == pytest.approx([1024 * form.dollars(rate) for form in forms])


@pytest.mark.parametrize(("rate", "ratio"), [(100, 1.45), (200, 1.77), (400, 2.30), (800, 2.34)])
def test_a_fat_tree_costs_so_much_more_than_mixnet(rate: int, ratio: float) -> None:
    """2.3 at 400G is what MixNet's paper reports."""
    tree = price(fat_tree(k=16, rate=rate * G), MIXNET).dollars
    assert round(tree / mixnet(1024, rate * G, MIXNET), 2) == ratio


def test_mixnet_by_hand() -> None:
    """8 NICs at 400G: 2 in a fat-tree of 1499 + 5*1090 + 6*659 each, 6 at 1499 + 659 + 520 each."""
    assert mixnet(8, 400 * G, MIXNET) == 2 * 10903 + 6 * 2678


def test_a_bill_by_hand() -> None:
    """Two hosts on one switch at 400G, with Opus' table: 4 transceivers, 2 ports, NICs left out."""
    bill = price(leaf_spine(hosts=2), OPUS)
    assert bill.dollars == pytest.approx(4 * 879 + 2 * 37299 / 64)
    assert bill.watts == pytest.approx(4 * 10 + 2 * 2524 / 64)
    assert bill.nics == 2
    assert "dollars without NICs, which table opus does not have" in bill.notes
    assert "watts without NICs, which table opus does not have" in bill.notes


def test_opus_prices_of_an_800g_switch() -> None:
    bill = price(leaf_spine(hosts=72, hosts_per_leaf=72, rate=800 * G), OPUS)
    ports = next(item for item in bill.items if item.part.kind == "eps_port")
    assert (ports.count, ports.dollars, ports.watts) == (72, pytest.approx(149939 / 144), pytest.approx(7000 / 144))


def test_an_ocs_port_is_cheap_in_power() -> None:
    bill = price(full_rfabric(1), OPUS)
    circuits = next(item for item in bill.items if item.part.kind == "ocs_port")
    assert (circuits.count, circuits.dollars, circuits.watts) == (3072, 520, 75 / 192)


def test_a_table_without_watts_gives_none_and_says_so() -> None:
    bill = price(fat_tree(k=4), MIXNET)
    assert bill.watts is None
    assert bill.notes[0] == "no power: table mixnet has no watts"
    assert price(fat_tree(k=4), MIXNET, OPUS).watts == pytest.approx(80 * 2524 / 64 + 96 * 10)


def test_a_rate_without_watts_gives_none_and_says_which() -> None:
    bill = price(fat_tree(k=4, rate=100 * G), MIXNET, OPUS)
    assert bill.watts is None
    assert bill.notes[0] == "no power: table opus has no watts for transceivers of 100 Gb/s; it has 400G, 800G"


def test_a_rate_without_dollars_is_refused() -> None:
    with pytest.raises(PriceError, match="table mixnet has no dollars for NICs of 40 Gb/s; it has 100G, 200G, 400G, 8"):
        price(fat_tree(k=4, rate=40 * G), MIXNET)


def test_what_is_assumed_of_the_wiring_is_in_the_bill() -> None:
    bill = price(rfabric(), MIXNET)
    assert bill.wiring_assumed == "topologies/rfabric.py"
    assert any("wiring assumed" in note for note in bill.notes)
    assert not price(fat_tree(), MIXNET).wiring_assumed


def test_circuits_do_not_pay_at_100g_and_that_is_shown() -> None:
    tree, circuits = (price(fabric, MIXNET) for fabric in (fat_tree(k=16, rate=100 * G), full_rfabric(1, rate=100 * G)))
    values = performance_per_dollar({"fat-tree": 2.0, "rfabric": 2.0}, {"fat-tree": tree, "rfabric": circuits})
    assert [round(value.per_dollar, 2) for value in values] == [1.0, 0.76]


def test_performance_per_dollar_and_watt_by_hand() -> None:
    bills = {"a": price(fat_tree(k=4), OPUS), "fat-tree": price(fat_tree(k=4), OPUS), "b": price(rail(hosts=2), OPUS)}
    values = performance_per_dollar({"a": 3.0, "fat-tree": 2.0, "b": 4.0}, bills, equal_cost={"b": 6.0})
    assert [value.fabric for value in values] == ["a", "fat-tree", "b"]
    assert [value.performance for value in values] == pytest.approx([2 / 3, 1, 0.5])
    assert [value.per_dollar for value in values[:2]] == pytest.approx([2 / 3, 1])
    cheap, dear = bills["b"], bills["fat-tree"]
    assert cheap.watts is not None
    assert dear.watts is not None
    assert values[2].per_dollar == pytest.approx(0.5 * dear.dollars / cheap.dollars)
    assert values[2].per_watt == pytest.approx(0.5 * dear.watts / cheap.watts)
    assert [value.equal_cost for value in values] == [None, None, 1.5]


def test_without_a_fat_tree_the_first_fabric_is_the_baseline_unless_one_is_named() -> None:
    bills = {name: price(fat_tree(k=4), MIXNET) for name in ("x", "y")}
    assert [value.performance for value in performance_per_dollar({"x": 1.0, "y": 2.0}, bills)] == [1, 0.5]
    assert [value.performance for value in performance_per_dollar({"x": 1.0, "y": 2.0}, bills, baseline="y")] == [2, 1]
    assert performance_per_dollar({"x": 1.0}, bills)[0].per_watt is None
    with pytest.raises(ValueError, match="fabric x: an iteration takes more than 0"):
        performance_per_dollar({"x": 0.0}, bills)


def test_a_fat_tree_of_similar_cost() -> None:
    """Half way between the prices at 200G and 400G the rate is 300G."""
    fabric = fat_tree(k=4)
    slow, fast = (price(fat_tree(k=4, rate=rate * G), MIXNET).dollars for rate in (200, 400))
    similar = at_cost(fabric, MIXNET, (slow + fast) / 2)
    assert similar is not None
    assert [link.rate for link in similar.links] == [pytest.approx(300 * G, rel=1e-6)] * 48
    assert {link.rate for link in fabric.links} == {400 * G}
    assert similar.all_nics == fabric.all_nics
    assert at_cost(fabric, MIXNET, 1.0) is None
    assert at_cost(fabric, MIXNET, 1e9) is None


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 1), st.sampled_from(["tree", "circuits"]))
def test_at_cost_costs_that(share: float, which: str) -> None:
    fabric = fat_tree(k=4) if which == "tree" else rfabric(electrical_rate=200 * G)
    highest = 800 * G if which == "tree" else 400 * G
    low, high = (price(fabric.with_rates(factor), MIXNET).dollars for factor in (0.25 if which == "tree" else 0.5, 2))
    assert max(part.rate for part in count_parts(fabric.with_rates(2))) >= highest
    wanted = low + share * (high - low)
    found = at_cost(fabric, MIXNET, wanted)
    assert found is not None
    total = sum(count * (MIXNET.between("dollars", part) or 0) for part, count in count_parts(found).items())
    assert total == pytest.approx(wanted, rel=1e-6)
