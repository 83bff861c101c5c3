"""What of a phase is communication, what hides it, what crosses between pods, and how long circuits were dark."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.crossing import between_pods, circuit_ports, core_ports
from emu.intervals import Interval, common, length, union, without
from emu.overlap import communication, dark_seconds
from emu.records import ComputationRecord, FlowRecord, PhaseRecord, Trace
from topologies.fat_tree import fat_tree
from topologies.hybrid import hybrid

_INTERVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8)


def flow(start: float, end: float, src: str = "h0", dst: str = "h1", how: str = "packets") -> FlowRecord:
    return FlowRecord(f"{src}-{dst}-{start}", "", "p", src, dst, 1000, start, start, end, how=how)


def computing(start: float, end: float, *hosts: str) -> ComputationRecord:
    return ComputationRecord(f"c{start}", "q", hosts, start, end)


def measured(flows: list[FlowRecord], computations: list[ComputationRecord]) -> tuple[float, float, float]:
    """Total, exposed and hidden seconds."""
    found = communication(Trace(flows, computations=computations))["p"]
    return found.total, found.exposed, found.hidden


# -- intervals --------------------------------------------------------------------------------------------------------


@given(_INTERVALS, _INTERVALS)
def test_intervals_are_sets_of_instants(these: list[Interval], those: list[Interval]) -> None:
    def instants(intervals: list[Interval]) -> set[float]:
        return {at + 0.5 for start, end in intervals for at in range(int(start), int(end))}

    left, right = union(these), union(those)
    assert instants(left) == instants(these)
    assert instants(without(left, right)) == instants(these) - instants(those)
    assert instants(common(left, right)) == instants(these) & instants(those)
    assert length(left) == len(instants(these))
    assert all(one[1] < other[0] for one, other in pairwise(left)), "disjoint, and in order"


# -- communication ----------------------------------------------------------------------------------------------------


def test_a_phase_communicates_while_any_of_its_transfers_is_under_way() -> None:
    assert measured([flow(0, 2), flow(1, 3, "h2", "h3"), flow(5, 6)], []) == (4, 4, 0)


def test_a_transfer_is_hidden_while_one_of_its_hosts_computes() -> None:
    assert measured([flow(0, 4)], [computing(1, 2, "h0"), computing(1.5, 3, "h1", "h7")]) == (4, 2, 2)


def test_what_other_hosts_compute_hides_nothing() -> None:
    assert measured([flow(0, 4)], [computing(0, 4, "h2", "h10")]) == (4, 4, 0)


def test_what_no_host_is_named_for_keeps_all_of_them_busy() -> None:
    assert measured([flow(0, 4)], [computing(1, 9)]) == (4, 1, 3)


def test_one_exposed_transfer_exposes_the_phase() -> None:
    both = [flow(0, 4), flow(1, 2, "h2", "h3")]
    assert measured(both, [computing(0, 4, "h0")]) == (4, 1, 3)


def test_endpoints_with_a_nic_are_their_hosts() -> None:
    assert measured([flow(0, 2, "h1.0", "h2.1")], [computing(0, 2, "h1")]) == (2, 0, 2)


def test_what_stays_in_a_host_is_no_communication() -> None:
    assert communication(Trace([flow(0, 2, "h0", "h0", how="local")])) == {}


# -- dark time and pods -----------------------------------------------------------------------------------------------


def test_only_dark_time_inside_the_phase_counts_and_none_twice() -> None:
    phase = PhaseRecord("p", 1.0, 2.0)
    assert dark_seconds(phase, [(0.5, 1.25), (1.75, 1.875), (1.8125, 3.0), (4.0, 5.0)]) == pytest.approx(0.5)
    assert dark_seconds(phase, []) == 0


def test_the_ports_between_pods_are_those_of_circuits_and_those_towards_the_core() -> None:
    optical = hybrid(pods=3, hosts_per_pod=2, uplinks=2, electrical_rate=100_000_000_000)
    assert [port.node for port in circuit_ports(optical)] == ["o0"] * 6
    assert [optical.peer(port).node for port in core_ports(optical)] == ["c0"] * 3
    tree = fat_tree(k=4)
    assert circuit_ports(tree) == ()
    assert len(core_ports(tree)) == 16, "two up from each of eight aggregation switches"
    assert all(tree.node(tree.peer(port).node).tier == 3 for port in core_ports(tree))


def test_bytes_between_pods_are_those_of_packets_whose_ends_are_in_two() -> None:
    rows = [flow(0, 1, "h0", "h3"), flow(0, 1, "h0", "h4"), flow(0, 1, "h15", "h0", how="charged"), flow(0, 1)]
    assert between_pods(fat_tree(k=4), rows) == 1000
