"""The fat-tree builder: sizes, wiring, addresses, partial fill."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.epochs import Epoch
from controllers.paths import Forwarder
from controllers.routes import routes
from topologies.fabric import FabricError, Kind, Port
from topologies.fat_tree import fat_tree


@pytest.mark.parametrize(
    ("k", "hosts", "edges", "aggregations", "cores", "links"),
    [(2, 2, 2, 2, 1, 6), (4, 16, 8, 8, 4, 48), (6, 54, 18, 18, 9, 162), (8, 128, 32, 32, 16, 384)],
)
def test_full_tree_has_the_papers_sizes(
    k: int, hosts: int, edges: int, aggregations: int, cores: int, links: int
) -> None:
    fabric = fat_tree(k=k)
    assert len(fabric.hosts) == hosts
    assert len(fabric.of_kind(Kind.TOR)) == edges
    assert len([s for s in fabric.of_kind(Kind.EPS) if s.tier == 2]) == aggregations
    assert len([s for s in fabric.of_kind(Kind.EPS) if s.tier == 3]) == cores
    assert len(fabric.links) == links
    assert all(len(fabric.ports(switch.name)) == k for switch in fabric.switches)
    assert fabric.routing == "two-level"


def test_default_is_k4_with_hosts_in_order() -> None:
    fabric = fat_tree()
    assert [host.name for host in fabric.hosts] == [f"h{i}" for i in range(16)]
    assert fabric.parameters["k"] == 4
    assert {link.rate for link in fabric.links} == {400_000_000_000}


def test_addresses_name_pod_edge_and_place() -> None:
    fabric = fat_tree(k=4)
    assert [fabric.address(Port(f"h{i}", 0)) for i in (0, 1, 2, 4, 15)] == [
        "10.0.0.2",
        "10.0.0.3",
        "10.0.1.2",
        "10.1.0.2",
        "10.3.1.3",
    ]


def test_core_joins_aggregations_of_one_column() -> None:
    fabric = fat_tree(k=4)
    assert {fabric.peer(port).node for port in fabric.ports("c0")} == {"a0", "a2", "a4", "a6"}
    assert {fabric.peer(port).node for port in fabric.ports("c3")} == {"a1", "a3", "a5", "a7"}
    assert fabric.peer(Port("a3", 4)) == Port("c3", 2)


@pytest.mark.parametrize(("hosts", "nics", "k"), [(1, 1, 2), (2, 1, 2), (3, 1, 4), (16, 1, 4), (17, 1, 6), (16, 2, 6)])
def test_k_is_the_smallest_that_holds_all_nics(hosts: int, nics: int, k: int) -> None:
    fabric = fat_tree(hosts=hosts, nics=nics)
    assert fabric.parameters["k"] == k
    assert len(fabric.all_nics) == hosts * nics


def test_nics_of_a_host_take_adjacent_ports() -> None:
    fabric = fat_tree(hosts=16, nics=2)  # three NICs at an edge switch of k=6
    assert [str(fabric.peer(nic)) for host in ("h0", "h1", "h2") for nic in fabric.nics(host)] == [
        "t0:1",
        "t0:2",
        "t0:3",
        "t1:1",
        "t1:2",
        "t1:3",
    ]
    assert all(host.gpus == 2 for host in fabric.hosts)
    assert fat_tree(k=4, nics=2, gpus=8).hosts[0].gpus == 8


def test_oversubscription_multiplies_nics_but_not_uplinks() -> None:
    fabric = fat_tree(k=4, oversubscription=3)
    assert len(fabric.hosts) == 48
    peers = [fabric.node(fabric.peer(port).node).kind for port in fabric.ports("t0")]
    assert (peers.count(Kind.HOST), peers.count(Kind.EPS)) == (6, 2)


@pytest.mark.parametrize(
    ("hosts", "edges", "aggregations", "cores"), [(2, 1, 0, 0), (3, 2, 2, 0), (4, 2, 2, 0), (5, 3, 4, 4), (9, 5, 6, 4)]
)
def test_partly_filled_tree_builds_only_what_hosts_can_use(
    hosts: int, edges: int, aggregations: int, cores: int
) -> None:
    fabric = fat_tree(k=4, hosts=hosts)
    tiers = [switch.tier for switch in fabric.switches]
    assert (tiers.count(1), tiers.count(2), tiers.count(3)) == (edges, aggregations, cores)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([2, 4, 6]), st.integers(1, 2), st.integers(1, 3), st.data())
def test_every_link_of_a_partly_filled_tree_carries_some_pair(
    k: int, oversubscription: int, nics: int, data: st.DataObject
) -> None:
    room = oversubscription * k**3 // 4
    hosts = data.draw(st.integers(1, max(1, room // nics)))
    if hosts * nics > room:
        return
    fabric = fat_tree(k=k, hosts=hosts, nics=nics, oversubscription=oversubscription)
    forwarder = Forwarder(fabric, routes(fabric, Epoch()))
    pairs = [(a, b) for a in fabric.all_nics for b in fabric.all_nics if a != b]
    paths = [forwarder.path(*pair) for pair in pairs]
    assert None not in paths
    used = {fabric.link(port) for path in paths for port in path or ()}
    assert used == set(fabric.links) or not pairs


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"k": 3}, "even number from 2 on, not 3"),
        ({"k": 0}, "even number"),
        ({"k": 4, "hosts": 17}, "room for 16 NICs"),
        ({"k": 4, "hosts": 9, "nics": 2}, "8 hosts of 2, not 9"),
        ({"hosts": 0}, "hosts must be at least 1"),
        ({"nics": 9}, "nics must be 1 to 8, not 9"),
        ({"gpus": 0}, "gpus must be at least 1"),
        ({"oversubscription": 0}, "oversubscription must be at least 1"),
        ({"k": 4, "oversubscription": 127}, "254 NICs"),
        ({"k": 258, "hosts": 2}, "258 pods"),
        ({"rate": 0}, "rate must be positive"),
        ({"delay": -1.0}, "delay must not be negative"),
        ({"k": 2, "nics": 3}, "so for 0 hosts of 3"),
    ],
)
def test_impossible_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(FabricError, match=words):
        fat_tree(**parameters)


def test_the_note_says_k_and_how_far_it_is_filled() -> None:
    assert fat_tree(k=4).notes == ("k=4 with 16 of 16 NICs, in 4 of 4 pods",)
    (note,) = fat_tree(hosts=256, nics=8).notes
    assert note == "k=22 with 2048 of 2662 NICs, in 17 of 22 pods; what no host can use is not built"
