"""Circuits laid once for a job: rings that reach everybody, and permutations for the pairs with most bytes."""

from __future__ import annotations

import math
import time

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.checks import check
from controllers.circuits import check_epoch
from controllers.epochs import Epoch, duplex
from controllers.policies.one_shot import one_shot, strides
from controllers.routes import isolated_pairs, routes
from topologies.fabric import Fabric
from topologies.hybrid import hybrid
from topologies.rfabric import rfabric
from topologies.topoopt import topoopt


def arcs(fabric: Fabric, demand: dict[tuple[str, str], int], rings: int = 1) -> dict[str, set[tuple[int, int]]]:
    """By plane: from which host to which its light goes."""
    found = one_shot(fabric, demand, rings)
    return {ocs: {(a - 1, b - 1) for a, b in matching} for ocs, matching in found.items()}


def shift(hosts: int, by: int) -> set[tuple[int, int]]:
    return {(host, (host + by) % hosts) for host in range(hosts)}


@pytest.mark.parametrize(
    ("sites", "count", "expected"),
    [
        (16, 1, (1,)),
        (16, 2, (1, 5)),
        (16, 4, (1, 3, 5, 9)),
        (7, 3, (1, 2, 4)),
        (6, 3, (1, 5)),
        (2, 2, (1,)),
        (1, 1, (1,)),
    ],
)
def test_strides_are_coprime_and_near_a_geometric_series(sites: int, count: int, expected: tuple[int, ...]) -> None:
    """Of 16 sites, near 1 and 4: 5 is off by a ratio of 1.25 and 3 by 1.33. Near 8: 9 by 1.125 and 7 by 1.14."""
    assert strides(sites, count) == expected
    assert all(math.gcd(stride, sites) == 1 for stride in expected)


def test_the_first_plane_is_a_ring_and_the_others_follow_the_demand() -> None:
    demand = {("f0", "f2"): 90, ("f2", "f0"): 90, ("f1", "f3"): 60, ("f3", "f1"): 60}
    found = arcs(topoopt(hosts=4, nics=2), demand)
    assert found == {"o0": shift(4, 1), "o1": shift(4, 2)}


def test_a_pair_with_most_bytes_a_circuit_gets_another() -> None:
    """f0 sends 100 to f1 and 10 to f2; the ring gives it one circuit to f1, which leaves 50 for a second one."""
    found = arcs(topoopt(hosts=3, nics=2), {("f0", "f1"): 100, ("f0", "f2"): 10})
    assert (0, 1) in found["o1"]
    found = arcs(topoopt(hosts=3, nics=3), {("f0", "f1"): 100, ("f0", "f2"): 60})
    assert (0, 2) in found["o1"]
    assert (0, 1) in found["o2"]


def test_two_rings_have_two_strides() -> None:
    assert arcs(topoopt(hosts=7, nics=2), {}, rings=2) == {"o0": shift(7, 1), "o1": shift(7, 3)}


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 9), st.integers(1, 4), st.integers(1, 3), st.data())
def test_everybody_is_reached_whatever_the_demand(hosts: int, degree: int, rings: int, data: st.DataObject) -> None:
    fabric = topoopt(hosts=hosts, nics=degree)
    pair = st.permutations(range(hosts)).map(lambda order: (f"f{order[0]}", f"f{order[1]}"))
    lit = Epoch(0, one_shot(fabric, data.draw(st.dictionaries(pair, st.integers(0, 99), max_size=9)), rings))
    check_epoch(fabric, lit)
    assert all(len(lit.circuits(ocs.name)) == hosts for ocs in fabric.ocses)
    assert list(isolated_pairs(fabric, lit)) == []
    assert check(fabric, lit, routes(fabric, lit)) == []


def test_fabrics_that_are_not_flat_get_the_mesh_of_the_same_demand() -> None:
    fabric = hybrid(pods=3, uplinks=2)
    assert one_shot(fabric, {("t0", "t2"): 5}) == {"o0": duplex([(1, 5), (2, 6)])}
    tiers = rfabric(hosts_per_tor=4)
    lit = Epoch(0, one_shot(tiers, {(f"t{a}", f"t{b}"): 1 for a in range(8) for b in range(8) if a != b}))
    check_epoch(tiers, lit)
    assert {ocs.name for ocs in tiers.ocses} == set(lit.matchings)


def test_256_hosts_on_8_planes_are_laid_and_routed_in_seconds() -> None:
    """Seconds of processor time, so that a busy machine does not matter; it takes about 2."""
    fabric = topoopt(hosts=256, nics=8)
    demand = {(f"f{a}", f"f{b}"): (a * b) % 97 for a in range(256) for b in range(256) if a != b}
    began = time.process_time()
    lit = Epoch(0, one_shot(fabric, demand))
    tables = routes(fabric, lit)
    assert time.process_time() - began < 15
    graph = nx.DiGraph((a, b) for matching in lit.matchings.values() for a, b in matching)
    assert nx.is_strongly_connected(graph)
    assert len(tables["f0"]) == 2048
