"""The rail builder: who is on which rail, radix, spines, and fabrics without them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from controllers.checks import check
from controllers.epochs import Epoch
from controllers.routes import isolated_pairs, routes
from tests.unit.topologies.invariants import bisection, loads_of_shifts, nic_rates, tier_rates
from topologies.fabric import FabricError, Kind, Port
from topologies.rail import rail


def test_nic_i_of_every_host_is_on_rail_i() -> None:
    fabric = rail(hosts=4, nics=8, radix=8)  # four NIC ports at a rail switch: one group
    for host in range(4):
        for nic in range(8):
            assert fabric.peer(Port(f"h{host}", nic)) == Port(f"t{nic}", host + 1)


def test_the_largest_fabric_of_64_ports() -> None:
    """256 hosts of 8 NICs: 8 groups of 32 hosts, 64 rail switches of 32 + 32 ports, 32 spines of 64 ports."""
    fabric = rail(hosts=256)
    assert len(fabric.all_nics) == 2048
    assert len(fabric.of_kind(Kind.TOR)) == 64
    assert len(fabric.of_kind(Kind.EPS)) == 32
    assert {len(fabric.ports(switch.name)) for switch in fabric.switches} == {64}
    assert fabric.peer(Port("h33", 5)) == Port("t13", 2)
    with pytest.raises(FabricError, match="radix 64 holds 256 hosts of 8 NICs in two tiers, not 257; 66 would do"):
        rail(hosts=257)


def test_few_hosts_need_few_uplinks_and_spines() -> None:
    fabric = rail(hosts=16, nics=2)
    assert [len(fabric.ports(name)) for name in ("t0", "s0")] == [32, 32]
    assert len(fabric.of_kind(Kind.EPS)) == 1


def test_without_a_spine_rails_are_apart() -> None:
    fabric = rail(hosts=4, nics=2, spine=False)
    assert not fabric.of_kind(Kind.EPS)
    assert {len(fabric.ports(switch.name)) for switch in fabric.switches} == {4}
    isolated = set(isolated_pairs(fabric, Epoch()))
    assert isolated == {
        (a, b) for a in fabric.all_nics for b in fabric.all_nics if a.node != b.node and a.number != b.number
    }
    assert fabric.notes == ("no spine: NICs of different rails cannot reach each other",)
    assert len(rail(hosts=64, spine=False).links) == 512


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 20), st.integers(1, 4), st.sampled_from([6, 8, 12, 16]), st.integers(1, 2))
def test_invariants(hosts: int, nics: int, radix: int, oversubscription: int) -> None:
    unit = radix // (oversubscription + 1)
    assume(nics * -(-hosts // (oversubscription * unit)) <= radix)
    fabric = rail(hosts=hosts, nics=nics, radix=radix, oversubscription=oversubscription, rate=9)
    assert all(len(fabric.ports(switch.name)) <= radix for switch in fabric.switches)
    assert len(fabric.all_nics) == hosts * nics
    assert nic_rates(fabric) == {9}
    assert {rate for rates in tier_rates(fabric).values() for rate in rates} == {9}
    for host in fabric.hosts:
        for nic in fabric.nics(host.name):
            assert int(fabric.peer(nic).node[1:]) % nics == nic.number
    assert list(isolated_pairs(fabric, Epoch())) == []
    assert check(fabric, Epoch(), routes(fabric, Epoch())) == []


@pytest.mark.parametrize(("oversubscription", "share"), [(1, 1.0), (3, 1 / 3)])
def test_bisection_between_groups(oversubscription: int, share: float) -> None:
    """Two groups of 24 hosts: the 48 NICs of one reach the other's at full rate, or a third of it."""
    fabric = rail(
        hosts=48,
        nics=2,
        radix=24 * (oversubscription + 1) // oversubscription,
        rate=3,
        oversubscription=oversubscription,
    )
    assert len(fabric.of_kind(Kind.TOR)) == 4
    assert bisection(fabric) == pytest.approx(share * 48 * 3)


@pytest.mark.parametrize("shift", [1, 5, 16])
def test_a_shift_of_all_hosts_puts_one_flow_on_each_link(shift: int) -> None:
    assert max(loads_of_shifts(rail(hosts=32, nics=2, radix=16), shift).values()) == 1


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"hosts": 0}, "hosts must be at least 1"),
        ({"nics": 9}, "nics must be 1 to 8"),
        ({"radix": 1}, "radix must be at least 2"),
        ({"radix": 2, "oversubscription": 2}, "radix 2 leaves no uplink with oversubscription 2"),
        ({"hosts": 65, "spine": False}, "radix 64 holds 64 hosts without a spine, not 65"),
        ({"spines": 3}, "spines 3 does not divide the 16 uplinks"),
        ({"spines": 1}, "spines 1 would have 128 ports each, but the radix is 64"),
        ({"hosts": 1000, "radix": 1024}, "more than 253 NICs at a leaf"),
        ({"delay": -1.0}, "delay must not be negative"),
    ],
)
def test_impossible_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(FabricError, match=words):
        rail(**parameters)
