"""Circuits in the model: dark time, epochs, transfers that wait, and bytes that no reconfiguration loses."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.epochs import Epoch, EpochChange, duplex
from emu.model.conditions import Conditions
from emu.model.engine import Outcome, simulate
from emu.model.ideal import ideal
from tests.unit.model.fluid_pieces import GB, Script, cluster_of, on_circuits, transfer
from topologies.fabric import Port
from workloads.protocol import (
    Action,
    Cancel,
    Cancelled,
    Done,
    EpochCommitted,
    Event,
    Failed,
    Run,
    SetTimer,
    Start,
    Timer,
)


def epoch(number: int, *pairs: tuple[int, int]) -> Epoch:
    return Epoch(number, {"o0": duplex(pairs)})


def run(script: Script, tors: int, uplinks: int, initial: Epoch, *changes: EpochChange) -> Outcome:
    fabric = on_circuits(tors, uplinks)
    return simulate(fabric, script, cluster_of(fabric), Conditions(initial, changes))


# Four ToRs of two uplinks: t0 has the OCS ports 1 and 2, t1 3 and 4, t2 5 and 6, t3 7 and 8.
BEFORE = epoch(0, (1, 3), (5, 7))
MOVED = epoch(1, (2, 4), (5, 7))


def test_dark_time_pauses_what_crosses_it_and_nothing_else() -> None:
    script = Script(transfer("moved", 0, 1), transfer("kept", 2, 3))
    outcome = run(script, 4, 2, BEFORE, EpochChange(0.5, MOVED, 0.25))
    assert {row.id: row.end for row in outcome.trace.flows} == pytest.approx({"kept": 1.0, "moved": 1.25})
    assert script.of(EpochCommitted) == [(0.75, EpochCommitted(1))]


def test_links_carry_what_the_epochs_routes_gave_them() -> None:
    outcome = run(Script(transfer("a", 0, 1)), 4, 2, BEFORE, EpochChange(0.5, MOVED, 0.25))
    halves = [Port("o0", 3), Port("o0", 4), Port("t0", 2), Port("t0", 3)]
    assert [outcome.carried[port] for port in halves] == [GB // 2] * 4
    assert outcome.carried[Port("h0", 0)] == outcome.carried[Port("t1", 1)] == GB
    assert outcome.carried[Port("o0", 1)] == 0


def test_a_circuit_that_goes_takes_its_dark_time_from_the_asked_instant() -> None:
    # Nothing replaces t0-t1 in epoch 1; epoch 2 brings it back.
    gone, back = epoch(1, (5, 7)), epoch(2, (1, 3), (5, 7))
    outcome = run(
        Script(transfer("a", 0, 1)), 4, 2, BEFORE, EpochChange(0.25, gone, 0.5), EpochChange(2.0, back, 0.125)
    )
    assert outcome.trace.flows[0].end == pytest.approx(2.0 + 0.125 + 0.75)


def test_a_transfer_waits_for_the_epoch_that_gives_it_a_path() -> None:
    outcome = run(Script(transfer("a", 0, 2)), 3, 1, epoch(0, (1, 2)), EpochChange(0.5, epoch(1, (1, 3)), 0.25))
    row = outcome.trace.flows[0]
    assert (row.start, row.first_byte, row.end) == (0.0, pytest.approx(0.75), pytest.approx(1.75))


def test_a_transfer_started_in_the_dark_waits_too() -> None:
    def react(event: Event, now: float) -> list[Action]:
        if isinstance(event, Start):
            return [SetTimer("go", 0.625)]
        return [Run(transfer("a", 0, 1))] if isinstance(event, Timer) else []

    outcome = run(Script(react=react), 4, 2, BEFORE, EpochChange(0.5, MOVED, 0.25))
    row = outcome.trace.flows[0]
    assert (row.start, row.first_byte, row.end) == (0.625, pytest.approx(0.75), pytest.approx(1.75))


def test_without_a_reconfiguration_time_nothing_is_lost() -> None:
    outcome = run(Script(transfer("a", 0, 1)), 4, 2, BEFORE, EpochChange(0.5, MOVED, 0.0))
    assert outcome.trace.flows[0].end == pytest.approx(1.0)


def test_what_can_never_move_fails_with_pair_and_epoch() -> None:
    script = Script(transfer("stuck", 0, 2), transfer("fine", 0, 1, 2 * GB))
    outcome = run(script, 3, 1, epoch(0, (1, 2)), EpochChange(0.5, epoch(1, (1, 2)), 0.25))
    assert [row.id for row in outcome.trace.flows] == ["fine"]
    ((when, failed),) = script.of(Failed)
    assert isinstance(failed, Failed)
    assert when == pytest.approx(2.0)
    assert "h0:0 to h2:0 in epoch 1" in failed.reason
    assert outcome.trace.failures[0].task == "stuck"


def test_a_waiting_transfer_can_be_cancelled() -> None:
    def react(event: Event, now: float) -> list[Action]:
        if isinstance(event, Start):
            return [SetTimer("give up", 3.0)]
        return [Cancel("a")] if isinstance(event, Timer) else []

    script = Script(transfer("a", 0, 2), react=react)
    outcome = run(script, 3, 1, epoch(0, (1, 2)))
    assert [(now, event.progress) for now, event in script.of(Cancelled)] == [(3.0, 0.0)]
    assert outcome.trace.failures == []


def test_the_failure_of_one_lets_the_orchestrator_try_another() -> None:
    def react(event: Event, now: float) -> list[Action]:
        return [Run(transfer("other", 0, 1))] if isinstance(event, Failed) else []

    outcome = run(Script(transfer("stuck", 0, 2), react=react), 3, 1, epoch(0, (1, 2)))
    assert [(row.id, row.end) for row in outcome.trace.flows] == [("other", pytest.approx(1.0))]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([EpochChange(1.0, epoch(1), 0.5), EpochChange(1.25, epoch(2), 0.5)], "epoch 2 at 1.25 s begins before"),
        ([EpochChange(-1.0, epoch(1), 0.5)], "negative"),
    ],
)
def test_impossible_changes_are_refused(changes: list[EpochChange], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Conditions(BEFORE, tuple(changes))


@pytest.mark.parametrize("wrong", [{"efficiency": 0.0}, {"efficiency": 1.1}, {"alpha": -1.0}])
def test_impossible_conditions_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Conditions(**wrong)


# -- properties -------------------------------------------------------------------------------------------------------

MATCHINGS = [((1, 2), (3, 4)), ((1, 3), (2, 4)), ((1, 4), (2, 3)), ((1, 2),), ()]


@st.composite
def histories(draw: st.DrawFn) -> tuple[EpochChange, ...]:
    """Up to five changes of four ToRs' circuits that do not overlap; the last joins 1-2, 3-4."""
    gaps = draw(st.lists(st.tuples(st.floats(0, 2), st.floats(0, 0.5), st.sampled_from(MATCHINGS)), max_size=4))
    changes, now = [], 0.0
    for number, (gap, dark, pairs) in enumerate([*gaps, (0.5, 0.1, MATCHINGS[0])], start=1):
        changes.append(EpochChange(now + gap, epoch(number, *pairs), dark))
        now = changes[-1].at + dark
    return tuple(changes)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[list[tuple[int, int, int]], dict[int, float]]:
    """Transfers (source, destination, bytes), and when some of them are cancelled."""
    pair = st.permutations(range(4)).map(lambda order: (order[0], order[1]))
    flows = draw(st.lists(st.tuples(pair, st.integers(0, 2 * GB)), min_size=1, max_size=6))
    stops = draw(st.dictionaries(st.integers(0, len(flows) - 1), st.floats(0, 4), max_size=2))
    return [(src, dst, size) for (src, dst), size in flows], stops


def scripted(flows: list[tuple[int, int, int]], stops: dict[int, float]) -> Script:
    def react(event: Event, now: float) -> list[Action]:
        match event:
            case Start():
                return [SetTimer(f"f{number}", at) for number, at in stops.items()]
            case Timer(name):
                return [Cancel(name)]
        return []

    return Script(*(transfer(f"f{number}", *flow) for number, flow in enumerate(flows)), react=react)


@settings(max_examples=60, deadline=None)
@given(workloads(), histories())
def test_bytes_are_conserved(
    workload: tuple[list[tuple[int, int, int]], dict[int, float]], changes: tuple[EpochChange, ...]
) -> None:
    flows, stops = workload
    script = scripted(flows, stops)
    outcome = run(script, 4, 1, epoch(0, (1, 2), (3, 4)), *changes)
    over = [event for _, event in script.heard if isinstance(event, Done | Cancelled | Failed)]
    assert sorted(event.task.id for event in over) == sorted(f"f{number}" for number in range(len(flows)))
    moved = [0.0] * 4
    for event in over:
        source = int(event.task.src.host[1:])
        if isinstance(event, Done):
            moved[source] += event.task.bytes
        elif isinstance(event, Cancelled):
            assert 0 <= event.progress <= event.task.bytes
            moved[source] += event.progress
    failed = any(isinstance(event, Failed) for event in over)
    for tor in range(4):
        carried = outcome.carried[Port(f"h{tor}", 0)]
        # A failed transfer may have moved bytes that no event tells; a cancelled one may be cut inside a byte.
        assert moved[tor] - 4 <= carried
        assert failed or carried <= moved[tor] + 4
        assert outcome.carried[Port(f"t{tor}", 2)] == pytest.approx(carried, abs=4)
    into, out_of = (
        sum(outcome.carried[Port(node, port)] for node, port in ports)
        for ports in ([(f"t{tor}", 2) for tor in range(4)], [("o0", port) for port in range(1, 5)])
    )
    assert into == pytest.approx(out_of, abs=8)


@settings(max_examples=30, deadline=None)
@given(workloads(), histories())
def test_the_same_run_twice_is_the_same(
    workload: tuple[list[tuple[int, int, int]], dict[int, float]], changes: tuple[EpochChange, ...]
) -> None:
    fabric = on_circuits(4)
    conditions = Conditions(epoch(0, (1, 2), (3, 4)), changes, seed=3)
    first, second = (ideal(fabric, scripted(*workload), cluster_of(fabric), conditions) for _ in range(2))
    assert first == second


@settings(max_examples=30, deadline=None)
@given(workloads(), histories())
def test_time_never_goes_back(
    workload: tuple[list[tuple[int, int, int]], dict[int, float]], changes: tuple[EpochChange, ...]
) -> None:
    script = scripted(*workload)
    outcome = run(script, 4, 1, epoch(0, (1, 2), (3, 4)), *changes)
    assert all(before <= after for (before, _), (after, _) in pairwise(script.heard))
    assert all(row.start <= row.first_byte <= row.end for row in outcome.trace.flows)
