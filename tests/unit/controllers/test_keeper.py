"""The keeper: epochs numbered, changes held, drained, superseded and passed over, every decision remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.epochs import Epoch, EpochChange, Matchings, duplex
from controllers.keeper import Keeper, PolicyError
from controllers.loads import Load
from controllers.policies.protocol import CircuitPolicy, EpochResult, Keep, Phase, Plan, PolicyEvent, Tick, View
from controllers.policies.scheduled import Rotation, Scheduled
from controllers.policies.static import Static
from controllers.policies.templates import Templates
from topologies.fabric import Fabric, Port
from topologies.hybrid import hybrid
from workloads.protocol import EpochAborted, EpochCommitted, EpochKept, Event

GB = 10**9
FABRIC: Fabric = hybrid(hosts_per_pod=1, uplinks=1, rate=8 * GB)  # ToR i is at OCS port i + 1
TWO, CROSSED, LAST = ({"o0": duplex(pairs)} for pairs in ([(1, 2), (3, 4)], [(1, 3), (2, 4)], [(1, 4), (2, 3)]))
DARK = 0.01
Answer = Callable[[PolicyEvent, View, float], Plan | Keep]


@dataclass
class Scripted:
    """A policy that a test answers for; remembers what it was asked."""

    answer: Answer
    name: str = "scripted"
    asked: list[tuple[PolicyEvent, View, float]] = field(default_factory=list)

    def on(self, event: PolicyEvent, view: View, now: float) -> Plan | Keep:
        """Remember the question."""
        self.asked.append((event, view, now))
        return self.answer(event, view, now)

    def known(self) -> tuple[Matchings, ...]:
        """Nothing."""
        return ()


def at_phases(plan: Plan) -> Scripted:
    return Scripted(lambda event, _view, _now: plan if isinstance(event, Phase) else Keep("no phase"))


def keeper(policy: CircuitPolicy, **more: object) -> Keeper:
    return Keeper(FABRIC, policy, Epoch(0, TWO), DARK, **more)  # type: ignore[arg-type]


def told(of: Keeper) -> list[Event]:
    return [event for event, _ in of.take_events()]


def changes(*instants: float) -> tuple[EpochChange, ...]:
    return tuple(EpochChange(at, Epoch(9, CROSSED if n % 2 else LAST), DARK) for n, at in enumerate(instants))


# -- announcements ----------------------------------------------------------------------------------------------------


def test_without_a_change_every_announcement_is_kept() -> None:
    kept = keeper(Static())
    kept.start()
    kept.announce("training", {}, 0.5, 3.0)
    assert kept.take_events() == [(EpochKept(0, "circuits are static"), 3.0)]
    (decision,) = kept.decisions
    assert (decision.at, decision.event, decision.slack, decision.outcome) == (3.0, "phase training", 0.5, "keep")
    assert kept.next_at is None
    assert kept.due(9.0) is None


def test_a_plan_for_now_is_due_now_and_dark_after_the_lead() -> None:
    kept = keeper(at_phases(Plan(CROSSED, reason="why not")), lead=0.25, ahead=1.0)
    kept.announce("sync", {}, 2.0, 5.0)
    assert kept.next_at == 5.0
    assert kept.due(5.0) == EpochChange(5.25, Epoch(1, CROSSED), DARK)
    assert kept.busy
    assert kept.next_at is None
    kept.committed(5.5)
    assert kept.epoch == Epoch(1, CROSSED)
    assert kept.take_events() == [(EpochCommitted(1), 5.5)]
    assert [(d.outcome, d.epoch) for d in kept.decisions] == [("plan", 1), ("commit", 1)]
    assert kept.changes == [EpochChange(5.25, Epoch(1, CROSSED), DARK)]


def test_a_policy_sees_demand_ports_and_what_is_in_flight() -> None:
    policy = at_phases(Plan(CROSSED))
    kept = keeper(policy, lead=0.5, loads=lambda: [Load(Port("h0", 0), Port("h1", 0), 7)])
    kept.announce("sync", {("h0", "h2"): 5}, 2.0, 5.0)
    _, view, now = policy.asked[-1]
    assert (now, view.epoch.number, view.reconfiguration, view.lead) == (5.0, 0, DARK, 0.5)
    assert view.site_demand == {("t0", "t2"): 5}
    assert view.free_ports == {"o0": frozenset({1, 2, 3, 4})}
    assert {(at.ocs, tuple(at.circuit)): count for at, count in view.in_flight.items()} == {("o0", (1, 2)): 7}


def test_a_second_plan_replaces_one_that_is_not_begun() -> None:
    plans = iter([Plan(CROSSED, at=9.0), Plan(LAST, at=8.0)])
    kept = keeper(Scripted(lambda *_: next(plans)))
    kept.announce("a", {}, 0.0, 1.0)
    kept.announce("b", {}, 0.0, 2.0)
    assert told(kept) == [EpochAborted(1, "epoch 2 was planned instead")]
    change = kept.due(8.0)
    assert change is not None
    assert change.epoch == Epoch(2, LAST)


def test_questions_wait_while_a_change_is_under_way_and_slack_runs_out_meanwhile() -> None:
    policy = at_phases(Plan(CROSSED))
    kept = keeper(policy)
    kept.announce("a", {}, 0.0, 1.0)
    assert kept.due(1.0) is not None
    kept.announce("b", {}, 0.5, 1.0)
    kept.announce("c", {}, 0.125, 1.0)
    assert len(policy.asked) == 1
    kept.committed(1.25)
    assert [(event, now) for event, _, now in policy.asked[1:]] == [
        (EpochResult("committed", 1), 1.25),
        (Phase("b", {}, 0.25), 1.25),
        (Phase("c", {}, 0.0), 1.25),
    ]


def test_impossible_plans_name_the_policy_and_the_port() -> None:
    twice = {"o0": duplex([(1, 2)]) | duplex([(1, 3)])}
    with pytest.raises(PolicyError, match="policy scripted: o0: port 1 is the entry of more than one circuit"):
        keeper(at_phases(Plan(twice))).announce("a", {}, 0.0, 0.0)


def test_ports_that_failed_are_taken_from_the_view_and_refused() -> None:
    policy = at_phases(Plan(CROSSED))
    kept = keeper(policy)
    kept.port_failed("o0", 3, 1.0)
    assert policy.asked[-1][1].free_ports == {"o0": frozenset({1, 2, 4})}
    with pytest.raises(PolicyError, match="o0: port 3 has failed"):
        kept.announce("a", {}, 0.0, 2.0)


def test_a_policy_is_asked_again_when_it_wished() -> None:
    answers = iter([Keep("later", again=2.0), Plan(CROSSED, at=2.5)])
    policy = Scripted(lambda *_: next(answers))
    kept = keeper(policy)
    kept.start()
    assert kept.next_at == 2.0
    assert kept.due(2.0) is None
    assert policy.asked[-1][0] == Tick()
    assert kept.next_at == 2.5


# -- schedules --------------------------------------------------------------------------------------------------------


def test_a_schedule_is_handed_out_ahead_of_its_instants() -> None:
    kept = keeper(Scheduled(changes(1.0, 2.0)), ahead=0.25)
    kept.start()
    assert kept.next_at == 0.75
    assert kept.due(0.7) is None
    assert kept.due(0.8) == EpochChange(1.0, Epoch(1, LAST), DARK)
    kept.committed(1.02)
    assert kept.next_at == 1.75
    assert kept.due(1.75) == EpochChange(2.0, Epoch(2, CROSSED), DARK)
    kept.committed(2.02)
    assert kept.next_at is None


def test_a_change_that_was_given_up_leaves_the_old_epoch() -> None:
    kept = keeper(Scheduled(changes(1.0, 2.0)))
    kept.start()
    assert kept.due(1.0) is not None
    kept.aborted("switch 3: gone", 1.1)
    assert kept.epoch == Epoch(0, TWO)
    assert told(kept) == [EpochAborted(1, "switch 3: gone")]
    assert kept.next_at == 2.0


def test_an_abort_that_came_too_late_leaves_the_new_epoch() -> None:
    kept = keeper(Scheduled(changes(1.0)))
    kept.start()
    assert kept.due(1.0) is not None
    kept.aborted("a barrier was late", 1.1, holds=True)
    assert kept.epoch == Epoch(1, LAST)


def test_only_a_change_that_was_begun_can_end() -> None:
    with pytest.raises(RuntimeError, match="not begun"):
        keeper(Static()).committed(1.0)


# -- draining ---------------------------------------------------------------------------------------------------------


def gated(left: list[int], deadline: float, at: float | None = None) -> Keeper:
    """A change that waits for `left` bytes from h0 to h1."""
    loads = lambda: [Load(Port("h0", 0), Port("h1", 0), left[0])]  # noqa: E731
    kept = keeper(at_phases(Plan(CROSSED, at=at, deadline=deadline)), loads=loads)
    kept.announce("sync", {}, 9.0, 1.0)
    return kept


def test_a_change_with_a_deadline_waits_until_its_circuits_are_drained() -> None:
    left = [GB // 10]  # 0.1 s at 8 Gb/s
    kept = gated(left, deadline=2.0)
    assert kept.due(1.0) is None
    assert kept.next_at == pytest.approx(1.1)
    left[0] = 0
    change = kept.due(1.1)
    assert change is not None
    assert change.at == 1.1


def test_it_is_looked_at_again_and_given_up_at_its_deadline() -> None:
    left = [GB // 10]
    kept = gated(left, deadline=1.15)
    assert kept.due(1.0) is None
    assert kept.due(1.1) is None
    assert kept.next_at == 1.15
    assert kept.due(1.15) is None
    (aborted,) = told(kept)
    assert isinstance(aborted, EpochAborted)
    assert "still needed for 0.1 s" in aborted.reason
    assert kept.next_at is None
    assert kept.epoch == Epoch(0, TWO)
    assert kept.policy.asked[-1][0] == EpochResult("kept", 1, aborted.reason)  # type: ignore[attr-defined]


def test_bytes_on_circuits_that_stay_do_not_hold_it_up() -> None:
    loads = [Load(Port("h2", 0), Port("h3", 0), GB)]
    kept = keeper(at_phases(Plan({"o0": duplex([(3, 4)])}, deadline=2.0)), loads=lambda: loads)
    kept.announce("sync", {}, 9.0, 1.0)
    assert kept.due(1.0) is not None


def test_a_policy_that_insists_does_not_stop_time() -> None:
    stubborn = Scripted(lambda _event, _view, now: Plan(CROSSED, deadline=now))
    kept = keeper(stubborn, loads=lambda: [Load(Port("h0", 0), Port("h1", 0), GB)])
    kept.announce("sync", {}, 0.0, 1.0)
    for _ in range(20):
        assert kept.next_at is not None
        assert kept.due(kept.next_at) is None
    assert kept.next_at is not None
    assert kept.next_at > 1.01


# -- nothing in flight ------------------------------------------------------------------------------------------------


def test_of_changes_that_nobody_sees_only_the_last_is_carried_out() -> None:
    kept = keeper(Rotation(0.1, 0.0, (LAST, CROSSED, TWO)))
    kept.start()
    change = kept.pass_over(0.0, 1.05)  # turns 0 to 10 begin by then; turn 10 is over at 1.01
    assert change == EpochChange(0.0, Epoch(11, CROSSED), 0.0)
    assert kept.changes == [change]
    kept.committed(0.001)
    assert told(kept) == [EpochCommitted(11)]
    assert kept.next_at == pytest.approx(1.1)
    following = kept.due(1.1)
    assert following is not None
    assert following.epoch == Epoch(12, TWO)
    assert [(d.outcome, d.epoch) for d in kept.decisions] == [
        ("plan", 1),
        ("skip", 11),
        ("commit", 11),
        ("plan", 12),
    ]


def test_one_change_alone_is_carried_out_at_its_time() -> None:
    kept = keeper(Scheduled(changes(1.0, 9.0)))
    kept.start()
    assert kept.pass_over(0.0, 5.0) is None
    assert kept.next_at == 1.0


def test_a_change_that_is_still_dark_at_the_end_is_not_passed_over() -> None:
    kept = keeper(Scheduled(changes(1.0, 2.0, 3.0)))
    kept.start()
    change = kept.pass_over(0.0, 3.005)
    assert change is not None
    assert change.epoch.number == 2
    kept.committed(0.01)
    assert kept.next_at == 3.0


def test_what_waits_for_its_circuits_is_never_passed_over() -> None:
    kept = gated([0], deadline=9.0, at=5.0)
    assert kept.pass_over(1.0, 8.0) is None


# -- properties -------------------------------------------------------------------------------------------------------


@st.composite
def policies(draw: st.DrawFn) -> CircuitPolicy:
    match draw(st.sampled_from(["static", "scheduled", "rotation", "templates"])):
        case "static":
            return Static()
        case "scheduled":
            gaps = draw(st.lists(st.floats(0.02, 2), max_size=6))
            return Scheduled(changes(*(sum(gaps[: n + 1]) for n in range(len(gaps)))))
        case "rotation":
            return Rotation(draw(st.floats(0.05, 1)), draw(st.floats(0, 1)), (LAST, CROSSED, TWO))
        case _:
            return Templates(FABRIC, {"a": "mesh", "b": CROSSED, "c": "two-level-tree"}, draw(st.floats(0, 0.01)))


Steps = Sequence[tuple[str, float, float]]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "d", "due", "due", "commit", "abort", "pass"]),
        st.floats(0, 0.5),
        st.floats(0, 1),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(policies(), STEPS, st.lists(st.integers(0, GB // 10), min_size=1, max_size=5))
def test_whatever_happens_epochs_go_up_and_everything_is_answered(
    policy: CircuitPolicy, steps: Steps, flying: list[int]
) -> None:
    now, asked = 0.0, 0
    loads = [Load(Port(f"h{n % 4}", 0), Port(f"h{(n + 1) % 4}", 0), count) for n, count in enumerate(flying)]
    kept = keeper(policy, ahead=0.01, lead=0.002, loads=lambda: loads)
    kept.start()
    handed: list[EpochChange] = []
    for what, gap, slack in steps:
        now += gap
        match what:
            case "due" if (change := kept.due(now)) is not None:
                handed.append(change)
            case "pass" if (change := kept.pass_over(now, now + slack)) is not None:
                handed.append(change)
            case "commit" if kept.busy:
                kept.committed(now)
                assert kept.epoch == handed[-1].epoch
            case "abort" if kept.busy:
                kept.aborted("told to", now)
            case "a" | "b" | "c" | "d":
                kept.announce(what, {("h0", "h1"): 5, ("h1", "h2"): 3}, slack, now)
                asked += 1
    while kept.busy:
        kept.committed(now)
    assert kept.changes == handed
    numbers = [change.epoch.number for change in handed]
    assert all(before < after for before, after in pairwise(numbers))
    times = [decision.at for decision in kept.decisions]
    assert all(before <= after for before, after in pairwise(times))
    answers = [d for d in kept.decisions if d.event.startswith("phase") and d.outcome in ("plan", "keep")]
    assert len(answers) == asked
    over = [event.epoch for event in told(kept) if isinstance(event, EpochCommitted | EpochAborted)]
    assert set(numbers) <= set(over)
    assert len(over) == len(set(over))
