"""Templates by phase: which circuits a shape gets, how few change, and the gate that keeps those that are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.circuits import check_epoch, darkened
from controllers.epochs import Circuit, Epoch, Matchings, OcsCircuit, duplex
from controllers.loads import circuit_rate
from controllers.policies.gate import gate
from controllers.policies.placement import Placement
from controllers.policies.protocol import EpochResult, Keep, Phase, Plan, Tick, View
from controllers.policies.shapes import Shape, lay
from controllers.policies.templates import Templates
from topologies.fabric import Fabric, Kind, Port
from topologies.hybrid import hybrid

GB = 10**9
RATE = 8 * GB
"""bit/s: a gigabyte takes a second."""


def pods(count: int, uplinks: int, ocses: int = 1) -> Fabric:
    """ToRs of one host each, every one with `uplinks` ports at every OCS, numbered ToR by ToR from 1."""
    fabric = Fabric("pods")
    for ocs in range(ocses):
        fabric.add_switch(f"o{ocs}", Kind.OCS)
    for pod in range(count):
        fabric.add_switch(f"t{pod}", Kind.TOR)
        fabric.add_host(f"h{pod}")
        fabric.connect(Port(f"h{pod}", 0), fabric.next_port(f"t{pod}"), rate=RATE)
        for ocs in range(ocses):
            for _ in range(uplinks):
                fabric.connect(fabric.next_port(f"t{pod}"), fabric.next_port(f"o{ocs}"), rate=RATE)
    return fabric.finish()


def all_ports(fabric: Fabric) -> dict[str, frozenset[int]]:
    return {ocs.name: frozenset(port.number for port in fabric.ports(ocs.name)) for ocs in fabric.ocses}


def placed(
    shape: Shape, fabric: Fabric, demand: Mapping[tuple[str, str], int], current: Epoch | None = None
) -> Matchings:
    placement = Placement(fabric, current or Epoch(), all_ports(fabric))
    lay(shape, placement, demand)
    return placement.matchings()


def pairs(fabric: Fabric, matchings: Matchings) -> Counter[tuple[str, str]]:
    """How many circuits join each pair of nodes; every circuit must shine both ways."""
    found: Counter[tuple[str, str]] = Counter()
    for ocs, matching in matchings.items():
        for a, b in matching:
            assert Circuit(b, a) in matching
            if a < b:
                ends = sorted(fabric.peer(Port(ocs, port)).node for port in (a, b))
                found[ends[0], ends[1]] += 1
    return found


def demand_of(*triples: tuple[int, int, int]) -> dict[tuple[str, str], int]:
    return {(f"t{a}", f"t{b}"): count for a, b, count in triples}


RING = {("t0", "t1"): 1, ("t1", "t2"): 1, ("t2", "t3"): 1, ("t0", "t3"): 1}

# -- shapes -----------------------------------------------------------------------------------------------------------


def test_a_mesh_of_two_uplinks_is_the_ring() -> None:
    fabric = pods(4, 2)
    assert pairs(fabric, placed("mesh", fabric, {})) == RING


def test_a_mesh_with_a_port_for_each_other_pod_is_full() -> None:
    fabric = pods(5, 4)
    found = pairs(fabric, placed("mesh", fabric, {}))
    assert len(found) == 10
    assert set(found.values()) == {1}


def test_more_ports_than_pods_give_parallel_circuits() -> None:
    fabric = pods(2, 3)
    assert pairs(fabric, placed("mesh", fabric, {})) == {("t0", "t1"): 3}


def test_a_mesh_follows_the_demand() -> None:
    fabric = pods(4, 2)
    chain = demand_of((0, 2, 100), (2, 1, 100), (1, 3, 100))
    found = pairs(fabric, placed("mesh", fabric, chain))
    assert found == {("t0", "t2"): 1, ("t1", "t2"): 1, ("t1", "t3"): 1, ("t0", "t3"): 1}


def test_a_mesh_joins_only_those_who_take_part() -> None:
    fabric = pods(6, 2)
    found = pairs(fabric, placed("mesh", fabric, demand_of((1, 4, 5), (4, 5, 5))))
    assert {site for pair in found for site in pair} == {"t1", "t4", "t5"}


def test_heavy_pairs_get_the_ports_that_are_left() -> None:
    fabric = pods(3, 3)
    found = pairs(fabric, placed("mesh", fabric, demand_of((0, 1, 900), (1, 2, 100), (0, 2, 100))))
    assert found == {("t0", "t1"): 2, ("t0", "t2"): 1, ("t1", "t2"): 1}


def test_isolated_pods_have_circuits_within_their_groups_only() -> None:
    fabric = pods(6, 2)
    groups = demand_of((0, 3, 7), (1, 4, 7), (4, 5, 7), (5, 1, 7))
    found = pairs(fabric, placed("isolated-pods", fabric, groups))
    assert found == {("t0", "t3"): 2, ("t1", "t4"): 1, ("t4", "t5"): 1, ("t1", "t5"): 1}


def test_a_bipartite_exchange_gets_circuits_across_only() -> None:
    # Attention on pods 0 and 1, FFN on pods 2 and 3.
    fabric = pods(4, 2)
    afd = demand_of(*((a, f, 10) for a in (0, 1) for f in (2, 3)), *((f, a, 10) for a in (0, 1) for f in (2, 3)))
    found = pairs(fabric, placed("isolated-pods", fabric, afd))
    assert found == {("t0", "t2"): 1, ("t0", "t3"): 1, ("t1", "t2"): 1, ("t1", "t3"): 1}


def test_pods_that_talk_to_nobody_need_no_circuits() -> None:
    fabric = pods(4, 2)
    assert placed("isolated-pods", fabric, {}) == {}


def test_a_two_level_tree_goes_from_the_sender_over_a_relay() -> None:
    fabric = pods(4, 3)
    # Pod 2 trains; it sends to pod 0, which passes on to 1 and 3.
    sync = demand_of((2, 0, 100), (0, 1, 100), (0, 3, 100))
    found = pairs(fabric, placed("two-level-tree", fabric, sync))
    assert set(found) == {("t0", "t2"), ("t0", "t1"), ("t0", "t3")}


def test_a_tree_with_too_few_ports_takes_another_relay() -> None:
    fabric = pods(4, 2)
    found = pairs(fabric, placed("two-level-tree", fabric, demand_of((0, 1, 9), (0, 2, 8), (0, 3, 7))))
    # The relay 1 has one port left for 2; the root reaches 3 itself.
    assert found == {("t0", "t1"): 1, ("t1", "t2"): 1, ("t0", "t3"): 1}


def test_a_large_tree_grows_deeper_and_reaches_everyone() -> None:
    fabric = pods(9, 2)
    found = pairs(fabric, placed("two-level-tree", fabric, demand_of(*((0, pod, 10) for pod in range(1, 9)))))
    graph = nx.Graph(list(found))
    assert nx.is_connected(graph)
    assert len(graph) == 9


# -- placement --------------------------------------------------------------------------------------------------------


def test_circuits_that_join_a_wanted_pair_stay_where_they_are() -> None:
    fabric = pods(4, 2)
    # t0 1-2, t1 3-4, t2 5-6, t3 7-8: a ring on other ports than a fresh one would take.
    current = Epoch(3, {"o0": duplex([(2, 4), (3, 6), (5, 7), (8, 1)])})
    assert placed("mesh", fabric, {}, current) == current.matchings


def test_only_what_must_change_changes() -> None:
    fabric = pods(4, 2)
    current = Epoch(0, {"o0": duplex([(2, 4), (3, 6), (5, 7), (8, 1)])})  # 0-1, 1-2, 2-3, 3-0
    chain = demand_of((0, 2, 100), (2, 1, 100), (1, 3, 100))
    found = placed("mesh", fabric, chain, current)
    assert darkened(current, Epoch(1, found)) == {"o0": duplex([(2, 4), (5, 7)])}
    assert found["o0"] == duplex([(3, 6), (8, 1), (2, 5), (4, 7)])


def test_circuits_in_nobodys_way_stay_lit() -> None:
    fabric = pods(4, 2)
    current = Epoch(0, {"o0": duplex([(6, 8)])})
    found = placed("mesh", fabric, demand_of((0, 1, 1)), current)
    assert duplex([(6, 8)]) <= found["o0"]


def test_dark_ports_are_taken_before_lit_ones() -> None:
    fabric = pods(3, 2)
    current = Epoch(0, {"o0": duplex([(1, 5)])})  # t0 - t2 on the first port of each
    placement = Placement(fabric, current, all_ports(fabric))
    assert placement.join("t0", "t1")
    assert placement.matchings() == {"o0": duplex([(1, 5), (2, 3)])}


def test_ports_that_failed_are_not_used() -> None:
    fabric = pods(2, 2)
    placement = Placement(fabric, Epoch(0, {"o0": duplex([(1, 3)])}), {"o0": frozenset({2, 3, 4})})
    lay("mesh", placement, {})
    assert placement.matchings() == {"o0": duplex([(2, 4)])}


def test_circuits_are_spread_over_ocses() -> None:
    fabric = pods(4, 1, ocses=2)
    found = placed("mesh", fabric, {})
    assert {ocs: len(matching) for ocs, matching in found.items()} == {"o0": 4, "o1": 4}
    assert pairs(fabric, found) == RING


@st.composite
def situations(draw: st.DrawFn) -> tuple[Fabric, Epoch, dict[tuple[str, str], int], dict[str, frozenset[int]]]:
    """Pods, some current circuits, a demand between them, and the ports that still work."""
    fabric = pods(draw(st.integers(2, 6)), draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    usable, current = {}, {}
    for ocs, ports in all_ports(fabric).items():
        order = draw(st.permutations(sorted(ports)))
        count = draw(st.integers(0, len(order) // 2))
        current[ocs] = duplex((order[2 * n], order[2 * n + 1]) for n in range(count))
        usable[ocs] = ports - draw(st.frozensets(st.sampled_from(sorted(ports)), max_size=2))
    tors = sorted(node.name for node in fabric.of_kind(Kind.TOR))
    pair = st.permutations(tors).map(lambda order: (order[0], order[1]))
    return fabric, Epoch(4, current), draw(st.dictionaries(pair, st.integers(0, 100), max_size=8)), usable


@settings(max_examples=150, deadline=None)
@given(situations(), st.sampled_from(["mesh", "isolated-pods", "two-level-tree"]))
def test_every_shape_is_a_matching_within_the_ports_that_work(
    situation: tuple[Fabric, Epoch, dict[tuple[str, str], int], dict[str, frozenset[int]]], shape: Shape
) -> None:
    fabric, current, demand, usable = situation
    placement = Placement(fabric, current, usable)
    lay(shape, placement, demand)
    found = placement.matchings()
    check_epoch(fabric, Epoch(5, found))
    for ocs, matching in found.items():
        assert {port for circuit in matching for port in circuit} <= usable[ocs]
    again = Placement(fabric, Epoch(5, found), usable)
    lay(shape, again, demand)
    if len(fabric.ocses) == 1:  # what was laid once is kept as it is
        assert again.matchings() == found


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 8), st.integers(2, 4), st.data())
def test_a_mesh_of_two_ports_or_more_leaves_nobody_alone(count: int, uplinks: int, data: st.DataObject) -> None:
    fabric = pods(count, uplinks)
    pair = st.permutations(range(count)).map(lambda order: (f"t{order[0]}", f"t{order[1]}"))
    demand = data.draw(st.dictionaries(pair, st.integers(1, 100), min_size=1, max_size=10))
    for shape in ("mesh", "two-level-tree"):
        graph = nx.Graph(list(pairs(fabric, placed(shape, fabric, demand))))
        assert nx.is_connected(graph)
        assert set(graph) == {site for pair in demand for site in pair}


# -- the gate ---------------------------------------------------------------------------------------------------------

RING_OF_FOUR = {"o0": duplex([(1, 3), (4, 5), (6, 7), (8, 2)])}
CROSSED = {"o0": duplex([(1, 5), (4, 7), (3, 6), (8, 2)])}


def seen(in_flight: Mapping[OcsCircuit, int] | None = None, lead: float = 0.0) -> View:
    fabric = pods(4, 2)
    return View(
        Epoch(0, RING_OF_FOUR),
        free_ports=all_ports(fabric),
        in_flight=in_flight or {},
        reconfiguration=0.010,
        lead=lead,
    )


def decide(view: View, slack: float, margin: float = 0.002) -> Plan | Keep:
    return gate(pods(4, 2), view, CROSSED, slack=slack, margin=margin, now=5.0, what="crossed")


def test_too_little_slack_keeps_the_circuits_and_says_why() -> None:
    answer = decide(seen(), 0.0119)
    assert isinstance(answer, Keep)
    assert "crossed: 6 circuit directions to be torn down: slack 11.9 ms" in answer.reason
    assert "12 ms that a change takes" in answer.reason


def test_just_enough_slack_reconfigures_at_once() -> None:
    answer = decide(seen(), 0.0121)
    assert isinstance(answer, Plan)
    assert (answer.at, answer.deadline) == (5.0, pytest.approx(5.0001))


def test_the_engines_lead_is_part_of_what_a_change_takes() -> None:
    assert isinstance(decide(seen(lead=0.005), 0.0169), Keep)
    assert isinstance(decide(seen(lead=0.005), 0.0171), Plan)


def test_bytes_in_flight_shorten_the_window_and_delay_the_change() -> None:
    busy = {OcsCircuit("o0", Circuit(1, 3)): GB // 100}  # 10 ms at 8 Gb/s, on a circuit that goes
    assert isinstance(decide(seen(busy), 0.0219), Keep)
    answer = decide(seen(busy), 0.030)
    assert isinstance(answer, Plan)
    assert answer.at == pytest.approx(5.010)
    assert answer.deadline == pytest.approx(5.018)


def test_bytes_on_circuits_that_stay_do_not_matter() -> None:
    busy = {OcsCircuit("o0", Circuit(8, 2)): GB}
    assert isinstance(decide(seen(busy), 0.0121), Plan)


def test_a_change_that_takes_no_circuit_away_passes_without_slack() -> None:
    dark = View(Epoch(0, {}), reconfiguration=0.01)
    answer = gate(pods(4, 2), dark, CROSSED, slack=0.0, margin=1.0, now=0.0, what="x")
    assert answer == Plan(CROSSED, reason="x: takes no circuit away")


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted(RING_OF_FOUR["o0"])), st.integers(0, GB // 10), max_size=8),
    st.floats(0, 0.3),
    st.floats(0, 0.02),
    st.floats(0, 0.02),
)
def test_no_circuit_is_torn_down_that_is_needed_before_the_change_is_over(
    flying: dict[Circuit, int], slack: float, margin: float, lead: float
) -> None:
    view = seen({OcsCircuit("o0", circuit): count for circuit, count in flying.items()}, lead)
    answer = decide(view, slack, margin)
    fabric = pods(4, 2)
    gone = darkened(view.epoch, Epoch(1, CROSSED))["o0"]
    drained = max([8 * count / circuit_rate(fabric, "o0", c) for c, count in flying.items() if c in gone], default=0.0)
    takes = lead + 0.010 + margin
    if isinstance(answer, Keep):
        assert slack - drained < takes
        return
    assert answer.at is not None
    assert answer.deadline is not None
    assert answer.at >= 5.0 + drained * (1 - 1e-12)
    for begin in (answer.at, answer.deadline):
        assert begin + takes <= 5.0 + slack + 1e-9


# -- the policy -------------------------------------------------------------------------------------------------------


def test_a_phase_lays_its_template() -> None:
    fabric = pods(4, 2)
    policy = Templates(fabric, {"training": "mesh", "sync": CROSSED}, margin=0.002)
    kept = policy.on(Phase("training", slack=1.0), seen(), 5.0)
    assert kept == Keep("mesh: lit already")
    plan = policy.on(Phase("sync", slack=1.0), seen(), 5.0)
    assert isinstance(plan, Plan)
    assert plan.matchings == CROSSED
    assert isinstance(policy.on(Phase("sync", slack=0.001), seen(), 5.0), Keep)
    assert policy.known() == (CROSSED,)


def test_parallelism_has_templates_of_its_own() -> None:
    policy = Templates(pods(4, 2), {"generation": "isolated-pods", "generation.tp4": CROSSED})
    answer = policy.on(Phase("generation.tp4", slack=1.0), seen(), 0.0)
    assert isinstance(answer, Plan)
    assert answer.matchings == CROSSED
    view = View(Epoch(), site_demand={("t0", "t1"): 5}, free_ports=all_ports(pods(4, 2)), reconfiguration=0.01)
    other = policy.on(Phase("generation.tp2", slack=1.0), view, 0.0)
    assert isinstance(other, Plan)
    assert pairs(pods(4, 2), other.matchings) == {("t0", "t1"): 2}


def test_other_phases_and_other_events_keep_the_circuits() -> None:
    policy = Templates(pods(4, 2), {"training": "mesh"})
    assert policy.on(Phase("evaluation", slack=9.0), seen(), 0.0) == Keep("no template for phase evaluation")
    assert isinstance(policy.on(Tick(), seen(), 0.0), Keep)
    assert isinstance(policy.on(EpochResult("committed", 1), seen(), 0.0), Keep)


def test_templates_fit_the_hybrid_fabric() -> None:
    fabric = hybrid(pods=4, hosts_per_pod=2, uplinks=2)
    view = View(Epoch(), free_ports=all_ports(fabric), reconfiguration=0.01)
    answer = Templates(fabric, {"training": "mesh"}).on(Phase("training"), view, 0.0)
    assert isinstance(answer, Plan)
    assert pairs(fabric, answer.matchings) == RING
