"""The leaf-spine builder: sizes, oversubscription, parallel links, and that routes use all of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.checks import check
from controllers.epochs import Epoch
from controllers.routes import routes
from tests.unit.topologies.invariants import bisection, loads_of_shifts, nic_rates, tier_rates
from topologies.fabric import FabricError, Kind, Port
from topologies.leaf_spine import leaf_spine


def test_default_is_non_blocking_with_a_spine_for_each_uplink() -> None:
    fabric = leaf_spine()
    assert [len(fabric.of_kind(kind)) for kind in (Kind.HOST, Kind.TOR, Kind.EPS)] == [16, 4, 4]
    assert fabric.peer(Port("t2", 5)) == Port("s0", 3)
    assert fabric.peer(Port("h5", 0)) == Port("t1", 2)
    assert [fabric.address(Port(host, 0)) for host in ("h0", "h5")] == ["10.0.0.2", "10.0.1.3"]
    assert {host.pod for host in fabric.hosts[4:8]} == {1}


def test_uplinks_follow_rates_and_oversubscription() -> None:
    """48 NICs of 25G below 100G uplinks, 3:1: 4 uplinks."""
    fabric = leaf_spine(hosts_per_leaf=48, leaves=2, oversubscription=3, rate=25, uplink_rate=100)
    assert [len(fabric.ports(name)) for name in ("t0", "s0")] == [52, 2]
    assert len(fabric.of_kind(Kind.EPS)) == 4
    assert tier_rates(fabric) == {(Kind.HOST, Kind.TOR): {25}, (Kind.TOR, Kind.EPS): {100}}


def test_fewer_spines_make_parallel_links() -> None:
    fabric = leaf_spine(spines=2)
    assert [str(fabric.peer(port)) for port in fabric.ports("t1")[4:]] == ["s0:3", "s1:3", "s0:4", "s1:4"]


def test_hosts_fill_leaf_by_leaf_and_a_lone_leaf_has_no_uplinks() -> None:
    fabric = leaf_spine(hosts=5, leaves=8)
    assert len(fabric.of_kind(Kind.TOR)) == 2
    assert len(leaf_spine(hosts=3).links) == 3
    assert fabric.parameters["leaves"] == 8


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 2), st.integers(1, 3), st.data())
def test_invariants(leaves: int, per_leaf: int, nics: int, oversubscription: int, data: st.DataObject) -> None:
    per_leaf *= oversubscription
    uplinks = per_leaf * nics // oversubscription
    spines = data.draw(st.sampled_from([n for n in range(1, uplinks + 1) if uplinks % n == 0]))
    hosts = data.draw(st.integers(1, leaves * per_leaf))
    fabric = leaf_spine(
        hosts=hosts, hosts_per_leaf=per_leaf, nics=nics, oversubscription=oversubscription, spines=spines, rate=7
    )
    built = -(-hosts // per_leaf)
    assert len(fabric.all_nics) == hosts * nics
    assert len(fabric.of_kind(Kind.TOR)) == built
    assert len(fabric.links) == hosts * nics + (built * uplinks if built > 1 else 0)
    for spine in fabric.of_kind(Kind.EPS):
        assert len(fabric.ports(spine.name)) == built * uplinks // spines
    assert nic_rates(fabric) == {7}
    assert {rate for rates in tier_rates(fabric).values() for rate in rates} == {7}
    assert check(fabric, Epoch(), routes(fabric, Epoch())) == []


@pytest.mark.parametrize(("oversubscription", "share"), [(1, 1.0), (2, 0.5), (4, 0.25)])
def test_bisection_is_what_oversubscription_leaves(oversubscription: int, share: float) -> None:
    fabric = leaf_spine(leaves=2, hosts_per_leaf=8, oversubscription=oversubscription, rate=10)
    assert bisection(fabric) == share * 8 * 10


@pytest.mark.parametrize("spines", [1, 2, 4, 8])
@pytest.mark.parametrize("shift", [1, 3, 8, 16])
def test_a_shift_of_all_hosts_puts_one_flow_on_each_link(spines: int, shift: int) -> None:
    """D-mod-k: a non-blocking fabric carries shifts without a collision, also over parallel links."""
    assert max(loads_of_shifts(leaf_spine(hosts_per_leaf=8, spines=spines), shift).values()) == 1


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"hosts": 9, "leaves": 2}, "hosts 9 do not fit below 2 leaves of 4"),
        ({"hosts": 0}, "hosts must be at least 1"),
        ({"leaves": 0}, "leaves must be at least 1"),
        ({"spines": 3}, "spines 3 does not divide the 4 uplinks"),
        ({"spines": 0}, "spines 0 does not divide"),
        ({"oversubscription": 3}, "oversubscription 3 of 4 NICs.* takes 1.33333 uplinks"),
        ({"uplink_rate": 10**13}, "takes 0.16 uplinks"),
        ({"hosts_per_leaf": 300}, "more than 253 NICs at a leaf"),
        ({"rate": 0}, "rate must be at least 1"),
        ({"delay": -1.0}, "delay must not be negative"),
        ({"nics": 9}, "nics must be 1 to 8"),
    ],
)
def test_impossible_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(FabricError, match=words):
        leaf_spine(**parameters)
