"""Collectives carried out whole: equal to their lowered form, alone and amid other traffic, whatever circuits do."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.circuits import epoch
from controllers.epochs import EpochChange
from emu.model.conditions import Conditions
from emu.model.engine import Outcome, simulate
from tests.unit.model.fluid_pieces import GB, RATE, Script, cluster_of, on_circuits, star, transfer, two_tier
from topologies.fabric import Fabric
from topologies.fat_tree import fat_tree
from topologies.hybrid import hybrid
from workloads.collectives import lowerings
from workloads.protocol import (
    Action,
    Cancel,
    Cancelled,
    Collective,
    Done,
    Event,
    Failed,
    Run,
    SetTimer,
    Start,
    Task,
    Timer,
)

ALGORITHMS = [(kind, algorithm) for kind, found in lowerings().items() for algorithm in found if kind != "exchange"]
FABRICS = [
    fat_tree(k=4, rate=RATE),
    fat_tree(k=4, hosts=10, oversubscription=2, rate=RATE),
    fat_tree(hosts=4, nics=4, rate=RATE, delay=1e-4),
    hybrid(pods=3, hosts_per_pod=3, uplinks=2, rate=RATE, electrical_rate=RATE // 4),
]


class Later(Script):
    """Runs each task at its time."""

    def __init__(self, tasks: list[tuple[float, Task]]) -> None:
        super().__init__(react=self._run)
        self._at = tasks

    def _run(self, event: Event, now: float) -> list[Action]:
        match event:
            case Start():
                return [SetTimer(str(number), at) for number, (at, _) in enumerate(self._at)]
            case Timer(name):
                return [Run(self._at[int(name)][1])]
        return []


def both(fabric: Fabric, tasks: list[tuple[float, Task]], conditions: Conditions) -> tuple[Outcome, Outcome]:
    lowered, whole = (
        simulate(fabric, Later(tasks), cluster_of(fabric), conditions, whole=whole) for whole in (False, True)
    )
    return lowered, whole


def spans(outcome: Outcome) -> dict[str, tuple[float, float]]:
    return {row.id: (row.start, row.end) for row in outcome.trace.collectives}


def assert_equal(lowered: Outcome, whole: Outcome) -> None:
    assert set(spans(whole)) == set(spans(lowered))
    for name, (start, end) in spans(lowered).items():
        assert spans(whole)[name] == pytest.approx((start, end), rel=1e-6, abs=1e-12)
    assert {port: whole.carried[port] for port in lowered.carried} == pytest.approx(lowered.carried, abs=4, rel=1e-6)
    assert whole.trace.end == pytest.approx(lowered.trace.end, rel=1e-6)


@st.composite
def collectives(draw: st.DrawFn, number: int, ranks: int) -> Collective:
    kind, algorithm = draw(st.sampled_from(ALGORITHMS))
    group = draw(st.lists(st.integers(0, ranks - 1), min_size=2, max_size=min(ranks, 9), unique=True))
    size = draw(st.sampled_from([3, 7 * GB // 1000, len(group) * GB // 8]))
    chunks = draw(st.sampled_from([1, 3])) if algorithm in ("tree", "chain", "two-level") else 1
    return Collective(f"c{number}", kind, algorithm, tuple(group), size, chunks=chunks)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Fabric, list[tuple[float, Task]], Conditions]:
    """A fabric, up to three collectives that may overlap, and single transfers between."""
    fabric = draw(st.sampled_from(FABRICS))
    cluster = cluster_of(fabric)
    times = st.sampled_from([0.0, 0.05, 0.1, 0.4])
    tasks: list[tuple[float, Task]] = []
    for number in range(draw(st.integers(1, 3))):
        tasks.append((draw(times), draw(collectives(number, cluster.ranks))))
    for number in range(draw(st.integers(0, 2))):
        src, dst = draw(st.permutations(range(len(cluster.hosts))))[:2]
        tasks.append((draw(times), transfer(f"t{number}", src, dst, GB // 10)))
    conditions = {"alpha": draw(st.sampled_from([0.0, 1e-3])), "delays": draw(st.booleans())}
    if fabric.ocses:
        changes = (EpochChange(0.08, epoch(fabric, 1, {"o0": ["t0-t2", "t1-t2"]}), 0.02),)
        conditions |= {"initial": epoch(fabric, 0, {"o0": ["t0-t1", "t0-t1"]}), "changes": changes}
    return fabric, tasks, Conditions(**conditions)


@settings(max_examples=25, deadline=None)
@given(situations())
def test_whole_is_lowered(situation: tuple[Fabric, list[tuple[float, Task]], Conditions]) -> None:
    assert_equal(*both(*situation))


@settings(max_examples=10, deadline=None)
@given(situations())
def test_the_same_run_twice_is_the_same(situation: tuple[Fabric, list[tuple[float, Task]], Conditions]) -> None:
    fabric, tasks, conditions = situation
    first, second = (simulate(fabric, Later(tasks), cluster_of(fabric), conditions, whole=True) for _ in range(2))
    assert first.trace == second.trace
    assert first.carried == second.carried


def ring(name: str = "c", size: int = 8 * GB, ranks: tuple[int, ...] = tuple(range(8))) -> Collective:
    return Collective(name, "all-reduce", "ring", ranks, size)


def test_an_undisturbed_ring_is_not_simulated() -> None:
    _, whole = both(star(8), [(0.0, ring())], Conditions())
    assert spans(whole)["c"] == pytest.approx((0.0, 14.0))
    assert whole.effort.messages == whole.effort.whole == 2 * 7 * 8
    assert whole.effort.rates == 0


def test_a_collective_is_woken_by_traffic_that_takes_bandwidth_from_it() -> None:
    # For the two seconds of the transfer, h0's NIC serves both: the ring loses one of them.
    lowered, whole = both(star(9), [(0.0, ring()), (3.5, transfer("t", 0, 8))], Conditions())
    assert_equal(lowered, whole)
    assert spans(whole)["c"][1] > 14.5
    assert whole.effort.whole == 0


def test_traffic_elsewhere_does_not_wake_it() -> None:
    _, whole = both(star(10), [(0.0, ring()), (3.5, transfer("t", 8, 9))], Conditions())
    assert spans(whole)["c"] == pytest.approx((0.0, 14.0))
    assert whole.effort.whole == 2 * 7 * 8


def test_a_link_that_nobody_can_fill_does_not_wake_it() -> None:
    # Both rings cross the uplinks, which carry two NICs' rates.
    rings = [(0.0, ring("a", 4 * GB, (0, 2))), (0.1, ring("b", 4 * GB, (1, 3)))]
    _, whole = both(two_tier(2, uplink_rate=2 * RATE), rings, Conditions())
    assert spans(whole)["a"] == pytest.approx((0.0, 4.0))
    assert spans(whole)["b"] == pytest.approx((0.1, 4.1))
    assert whole.effort.rates == 0
    assert_equal(*both(two_tier(2), rings, Conditions()))


def test_repeated_collectives_are_computed_once() -> None:
    # Rings in an order that makes their messages meet at the uplinks.
    order = (0, 3, 1, 4, 2, 5)
    tasks: list[tuple[float, Task]] = [(100.0 * number, ring(f"c{number}", 6 * GB, order)) for number in range(4)]
    lowered, whole = both(two_tier(3), tasks, Conditions())
    assert_equal(lowered, whole)
    assert whole.effort.whole == whole.effort.messages == 4 * 2 * 5 * 6
    assert whole.effort.rates == 0


@pytest.mark.parametrize("at", [0.5, 3.25, 13.999])
def test_a_cancelled_collective_has_moved_the_same_bytes(at: float) -> None:
    def progress(whole: bool) -> float:
        def react(event: Event, now: float) -> list[Action]:
            if isinstance(event, Start):
                return [SetTimer("stop", at)]
            return [Cancel("c")] if isinstance(event, Timer) else []

        script = Script(ring(), react=react)
        simulate(star(8), script, cluster_of(star(8)), whole=whole)
        ((when, cancelled),) = script.of(Cancelled)
        assert when == at
        return cancelled.progress

    assert progress(True) == pytest.approx(progress(False), abs=8)
    assert progress(True) == pytest.approx(8 * at * GB, rel=1e-6)


def test_a_collective_without_paths_fails() -> None:
    fabric = on_circuits(3)
    initial = epoch(fabric, 0, {"o0": ["1-2"]})
    script = Script(ring("c", GB, (0, 1, 2)), transfer("t", 0, 1))
    outcome = simulate(fabric, script, cluster_of(fabric), Conditions(initial), whole=True)
    ((_, failed),) = script.of(Failed)
    assert isinstance(failed, Failed)
    assert failed.task.id == "c"
    assert "no path from h1:0 to h2:0 in epoch 0" in failed.reason
    assert [event.task.id for _, event in script.of(Done)] == ["t"]
    assert outcome.trace.collectives == []


def test_rows_are_by_hosts() -> None:
    fabric = fat_tree(hosts=2, nics=2, rate=RATE)
    _, whole = both(fabric, [(0.0, ring("c", 4 * GB, (0, 1, 2, 3)))], Conditions())
    rows = {(row.src, row.dst): (row.bytes, row.how) for row in whole.trace.flows}
    # Each rank sends six quarters of 4 GB; two of four neighbours are in the same host.
    assert rows == {
        ("h0", "h0"): (6 * GB, "local"),
        ("h0", "h1"): (6 * GB, "packets"),
        ("h1", "h0"): (6 * GB, "packets"),
        ("h1", "h1"): (6 * GB, "local"),
    }
