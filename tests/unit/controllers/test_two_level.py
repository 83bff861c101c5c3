"""Two-level routing: which wiring it serves by itself, and that what it says of itself is true."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.checks import check
from controllers.epochs import Epoch
from controllers.routes import routes
from controllers.tables import Tables
from controllers.two_level import TwoLevel
from topologies import registry
from topologies.fabric import Fabric, Kind, Link, Port
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.rail import rail


def without(fabric: Fabric, links: set[Link]) -> Fabric:
    """The same fabric less some cables."""
    left = replace(fabric, _nodes={}, _links={}, _addresses={}, _owners={}, _wired={}, _lowest={})
    for node in fabric.nodes:
        if node.kind is Kind.HOST:
            left.add_host(node.name, gpus=node.gpus, pod=node.pod)
        else:
            left.add_switch(node.name, node.kind, pod=node.pod, tier=node.tier)
    for link in fabric.links:
        if link not in links:
            left.connect(link.a, link.b, rate=link.rate)
    for nic in fabric.all_nics:
        left.set_address(nic, fabric.address(nic))
    return left.finish()


def tables(scheme: TwoLevel) -> Tables:
    return {name: tuple(sorted(rules, key=lambda rule: -rule.priority)) for name, rules in scheme.rules().items()}


REGULAR = (
    fat_tree(k=4),
    fat_tree(hosts=19, nics=2),
    fat_tree(k=4, hosts=1),
    fat_tree(k=4, hosts=3),
    fat_tree(k=6, oversubscription=2),
    leaf_spine(hosts=9),
    leaf_spine(spines=1),
    rail(hosts=20, nics=3, radix=12),
    rail(hosts=4, nics=1),
)


@pytest.mark.parametrize("fabric", REGULAR, ids=lambda fabric: f"{fabric.name} {len(fabric.all_nics)}")
def test_what_builders_make_is_regular(fabric: Fabric) -> None:
    scheme = TwoLevel(fabric)
    assert scheme.regular
    assert check(fabric, Epoch(), tables(scheme)) == []


MAKERS: tuple[Callable[[], Fabric], ...] = (
    lambda: fat_tree(k=4),
    lambda: fat_tree(k=4, hosts=9),
    lambda: leaf_spine(leaves=3, hosts_per_leaf=2),
    lambda: leaf_spine(leaves=3, hosts_per_leaf=4, spines=2),
    lambda: rail(hosts=6, nics=2, radix=8),
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(MAKERS), st.data())
def test_rules_of_a_regular_fabric_are_right_whatever_cables_are_missing(
    make: Callable[[], Fabric], data: st.DataObject
) -> None:
    whole = make()
    cables = [link for link in whole.links if whole.node(link.a.node).kind is not Kind.HOST]
    fabric = without(whole, data.draw(st.sets(st.sampled_from(cables), max_size=3)))
    scheme = TwoLevel(fabric)
    if scheme.regular:
        assert check(fabric, Epoch(), tables(scheme)) == []
    assert check(fabric, Epoch(), routes(fabric, Epoch())) == []


def test_a_missing_cable_is_seen() -> None:
    whole = fat_tree(k=4)
    for port in (Port("t0", 3), Port("a0", 3), Port("c0", 1)):
        assert not TwoLevel(without(whole, {whole.link(port)})).regular


def test_a_missing_parallel_cable_leaves_it_regular() -> None:
    whole = leaf_spine(spines=1)
    fabric = without(whole, {whole.link(Port("t0", 8))})
    assert TwoLevel(fabric).regular
    assert check(fabric, Epoch(), routes(fabric, Epoch())) == []


def test_addresses_that_do_not_follow_the_wiring_are_seen() -> None:
    fabric = without(leaf_spine(), set())
    moved, other = Port("h0", 0), Port("h4", 0)
    fabric._addresses[moved], fabric._addresses[other] = fabric._addresses[other], fabric._addresses[moved]
    fabric._owners = {address: nic for nic, address in fabric._addresses.items()}
    assert not TwoLevel(fabric).regular
    assert check(fabric, Epoch(), routes(fabric, Epoch())) == []


def test_a_spine_holds_one_rule_a_leaf_unless_cables_are_parallel() -> None:
    assert len(routes(leaf_spine(), Epoch())["s0"]) == 4
    assert len(routes(leaf_spine(spines=2), Epoch())["s0"]) == 4 + 16


@pytest.mark.parametrize(("kind", "hosts"), [("fat-tree", 256), ("rail", 256)])
def test_2048_nics_are_routed_in_no_time(kind: str, hosts: int) -> None:
    """Seconds of processor time, so that a busy machine does not matter; it takes about 0.1."""
    fabric = registry.build(kind, hosts=hosts, nics=8)
    began = time.process_time()
    routes(fabric, Epoch())
    assert time.process_time() - began < 3
