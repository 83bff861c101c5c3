"""Shortest-path routing over links and lit circuits."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.checks import check
from controllers.circuits import epoch
from controllers.epochs import Circuit, CircuitError, Epoch
from controllers.paths import Forwarder
from controllers.routes import isolated_pairs, path, paths, reachable_pairs, routes
from controllers.tables import Rule, address_number
from topologies.fabric import Fabric, Kind, Port
from topologies.fat_tree import fat_tree
from topologies.hybrid import hybrid


def hops(fabric: Fabric, lit: Epoch, src: str, dst: str) -> list[str] | None:
    found = path(fabric, routes(fabric, lit), Port(src, 0), Port(dst, 0))
    return None if found is None else [str(port) for port in found]


def test_pods_without_a_circuit_are_isolated() -> None:
    fabric = hybrid()
    lit = epoch(fabric, 0, {"o0": ["t0-t1", "t2-t3"]})
    assert hops(fabric, lit, "h0", "h4") == ["h0:0", "t0:5", "o0:3", "t1:1"]
    assert hops(fabric, lit, "h0", "h8") is None
    isolated = set(isolated_pairs(fabric, lit))
    assert len(isolated) == 2 * 8 * 8
    assert (Port("h0", 0), Port("h8", 0)) in isolated
    assert check(fabric, lit, routes(fabric, lit)) == []


def test_reachable_and_isolated_make_up_all_pairs() -> None:
    fabric = hybrid()
    lit = epoch(fabric, 0, {"o0": ["t0-t1"]})
    some, others = set(reachable_pairs(fabric, lit)), set(isolated_pairs(fabric, lit))
    assert not some & others
    assert len(some | others) == 16 * 15
    assert some == set(paths(fabric, routes(fabric, lit)))


def test_rewiring_changes_who_is_reached() -> None:
    fabric = hybrid()
    first, second = (epoch(fabric, i, {"o0": [pair]}) for i, pair in enumerate(["t0-t1", "t0-t2"]))
    assert (hops(fabric, first, "h0", "h4") is None, hops(fabric, first, "h0", "h8") is None) == (False, True)
    assert (hops(fabric, second, "h0", "h4") is None, hops(fabric, second, "h0", "h8") is None) == (True, False)


def test_paths_go_over_several_tors() -> None:
    fabric = hybrid()
    lit = epoch(fabric, 0, {"o0": ["t0-t1", "t1-t2", "t2-t3"]})
    assert hops(fabric, lit, "h0", "h12") == ["h0:0", "t0:5", "o0:3", "t1:6", "o0:5", "t2:6", "o0:7", "t3:1"]
    assert list(isolated_pairs(fabric, lit)) == []
    assert check(fabric, lit, routes(fabric, lit)) == []


def test_circuit_is_preferred_to_the_electrical_core() -> None:
    fabric = hybrid(electrical_rate=10)
    lit = epoch(fabric, 0, {"o0": ["t0-t1"]})
    assert hops(fabric, lit, "h0", "h4") == ["h0:0", "t0:5", "o0:3", "t1:1"]
    assert hops(fabric, lit, "h0", "h8") == ["h0:0", "t0:7", "c0:3", "t2:1"]
    assert list(isolated_pairs(fabric, Epoch())) == []


def test_ocs_tables_are_the_circuits() -> None:
    fabric = hybrid()
    assert routes(fabric, epoch(fabric, 0, {"o0": ["2-5"]}))["o0"] == (Rule(300, 5, in_port=2), Rule(300, 2, in_port=5))
    assert routes(fabric, Epoch())["o0"] == ()


def test_one_way_circuits_carry_one_way() -> None:
    fabric = hybrid(pods=3, uplinks=1)
    ring = Epoch(0, {"o0": frozenset({Circuit(1, 2), Circuit(2, 3), Circuit(3, 1)})})
    assert hops(fabric, ring, "h0", "h4") == ["h0:0", "t0:5", "o0:2", "t1:1"]
    assert hops(fabric, ring, "h4", "h0") == ["h4:0", "t1:5", "o0:3", "t2:5", "o0:1", "t0:1"]
    # t2 gets packets for h0 by the port that they leave by.
    assert [rule.hairpin for rule in routes(fabric, ring)["t2"] if rule.destination == address_number("10.0.0.1")] == [
        True
    ]
    line = Epoch(0, {"o0": frozenset({Circuit(1, 2)})})
    assert hops(fabric, line, "h0", "h4") is not None
    assert hops(fabric, line, "h4", "h0") is None
    for lit in (ring, line):
        assert check(fabric, lit, routes(fabric, lit)) == []


def test_impossible_epoch_is_refused() -> None:
    with pytest.raises(CircuitError, match="no port 99"):
        routes(hybrid(), Epoch(0, {"o0": frozenset({Circuit(1, 99)})}))


def test_each_nic_is_a_destination_of_its_own() -> None:
    fabric = hybrid(nics=2, hosts_per_pod=2)
    lit = epoch(fabric, 0, {"o0": ["t0-t1"]})
    tables = routes(fabric, lit)
    for number in (0, 1):
        found = path(fabric, tables, Port("h0", 1 - number), Port("h2", number))
        assert found is not None
        assert found[-1] == fabric.peer(Port("h2", number))


def test_hosts_never_forward() -> None:
    fabric = Fabric("two rails")
    for tor in ("t0", "t1"):
        fabric.add_switch(tor, Kind.TOR)
    for host, tors in [("h0", ("t0",)), ("h1", ("t0", "t1")), ("h2", ("t1",))]:
        fabric.add_host(host)
        for nic, tor in enumerate(tors):
            fabric.connect(Port(host, nic), fabric.next_port(tor), rate=1)
    fabric.finish()
    assert (Port("h0", 0), Port("h2", 0)) in set(isolated_pairs(fabric, Epoch()))
    assert hops(fabric, Epoch(), "h0", "h2") is None
    assert check(fabric, Epoch(), routes(fabric, Epoch())) == []


def optical_hosts() -> Fabric:
    """Two hosts straight on o0, one on o1 behind it."""
    fabric = Fabric("optical")
    for ocs in ("o0", "o1"):
        fabric.add_switch(ocs, Kind.OCS)
    for host, ocs in [("h0", "o0"), ("h1", "o0"), ("h2", "o1")]:
        fabric.add_host(host)
        fabric.connect(Port(host, 0), fabric.next_port(ocs), rate=1)
    fabric.connect(Port("o0", 3), Port("o1", 2), rate=1)
    return fabric.finish()


def test_circuits_may_join_nics_through_several_ocses() -> None:
    fabric = optical_hosts()
    direct = epoch(fabric, 0, {"o0": ["h0-h1"]})
    far = epoch(fabric, 1, {"o0": ["h0-o1"], "o1": ["h2-o0"]})
    assert hops(fabric, direct, "h0", "h1") == ["h0:0", "o0:2"]
    assert hops(fabric, far, "h0", "h2") == ["h0:0", "o0:3", "o1:1"]
    assert hops(fabric, far, "h0", "h1") is None
    for lit in (direct, far):
        assert check(fabric, lit, routes(fabric, lit)) == []
        assert len(set(reachable_pairs(fabric, lit))) == 2


def test_light_in_a_circle_of_ocses_ends_in_the_dark() -> None:
    fabric = Fabric("circle")
    for ocs in ("o0", "o1"):
        fabric.add_switch(ocs, Kind.OCS)
    fabric.add_host("h0")
    fabric.connect(Port("h0", 0), Port("o0", 1), rate=1)
    fabric.connect(Port("o0", 2), Port("o1", 1), rate=1)
    fabric.connect(Port("o0", 3), Port("o1", 2), rate=1)
    fabric.finish()
    # No matching makes such a circle that light can enter; a table with two ways into one exit does.
    back = (Rule(300, 2, in_port=1), Rule(300, 2, in_port=3))
    assert Forwarder(fabric, {"o0": back, "o1": (Rule(300, 2, in_port=1),)}).cross(Port("h0", 0)) is None


def test_equal_paths_are_spread_by_the_seed() -> None:
    fabric = fat_tree(k=4)
    fabric.routing = "shortest-path"
    tables = [routes(fabric, Epoch(), seed) for seed in range(3)]
    assert tables[0] == routes(fabric, Epoch(), 0)
    assert tables[0] != tables[1] != tables[2]
    used = Counter(rule.out_port for rule in tables[0]["t0"] if rule.out_port > 2)
    assert set(used) == {3, 4}


def test_choice_does_not_depend_on_the_process() -> None:
    code = (
        "from controllers.routes import routes; from controllers.epochs import Epoch; "
        "from topologies.fat_tree import fat_tree; f = fat_tree(k=4); f.routing = 'shortest-path'; "
        "print(sorted(routes(f, Epoch(), 7).items()))"
    )
    root = Path(__file__).parents[3]
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(1, 13)), st.integers(0, 12), st.booleans())
def test_paths_are_shortest_on_any_matching(exits: list[int], size: int, core: bool) -> None:
    fabric = hybrid(pods=4, hosts_per_pod=1, uplinks=3, electrical_rate=1 if core else None)
    circuits = frozenset(Circuit(i, o) for i, o in list(enumerate(exits, start=1))[:size] if i != o)
    lit = Epoch(0, {"o0": circuits})
    tables = routes(fabric, lit, 5)
    assert check(fabric, lit, tables) == []
    graph = nx.DiGraph()
    graph.add_nodes_from(f"t{i}" for i in range(4))
    graph.add_edges_from((f"t{(c.in_port - 1) // 3}", f"t{(c.out_port - 1) // 3}") for c in circuits)
    if core:
        graph.add_edges_from(edge for i in range(4) for edge in ((f"t{i}", "c0"), ("c0", f"t{i}")))
    found = paths(fabric, tables)
    for a in range(4):
        for b in range(4):
            if a != b and nx.has_path(graph, f"t{a}", f"t{b}"):
                ports = [p for p in found[Port(f"h{a}", 0), Port(f"h{b}", 0)] if p.node[0] in "tc"]
                assert len(ports) - 1 == nx.shortest_path_length(graph, f"t{a}", f"t{b}")
            elif a != b:
                assert (Port(f"h{a}", 0), Port(f"h{b}", 0)) not in found
