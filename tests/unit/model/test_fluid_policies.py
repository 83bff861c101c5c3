"""Policies in the model: what they decide on announcements and by the clock, and what that does to bytes."""

from __future__ import annotations

import pytest

from controllers.epochs import Epoch, duplex
from controllers.policies.protocol import CircuitPolicy
from controllers.policies.scheduled import Rotation
from controllers.policies.static import Static
from controllers.policies.templates import Templates
from emu.model.conditions import Conditions
from emu.model.engine import Outcome, simulate
from tests.unit.model.fluid_pieces import GB, Script, cluster_of, on_circuits, transfer
from workloads.protocol import (
    Action,
    Announce,
    EpochAborted,
    EpochCommitted,
    EpochKept,
    Event,
    Failed,
    Run,
    SetTimer,
    Start,
    Timer,
)

FABRIC = on_circuits(4)  # ToR i is at OCS port i + 1; one host each, one gigabyte a second
TWO, CROSSED = ({"o0": duplex(pairs)} for pairs in ([(1, 2), (3, 4)], [(1, 3), (2, 4)]))
DARK = 0.125


def run(script: Script, policy: CircuitPolicy, lead: float = 0.0) -> Outcome:
    conditions = Conditions(Epoch(0, TWO), policy=policy, reconfiguration=DARK, lead=lead)
    return simulate(FABRIC, script, cluster_of(FABRIC), conditions)


def two_phases(slack: float, *, at: float = 2.0) -> Script:
    """h0 sends to h1; at `at` a phase is announced whose byte from h0 to h2 follows `slack` later."""

    def react(event: Event, now: float) -> list[Action]:
        match event:
            case Start():
                return [SetTimer("announce", at)]
            case Timer("announce"):
                return [Announce("sync", {("h0", "h2"): GB}, slack), SetTimer("send", now + slack)]
            case Timer("send"):
                return [Run(transfer("second", 0, 2))]
        return []

    return Script(transfer("first", 0, 1), react=react)


TEMPLATES = Templates(FABRIC, {"sync": CROSSED}, margin=0.125)


def test_enough_slack_and_the_circuits_are_there_when_they_are_needed() -> None:
    script = two_phases(0.5)
    outcome = run(script, TEMPLATES)
    assert script.of(EpochCommitted) == [(2.125, EpochCommitted(1))]
    assert {row.id: (row.start, row.end) for row in outcome.trace.flows} == {
        "first": (0.0, pytest.approx(1.0)),
        "second": (2.5, pytest.approx(3.5)),
    }
    assert [(change.at, change.epoch.number) for change in outcome.changes] == [(2.0, 1)]
    assert [(d.outcome, d.slack) for d in outcome.decisions] == [("plan", 0.5), ("commit", None)]


def test_too_little_slack_and_the_circuits_are_kept() -> None:
    script = two_phases(0.2)  # the change takes 0.125, the margin 0.125
    outcome = run(script, TEMPLATES)
    ((at, kept),) = script.of(EpochKept)
    assert at == 2.0
    assert "slack 200 ms" in kept.reason
    assert outcome.changes == ()
    ((_, failed),) = script.of(Failed)  # no path, and nothing to come: this fabric has circuits only
    assert failed.task.id == "second"


def test_the_lead_counts_in_the_gate_and_delays_the_dark() -> None:
    script = two_phases(0.5)
    outcome = run(script, TEMPLATES, lead=0.125)
    assert [change.at for change in outcome.changes] == [2.125]
    assert script.of(EpochCommitted) == [(2.25, EpochCommitted(1))]
    assert run(two_phases(0.3), TEMPLATES, lead=0.125).changes == ()


def test_bytes_in_flight_delay_a_change_until_they_are_through() -> None:
    script = two_phases(1.0, at=0.75)
    outcome = run(script, TEMPLATES)
    assert {row.id: row.end for row in outcome.trace.flows} == pytest.approx({"first": 1.0, "second": 2.75})
    assert [change.at for change in outcome.changes] == [pytest.approx(1.0)]


def test_bytes_in_flight_that_take_all_the_slack_keep_the_circuits() -> None:
    script = two_phases(0.45, at=0.75)  # 0.25 s of bytes leave 0.2 of the slack
    assert run(script, TEMPLATES).changes == ()
    assert len(script.of(EpochKept)) == 1


def test_a_change_whose_circuits_are_used_on_is_given_up_at_its_deadline() -> None:
    def react(event: Event, now: float) -> list[Action]:
        match event:
            case Start():
                return [Announce("sync", slack=1.0), SetTimer("more", 0.05)]
            case Timer("more"):
                return [Run(transfer("unforeseen", 0, 1, 2 * GB))]
        return []

    script = Script(transfer("first", 0, 1, GB // 10), react=react)
    outcome = run(script, TEMPLATES)
    ((at, aborted),) = script.of(EpochAborted)
    assert at == pytest.approx(0.75)  # slack 1 s, less the change and the margin
    assert isinstance(aborted, EpochAborted)
    assert "still needed" in aborted.reason
    assert outcome.changes == ()
    assert max(row.end for row in outcome.trace.flows) == pytest.approx(2.1)


def test_static_circuits_answer_every_announcement() -> None:
    script = two_phases(0.5)
    run(script, Static())
    assert [event for _, event in script.of(EpochKept)] == [EpochKept(0, "circuits are static")]


def test_a_mesh_is_laid_for_a_phase_from_the_dark() -> None:
    def react(event: Event, now: float) -> list[Action]:
        return [Announce("sync", {("h0", "h3"): GB}), Run(transfer("a", 0, 3))] if isinstance(event, Start) else []

    conditions = Conditions(Epoch(), policy=Templates(FABRIC, {"sync": "mesh"}), reconfiguration=DARK)
    outcome = simulate(FABRIC, Script(react=react), cluster_of(FABRIC), conditions)
    assert outcome.trace.flows[0].end == pytest.approx(1.125)  # no circuit to tear down: it goes on without slack
    assert outcome.changes[0].epoch.matchings == {"o0": duplex([(1, 4)])}


def test_a_rotor_serves_a_pair_while_its_matching_is_lit() -> None:
    # Slots of a second, 0.125 of it dark: h0-h1 is lit in epoch 0 until 1 s, then again from 2.125 to 3 s.
    outcome = run(Script(transfer("a", 0, 1, 2 * GB)), Rotation(1.0, 1.0, (CROSSED, TWO)))
    row = outcome.trace.flows[0]
    assert row.end == pytest.approx(4.125 + 0.125)  # 1 + 0.875 gigabytes by 3 s, the rest from 4.125 s on
    assert [change.epoch.number for change in outcome.changes] == [1, 2, 3, 4]


def test_no_rotation_helps_a_pair_that_none_of_its_matchings_joins() -> None:
    script = Script(transfer("never", 0, 3), transfer("fine", 0, 1))
    outcome = run(script, Rotation(1.0, 0.0, (CROSSED, TWO)))
    assert [row.id for row in outcome.trace.flows] == ["fine"]
    ((_, failed),) = script.of(Failed)
    assert "no circuits to come that would give one" in failed.reason


def test_a_transfer_waits_for_its_turn_however_long() -> None:
    matchings = (*(TWO for _ in range(30)), CROSSED)
    outcome = run(Script(transfer("late", 0, 2, GB // 2)), Rotation(1.0, 0.0, matchings))
    assert outcome.trace.flows[0].end == pytest.approx(30.125 + 0.5)


def test_a_policy_and_a_list_of_changes_exclude_each_other() -> None:
    changes = run(two_phases(0.5), TEMPLATES).changes
    with pytest.raises(ValueError, match="not both"):
        Conditions(changes=changes, policy=Static())


def test_the_same_run_decides_the_same() -> None:
    assert run(two_phases(0.5), TEMPLATES).decisions == run(two_phases(0.5), TEMPLATES).decisions
