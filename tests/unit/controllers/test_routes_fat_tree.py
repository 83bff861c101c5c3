"""Two-level routing: delivery, table sizes, and how evenly it spreads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.checks import check
from controllers.epochs import Epoch
from controllers.paths import Forwarder, LitGraph
from controllers.routes import OVERRIDE, path, paths, routes
from controllers.tables import Rule, address_number
from topologies.fabric import Fabric, Kind, Port
from topologies.fat_tree import fat_tree

DARK = Epoch()


def loads(fabric: Fabric, pairs: Iterable[tuple[int, int]]) -> Counter[Port]:
    """Flows by directed link, for flows between NICs named by their place in the fabric's order."""
    forwarder = Forwarder(fabric, routes(fabric, DARK))
    nics = fabric.all_nics
    hops: Counter[Port] = Counter()
    for a, b in pairs:
        found = forwarder.path(nics[a], nics[b])
        assert found is not None
        hops.update(found)
    return hops


def downward(fabric: Fabric, port: Port) -> bool:
    peer = fabric.node(fabric.peer(port).node)
    return (fabric.node(port.node).tier or 0) > (peer.tier or 0)


@pytest.mark.parametrize(
    "parameters",
    [
        {"k": 2},
        {"k": 4},
        {"k": 6},
        {"k": 8},
        {"k": 4, "oversubscription": 3},
        {"k": 6, "oversubscription": 2, "nics": 2},
        {"hosts": 16, "nics": 2},
        {"k": 8, "hosts": 5, "nics": 8},
    ],
)
def test_every_pair_is_served(parameters: dict[str, Any]) -> None:
    fabric = fat_tree(**parameters)
    tables = routes(fabric, DARK)
    assert check(fabric, DARK, tables) == []
    nics = fabric.all_nics
    assert len(paths(fabric, tables)) == sum(a.node != b.node for a in nics for b in nics)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([2, 4, 6, 8]), st.integers(1, 3), st.integers(1, 4), st.data())
def test_partly_filled_trees_are_served_without_mending(
    k: int, oversubscription: int, nics: int, data: st.DataObject
) -> None:
    room = oversubscription * k**3 // 4 // nics
    if room == 0:
        return
    fabric = fat_tree(k=k, oversubscription=oversubscription, nics=nics, hosts=data.draw(st.integers(1, room)))
    tables = routes(fabric, DARK)
    assert check(fabric, DARK, tables) == []
    assert all(rule.priority < OVERRIDE for table in tables.values() for rule in table)


@pytest.mark.parametrize("k", [4, 6, 8, 16])
def test_tables_grow_with_k_only(k: int) -> None:
    tables = routes(fat_tree(k=k), DARK)
    # An edge switch has k/2 NICs and k/2 ids, an aggregation switch k/2 edges twice, a core k pods.
    assert {len(table) for table in tables.values()} == {k}


def test_tables_of_k4_by_hand() -> None:
    tables = routes(fat_tree(k=4), DARK)
    a = address_number
    assert tables["t3"] == (
        Rule(300, 1, a("10.1.1.2")),
        Rule(300, 2, a("10.1.1.3")),
        Rule(100, 3, a("0.0.0.2"), a("0.0.0.255")),
        Rule(100, 4, a("0.0.0.3"), a("0.0.0.255")),
    )
    assert tables["a2"] == (
        Rule(200, 1, a("10.1.0.0"), a("255.255.255.0")),
        Rule(200, 2, a("10.1.1.0"), a("255.255.255.0")),
        Rule(100, 3, a("0.0.0.0"), a("0.0.255.0")),
        Rule(100, 4, a("0.0.1.0"), a("0.0.255.0")),
    )
    assert tables["c0"] == tuple(Rule(200, pod + 1, a(f"10.{pod}.0.0"), a("255.255.0.0")) for pod in range(4))


def test_path_of_k4_by_hand() -> None:
    fabric = fat_tree(k=4)
    # h0 is 10.0.0.2, h13 is 10.3.0.3: id 3 takes the second uplink, edge 0 the first core of that column.
    hops = path(fabric, routes(fabric, DARK), Port("h0", 0), Port("h13", 0))
    assert hops is not None
    assert list(map(str, hops)) == ["h0:0", "t0:4", "a1:3", "c2:4", "a7:1", "t6:2"]


@pytest.mark.parametrize("k", [4, 6])
def test_each_downlink_serves_one_destination(k: int) -> None:
    fabric = fat_tree(k=k)
    served: dict[Port, set[Port]] = {}
    for (_, dst), hops in paths(fabric, routes(fabric, DARK)).items():
        for port in hops:
            if downward(fabric, port):
                served.setdefault(port, set()).add(dst)
    assert {len(found) for found in served.values()} == {1}
    # Full bisection: every downlink into a pod from the cores is used.
    assert {p for p in served if fabric.node(p.node).tier == 3} == {
        p for core in fabric.of_kind(Kind.EPS) if core.tier == 3 for p in fabric.ports(core.name)
    }


def test_downlinks_of_an_oversubscribed_tree_serve_r_destinations() -> None:
    fabric = fat_tree(k=4, oversubscription=3)
    served: dict[Port, set[Port]] = {}
    for (_, dst), hops in paths(fabric, routes(fabric, DARK)).items():
        for port in hops:
            if fabric.node(port.node).tier == 3:
                served.setdefault(port, set()).add(dst)
    assert {len(found) for found in served.values()} == {3}


@pytest.mark.parametrize(("k", "hosts"), [(4, 16), (6, 54)])
def test_shifts_never_share_a_link(k: int, hosts: int) -> None:
    fabric = fat_tree(k=k)
    for shift in range(1, hosts):
        assert max(loads(fabric, ((i, (i + shift) % hosts) for i in range(hosts))).values()) == 1


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(16)))
def test_permutations_never_share_a_downlink(order: list[int]) -> None:
    fabric = fat_tree(k=4)
    hops = loads(fabric, ((a, b) for a, b in enumerate(order) if a != b))
    assert all(count == 1 for port, count in hops.items() if downward(fabric, port))


def test_addresses_that_nobody_owns_do_not_circle() -> None:
    fabric = fat_tree(k=4, hosts=13)  # 10.3.0.3 is not built
    forwarder = Forwarder(fabric, routes(fabric, DARK))
    seen: list[str] = []
    port = Port("h0", 0)
    while True:
        landed = forwarder.cross(port)
        assert landed is not None
        seen.append(landed[0].node)
        rule = forwarder.rule(landed[0].node, address_number("10.3.0.3"), landed[0].number)
        if rule is None or rule.out_port == landed[0].number:
            break
        port = Port(landed[0].node, rule.out_port)
    assert seen == ["t0", "a1", "c2", "a7", "t6"]


def without(fabric: Fabric, *missing: int) -> Fabric:
    """The same fabric, some of its links (by place) left out."""
    copy = Fabric(fabric.name, routing=fabric.routing)
    for node in fabric.nodes:
        if node.kind is Kind.HOST:
            copy.add_host(node.name, gpus=node.gpus, pod=node.pod)
        else:
            copy.add_switch(node.name, node.kind, pod=node.pod, tier=node.tier)
    for place, link in enumerate(fabric.links):
        if place not in missing:
            copy.connect(link.a, link.b, rate=link.rate, delay=link.delay)
    for nic in fabric.all_nics:
        copy.set_address(nic, fabric.address(nic))
    return copy.finish()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(16, 47), min_size=1, max_size=8, unique=True))
def test_broken_trees_are_mended_by_explicit_next_hops(missing: list[int]) -> None:
    fabric = without(fat_tree(k=4), *missing)
    tables = routes(fabric, DARK, seed=1)
    assert check(fabric, DARK, tables) == []
    graph = LitGraph(fabric, DARK)
    found = paths(fabric, tables)
    for pair, hops in found.items():
        assert graph.reaches(*pair), hops


def test_one_lost_link_changes_only_the_destinations_behind_it() -> None:
    fabric = fat_tree(k=4)
    lost = next(i for i, link in enumerate(fabric.links) if str(link) == "a0:3--c0:1")
    tables = routes(without(fabric, lost), DARK)
    extra = {rule.destination for table in tables.values() for rule in table if rule.priority == OVERRIDE}
    # c0 carries edge 0, id 2 of every pod. Into pod 0 it no longer can; out of it a0 has another uplink.
    assert extra == {address_number("10.0.0.2")}


def test_two_level_without_tiers_falls_back_to_shortest_paths() -> None:
    fabric = Fabric("flat", routing="two-level")
    for tor in range(3):
        fabric.add_switch(f"t{tor}", Kind.TOR)
        fabric.add_host(f"h{tor}")
        fabric.connect(Port(f"h{tor}", 0), fabric.next_port(f"t{tor}"), rate=1)
    for a, b in [("t0", "t1"), ("t1", "t2")]:
        fabric.connect(fabric.next_port(a), fabric.next_port(b), rate=1)
    fabric.finish()
    tables = routes(fabric, DARK)
    assert check(fabric, DARK, tables) == []
    assert len(paths(fabric, tables)) == 6
