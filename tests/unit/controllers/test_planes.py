"""Circuits over aggregation and core OCSs: light paths, templates laid on RFabric, and how little a change touches."""

from __future__ import annotations

import time
from collections import Counter

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.checks import check
from controllers.circuits import check_epoch, darkened
from controllers.epochs import Circuit, Epoch, Matchings, duplex
from controllers.policies.placement import Placement
from controllers.policies.planes import Planes
from controllers.policies.protocol import Phase, Plan, View
from controllers.policies.shapes import Shape, lay
from controllers.policies.templates import Templates
from controllers.routes import routes
from topologies.fabric import Fabric, Kind, Port
from topologies.hybrid import hybrid
from topologies.rfabric import rfabric

SHAPES: tuple[Shape, ...] = ("mesh", "isolated-pods", "two-level-tree")


def all_ports(fabric: Fabric) -> dict[str, frozenset[int]]:
    return {ocs.name: frozenset(port.number for port in fabric.ports(ocs.name)) for ocs in fabric.ocses}


def pairs(fabric: Fabric, matchings: Matchings) -> Counter[tuple[str, str]]:
    """How many light paths join each pair of ToRs; every one must shine both ways."""
    planes = Planes(fabric, Epoch(0, matchings), all_ports(fabric))
    found: Counter[tuple[str, str]] = Counter()
    for of in planes.terminals.values():
        for site, ports in of.items():
            for port in ports:
                if (path := planes.current(port)) is not None:
                    found[site, fabric.peer(path.b).node] += 1
    assert all(count == found[b, a] for (a, b), count in found.items())
    return Counter({(a, b): count for (a, b), count in found.items() if int(a[1:]) < int(b[1:])})


def placed(fabric: Fabric, shape: Shape, demand: dict[tuple[str, str], int], current: Epoch | None = None) -> Matchings:
    placement = Placement(fabric, current or Epoch(), all_ports(fabric))
    lay(shape, placement, demand)
    return placement.matchings()


def test_each_plane_is_what_is_cabled_together() -> None:
    planes = Planes(rfabric(hosts_per_tor=4, planes=2), Epoch(), {})
    assert list(planes.terminals) == ["o0", "o1"]
    assert list(Planes(hybrid(uplinks=4, ocses=2), Epoch(), {}).terminals) == ["o0", "o1"]


def test_only_tors_are_sites() -> None:
    fabric = rfabric()
    assert Placement(fabric, Epoch(), all_ports(fabric)).sites == tuple(tor.name for tor in fabric.of_kind(Kind.TOR))


def test_a_circuit_within_a_pod_stays_in_its_aggregation_switch() -> None:
    """t0 and t1 at ports 1, 2 and 3, 4 of o0."""
    assert placed(rfabric(), "isolated-pods", {("t0", "t1"): 1}) == {"o0": duplex([(1, 3), (2, 4)])}


def test_a_circuit_between_pods_passes_aggregation_core_and_aggregation() -> None:
    """t1 is at ports 3, 4 of o0, t6 at ports 1, 2 of o3; ports 5.. lead to x0, there from 1 and from 13 on."""
    assert placed(rfabric(), "isolated-pods", {("t1", "t6"): 1}) == {
        "o0": duplex([(3, 5), (4, 6)]),
        "o3": duplex([(1, 5), (2, 6)]),
        "x0": duplex([(1, 13), (2, 14)]),
    }


def test_another_partner_in_another_pod_changes_the_core_alone_on_this_side() -> None:
    fabric = rfabric(hosts_per_tor=1)
    first = Epoch(0, placed(fabric, "isolated-pods", {("t0", "t2"): 1}))
    second = Epoch(1, placed(fabric, "isolated-pods", {("t0", "t4"): 1}, first))
    assert set(darkened(first, second)) == {"x0"}
    assert second.circuits("o0") == first.circuits("o0")
    assert pairs(fabric, second.matchings) == {("t0", "t4"): 1}
    back = placed(fabric, "isolated-pods", {("t0", "t2"): 1}, second)
    assert pairs(fabric, back) == {("t0", "t2"): 1}


def test_ports_to_the_core_that_failed_are_gone_around_or_left_out() -> None:
    fabric = rfabric(hosts_per_tor=1)  # ports 3 and 4 of each OCS-Agg lead to the core
    usable = all_ports(fabric)
    usable["x0"] -= {1}
    placement = Placement(fabric, Epoch(), usable)
    assert placement.join("t0", "t2")
    assert placement.matchings()["o0"] == duplex([(1, 4)])
    both = {**usable, "x0": usable["x0"] - {2}}
    placement = Placement(fabric, Epoch(), both)
    assert placement.join("t0", "t2")
    assert placement.matchings() == {}


def test_light_that_circles_between_switches_is_no_path() -> None:
    fabric = Fabric("circle")
    for ocs in ("o0", "o1"):
        fabric.add_switch(ocs, Kind.OCS)
    fabric.add_host("h0")
    fabric.connect(Port("h0", 0), Port("o0", 1), rate=1)
    for number in (2, 3):
        fabric.connect(Port("o0", number), Port("o1", number), rate=1)
    fabric.finish()
    lit = Epoch(0, {"o0": duplex([(2, 3)]), "o1": duplex([(2, 3)])})
    assert Planes(fabric, lit, all_ports(fabric)).current(Port("o0", 2)) is None


def test_one_way_circuits_are_no_light_path_but_stay_where_nobody_wants_their_ports() -> None:
    fabric = hybrid(uplinks=1)
    lit = Epoch(0, {"o0": frozenset({Circuit(3, 4)})})
    assert Planes(fabric, lit, all_ports(fabric)).current(Port("o0", 3)) is None
    assert placed(fabric, "isolated-pods", {("t0", "t1"): 1}, lit) == {"o0": duplex([(1, 2)]) | {Circuit(3, 4)}}


@st.composite
def situations(draw: st.DrawFn) -> tuple[Fabric, dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    """An RFabric and two demands between its ToRs, one after the other."""
    uplinks = draw(st.integers(1, 4))
    fabric = rfabric(
        training_pods=draw(st.integers(1, 2)),
        generation_pods=draw(st.integers(1, 2)),
        tors_per_pod=draw(st.integers(1, 3)),
        hosts_per_tor=uplinks,
        planes=draw(st.sampled_from([n for n in range(1, uplinks + 1) if uplinks % n == 0])),
    )
    tors = sorted(node.name for node in fabric.of_kind(Kind.TOR))
    pair = st.permutations(tors).map(lambda order: (order[0], order[1]))
    demands = st.dictionaries(pair, st.integers(1, 100), max_size=8)
    return fabric, draw(demands), draw(demands)


@settings(max_examples=80, deadline=None)
@given(situations(), st.sampled_from(SHAPES), st.sampled_from(SHAPES))
def test_shapes_fit_two_tiers_as_they_would_one_switch(
    situation: tuple[Fabric, dict[tuple[str, str], int], dict[tuple[str, str], int]], first: Shape, second: Shape
) -> None:
    """Every circuit that is chosen finds its way: the tiers of a plane block nothing. And tables follow them."""
    fabric, before, after = situation
    current = Epoch(0, placed(fabric, first, before))
    placement = Placement(fabric, current, all_ports(fabric))
    lay(second, placement, after)
    lit = Epoch(1, placement.matchings())
    check_epoch(fabric, lit)
    found = pairs(fabric, lit.matchings)
    sites = placement.sites
    for place, a in enumerate(sites):
        for b in sites[place + 1 :]:
            assert found[a, b] >= placement.count(a, b)
    assert check(fabric, lit, routes(fabric, lit)) == []


def test_templates_lay_a_mesh_among_the_training_tors() -> None:
    fabric = rfabric(hosts_per_tor=4)
    training = [f"t{tor}" for tor in range(4)]
    demand = {(a, b): 100 for a in training for b in training if a != b}
    view = View(Epoch(), free_ports=all_ports(fabric), site_demand=demand, reconfiguration=0.01)
    plan = Templates(fabric, {"training": "mesh"}).on(Phase("training", slack=1.0), view, 0.0)
    assert isinstance(plan, Plan)
    found = pairs(fabric, plan.matchings)
    assert set(found) == {(a, b) for a in training for b in training if a < b}
    assert sum(found.values()) == 4 * 4 // 2
    assert nx.is_connected(nx.Graph(list(found)))


@pytest.mark.parametrize("shape", SHAPES)
def test_64_tors_of_32_uplinks_are_laid_in_a_second_or_two(shape: Shape) -> None:
    """Seconds of processor time, so that a busy machine does not matter."""
    fabric = rfabric(training_pods=4, generation_pods=4, tors_per_pod=8, hosts_per_tor=4, nics=8)
    tors = [tor.name for tor in fabric.of_kind(Kind.TOR)]
    demand = {(a, b): 1 + (i * j) % 7 for i, a in enumerate(tors) for j, b in enumerate(tors) if a != b}
    current = Epoch(0, placed(fabric, "mesh", {}))
    began = time.process_time()
    found = placed(fabric, shape, demand, current)
    assert time.process_time() - began < 10
    assert sum(pairs(fabric, found).values()) > 900
