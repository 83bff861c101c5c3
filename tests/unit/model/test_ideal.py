"""Ideals: what a collective, a flow and a link should show."""

from itertools import pairwise
from time import perf_counter

import pytest

from controllers.epochs import Epoch, EpochChange, duplex
from emu.model.conditions import Conditions
from emu.model.ideal import Prediction, ideal
from tests.unit.model.fluid_pieces import GB, Script, cluster_of, on_circuits, star, transfer, two_tier
from topologies.fabric import Fabric, Port
from topologies.fat_tree import fat_tree
from workloads.protocol import Collective, Computation, Endpoint, Task, Transfer


def predict(fabric: Fabric, *tasks: Task, conditions: Conditions | None = None) -> Prediction:
    return ideal(fabric, Script(*tasks), cluster_of(fabric), conditions)


def ring(name: str, ranks: int, size: int, phase: str = "") -> Collective:
    return Collective(name, "all-reduce", "ring", tuple(range(ranks)), size, phase=phase)


def test_a_collectives_ideal_contains_the_contention_of_its_workload() -> None:
    shared = predict(two_tier(2), transfer("other", 0, 2, 8 * GB), ring("c", 4, 4 * GB))
    # Ring 0-1-2-3: six steps of 1 GB; 1->2 shares the uplink with the other transfer in each of them.
    assert shared.cct["c"] == pytest.approx(12.0)
    assert predict(two_tier(2), ring("c", 4, 4 * GB)).cct["c"] == pytest.approx(6.0)


def test_a_flows_ideal_is_the_flow_alone() -> None:
    prediction = predict(star(3), transfer("a", 0, 2), transfer("b", 1, 2, 3 * GB))
    assert prediction.fct == pytest.approx({"a": 1.0, "b": 3.0})
    slowdowns = {row.id: row.fct / prediction.fct[row.id] for row in prediction.trace.flows}
    assert slowdowns == pytest.approx({"a": 2.0, "b": 4 / 3})


def test_a_flows_ideal_knows_its_narrowest_link_and_the_efficiency() -> None:
    prediction = predict(two_tier(2, uplink_rate=2 * GB), transfer("a", 0, 2), conditions=Conditions(efficiency=0.8))
    assert prediction.fct["a"] == pytest.approx(1 / 0.25 / 0.8)


def test_a_striped_flows_ideal_counts_the_links_that_its_stripes_share() -> None:
    striped = Transfer("a", Endpoint("h0"), Endpoint("h1"), 2 * GB)
    assert predict(star(2, nics=[2, 2]), striped).fct["a"] == pytest.approx(1.0)
    assert predict(star(2, nics=[2, 1]), striped).fct["a"] == pytest.approx(2.0)
    # Three stripes over NICs 0, 1, 0: the first sink has twice the bytes of the second.
    three = Transfer("a", Endpoint("h0"), Endpoint("h1"), 3 * GB)
    assert predict(star(2, nics=[3, 2]), three).fct["a"] == pytest.approx(2.0)


def test_a_flows_ideal_has_alpha_and_delay() -> None:
    conditions = Conditions(alpha=0.5, delays=True)
    assert predict(star(2, delay=0.125), transfer("a", 0, 1), conditions=conditions).fct["a"] == pytest.approx(1.75)


def test_a_flow_that_waited_in_the_dark_has_its_ideal_without_the_wait() -> None:
    lit = Epoch(1, {"o0": duplex([(1, 3)])})
    conditions = Conditions(Epoch(0, {"o0": duplex([(1, 2)])}), (EpochChange(0.5, lit, 0.25),))
    prediction = predict(on_circuits(3), transfer("a", 0, 2), conditions=conditions)
    assert prediction.trace.flows[0].fct == pytest.approx(1.75)
    assert prediction.fct["a"] == pytest.approx(1.0)


def test_local_transfers_and_failed_ones_have_no_ideal() -> None:
    local = Transfer("local", Endpoint("h0", 0), Endpoint("h0", 0), GB)
    prediction = predict(on_circuits(2), local, transfer("stuck", 0, 1))
    assert prediction.fct == {}
    assert [failure.task for failure in prediction.trace.failures] == ["stuck"]


def test_phases_span_all_that_carry_their_name() -> None:
    prediction = predict(
        star(4), ring("c", 4, 4 * GB, phase="train"), Computation("x", 7.5, phase="train"), transfer("t", 0, 1, 1)
    )
    assert prediction.phases == {"train": pytest.approx(7.5)}
    row = prediction.trace.phases["train"]
    assert (row.packet_bytes, row.local_bytes, row.charged_bytes) == (6 * 4 * GB, 0, 0)


def test_every_directed_link_is_listed_with_its_bytes() -> None:
    fabric = star(4)
    prediction = predict(fabric, ring("c", 4, 4 * GB))
    hosts = {Port(f"h{host}", 0): 6 * GB for host in range(4)}
    downlinks = {Port("t0", port): 6 * GB for port in range(1, 5)}
    assert prediction.link_bytes == {**hosts, **downlinks}
    lone = predict(fabric, transfer("a", 0, 1, 12345))
    assert {port: size for port, size in lone.link_bytes.items() if size} == {
        Port("h0", 0): 12345,
        Port("t0", 2): 12345,
    }


def test_bytes_enter_and_leave_every_switch_alike() -> None:
    fabric = fat_tree(k=4)
    group = (3, 14, 7, 0, 9, 12, 1, 6)
    prediction = predict(fabric, Collective("c", "all-to-all", "direct", group, 8 * GB))
    for switch in fabric.switches:
        ports = fabric.ports(switch.name)
        leaving = sum(prediction.link_bytes[port] for port in ports)
        entering = sum(prediction.link_bytes[fabric.peer(port)] for port in ports)
        assert leaving == pytest.approx(entering, abs=len(ports))
    assert sum(prediction.link_bytes[nic] for nic in fabric.all_nics) == 8 * 7 * GB


def test_a_fat_tree_is_not_the_bottleneck_of_a_ring_in_sequence() -> None:
    fabric = fat_tree(k=4)
    rate = fabric.links[0].rate
    prediction = predict(fabric, ring("c", 16, 16 * GB))
    assert prediction.cct["c"] == pytest.approx(2 * 15 * 8 * GB / rate, rel=1e-6)


def test_buckets_and_a_pipelined_broadcast_are_predicted_quickly() -> None:
    fabric = fat_tree(k=4)
    buckets = [ring(f"bucket{number}", 16, GB) for number in range(4)]
    chain = Collective("weights", "broadcast", "chain", tuple(range(16)), GB, chunks=64)
    before = perf_counter()
    prediction = predict(fabric, *buckets, chain)
    assert perf_counter() - before < 5.0  # a tenth of that on an idle machine: this sees an engine gone quadratic
    assert len(prediction.cct) == 5
    last = max(row.end for row in prediction.trace.collectives)
    assert last >= (4 * 2 * 15 / 16 + 1) * 8 * GB / fabric.links[0].rate


def test_more_bytes_never_end_earlier() -> None:
    ends = [predict(two_tier(2), ring("c", 4, size)).cct["c"] for size in (GB, 2 * GB, 3 * GB)]
    assert all(shorter < longer for shorter, longer in pairwise(ends))
