"""The RFabric builder: pods, planes, the two optical tiers, the thin electrical network."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.checks import check
from controllers.circuits import epoch
from controllers.epochs import Epoch
from controllers.routes import isolated_pairs, path, routes
from tests.unit.topologies.invariants import nic_rates, tier_rates
from topologies.fabric import Fabric, FabricError, Kind, Port
from topologies.rfabric import rfabric


def hops(fabric: Fabric, lit: Epoch, src: str, dst: str) -> list[str]:
    found = path(fabric, routes(fabric, lit), Port(src, 0), Port(dst, 0))
    assert found is not None
    return [str(port) for port in found]


def test_default_is_a_lab_of_16_hosts_in_four_pods() -> None:
    fabric = rfabric()
    assert [len(fabric.of_kind(kind)) for kind in (Kind.HOST, Kind.TOR, Kind.EPS, Kind.OCS)] == [16, 8, 1, 5]
    assert [ocs.tier for ocs in fabric.ocses] == [2, 2, 2, 2, 3]
    assert [len(fabric.ports(ocs.name)) for ocs in fabric.ocses] == [8, 8, 8, 8, 16]
    assert {host.pod for host in fabric.hosts[4:8]} == {1}
    assert fabric.wiring_assumed == "topologies/rfabric.py"
    assert "wiring assumed" in fabric.notes[0]


def test_ports_follow_the_documented_numbers() -> None:
    """Two pods of two ToRs, four uplinks in two planes: m = 2."""
    fabric = rfabric(training_pods=1, generation_pods=1, hosts_per_tor=4, planes=2)
    assert [str(fabric.peer(Port("t1", 5 + uplink))) for uplink in range(4)] == ["o0:3", "o1:3", "o0:4", "o1:4"]
    assert [str(fabric.peer(Port("t3", 5 + uplink))) for uplink in range(4)] == ["o2:3", "o3:3", "o2:4", "o3:4"]
    assert fabric.peer(Port("t3", 9)) == Port("c0", 4)
    assert [str(fabric.peer(Port("o3", 4 + place))) for place in (1, 4)] == ["x1:5", "x1:8"]
    assert [str(fabric.peer(Port("o0", 4 + place))) for place in (1, 4)] == ["x0:1", "x0:4"]


def test_circuits_stay_in_a_pod_or_pass_three_switches() -> None:
    fabric = rfabric()
    lit = epoch(fabric, 0, {"o0": ["t0-t1", "t0-x0"], "o1": ["t2-x0"], "x0": ["o0-o1"]})
    assert hops(fabric, lit, "h0", "h2") == ["h0:0", "t0:3", "o0:3", "t1:1"]
    assert hops(fabric, lit, "h0", "h4") == ["h0:0", "t0:4", "o0:5", "x0:5", "o1:1", "t2:1"]
    assert hops(fabric, lit, "h0", "h8") == ["h0:0", "t0:5", "c0:5", "t4:1"]
    assert check(fabric, lit, routes(fabric, lit)) == []


def test_routes_avoid_the_thin_network_up_to_seven_hops_of_circuits() -> None:
    """Eight ToRs in a row of circuits: seven hops cost less than two electrical ones, which count four each."""
    fabric = rfabric(training_pods=1, generation_pods=1, tors_per_pod=5)
    row = {"o0": ["t0-t1", "t1-t2", "t2-t3", "t3-t4", "t4-x0"], "o1": ["t5-x0", "t5-t6", "t6-t7", "t7-t8", "t8-t9"]}
    lit = epoch(fabric, 0, {**row, "x0": ["o0-o1"]})
    assert not any(hop.startswith("c0") for hop in hops(fabric, lit, "h0", "h14"))  # t0 to t7
    far = hops(fabric, lit, "h0", "h18")  # t0 to t9: nine hops
    assert [hop for hop in far if hop.startswith("c0")] == ["c0:10"]
    assert check(fabric, lit, routes(fabric, lit)) == []


def test_2048_nics_take_four_planes_of_polatis_switches() -> None:
    """64 ToRs of 32 uplinks: 2048 core ports, at most 576 a switch, and a divisor of 32 planes: 4 of 512."""
    fabric = rfabric(training_pods=4, generation_pods=4, tors_per_pod=8, hosts_per_tor=4, nics=8)
    assert len(fabric.all_nics) == 2048
    assert fabric.parameters["planes"] == 4
    assert {len(fabric.ports(ocs.name)) for ocs in fabric.ocses if ocs.tier == 3} == {512}
    assert {len(fabric.ports(ocs.name)) for ocs in fabric.ocses if ocs.tier == 2} == {128}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.booleans())
def test_invariants(training: int, generation: int, tors: int, hosts: int, r: int, electrical: bool) -> None:
    fabric = rfabric(
        training_pods=training,
        generation_pods=generation,
        tors_per_pod=tors,
        hosts_per_tor=hosts * r,
        oversubscription=r,
        electrical=electrical,
        ocs_radix=12 * tors,
        rate=11,
        electrical_rate=5,
    )
    built = (training + generation) * tors
    uplinks = built * hosts
    assert len(fabric.all_nics) == uplinks * r
    aggregation = [len(fabric.ports(ocs.name)) for ocs in fabric.ocses if ocs.tier == 2]
    core = [len(fabric.ports(ocs.name)) for ocs in fabric.ocses if ocs.tier == 3]
    assert (sum(aggregation), sum(core)) == (2 * uplinks, uplinks)
    assert max(*aggregation, *core) <= 12 * tors
    assert nic_rates(fabric) == {11}
    rates = tier_rates(fabric)
    assert rates.pop((Kind.TOR, Kind.EPS), {5}) == {5}
    assert {rate for some in rates.values() for rate in some} == {11}
    tables = routes(fabric, Epoch())
    assert check(fabric, Epoch(), tables) == []
    assert electrical == (not list(isolated_pairs(fabric, Epoch())))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"training_pods": 0}, "training_pods must be at least 1"),
        ({"generation_pods": -1}, "generation_pods must be at least 0"),
        ({"training_pods": 1, "generation_pods": 0}, "must be 2 together"),
        ({"planes": 3}, "planes 3 does not divide the 2 uplinks"),
        ({"planes": 0}, "planes must be at least 1"),
        ({"ocs_radix": 7}, "ocs_radix 7 is too small: 8 ToRs of 2 uplinks in 2 planes need circuit switches of 8"),
        ({"oversubscription": 3}, "takes 0.666667 uplinks"),
        ({"nics": 0}, "nics must be 1 to 8"),
        ({"electrical_rate": 0}, "rate must be positive"),
    ],
)
def test_impossible_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(FabricError, match=words):
        rfabric(**parameters)
