"""Policies that follow the clock, and the one that does nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.epochs import Epoch, EpochChange, duplex
from controllers.policies.protocol import DemandSample, EpochResult, Keep, Phase, Plan, PortFailed, Tick, View
from controllers.policies.scheduled import Rotation, Scheduled
from controllers.policies.static import Static

A, B, C = ({"o0": duplex(pairs)} for pairs in ([(1, 2)], [(1, 3)], [(2, 3)]))
COMMITTED = EpochResult("committed", 1)
LISTED = Scheduled((EpochChange(1.0, Epoch(1, A), 0.25), EpochChange(2.0, Epoch(2, B), 0.5)))


def after(last_at: float | None) -> View:
    return View(Epoch(), last_at=last_at)


@pytest.mark.parametrize("event", [Tick(), Phase("any", slack=100.0), COMMITTED, DemandSample({}), PortFailed("o0", 1)])
def test_static_keeps_whatever_happens(event: object) -> None:
    assert Static().on(event, after(None), 5.0) == Keep("circuits are static")  # type: ignore[arg-type]
    assert Static().known() == ()


def test_a_schedule_is_followed_change_by_change() -> None:
    first = LISTED.on(Tick(), after(None), 0.0)
    assert first == Plan(A, 1.0, "change 1 of 2 of the schedule", reconfiguration=0.25)
    second = LISTED.on(COMMITTED, after(1.0), 1.25)
    assert second == Plan(B, 2.0, "change 2 of 2 of the schedule", reconfiguration=0.5)
    assert LISTED.on(COMMITTED, after(2.0), 2.5) == Keep("the schedule is over")
    assert LISTED.known() == (A, B)


def test_a_schedule_makes_up_for_an_instant_that_has_passed() -> None:
    late = LISTED.on(COMMITTED, after(1.0), 7.0)
    assert isinstance(late, Plan)
    assert late.at == 2.0


def test_a_schedule_goes_on_after_a_change_that_was_given_up() -> None:
    following = LISTED.on(EpochResult("aborted", 1, "a switch is gone"), after(1.0), 1.0)
    assert isinstance(following, Plan)
    assert following.matchings == B


@pytest.mark.parametrize("policy", [LISTED, Rotation(1.0, 0.0, (A, B))])
def test_phases_do_not_disturb_the_clock(policy: Scheduled | Rotation) -> None:
    assert isinstance(policy.on(Phase("training", slack=10.0), after(None), 0.5), Keep)


def test_an_empty_schedule_says_so() -> None:
    assert Scheduled(()).on(Tick(), after(None), 0.0) == Keep("there is no schedule")


def test_a_rotation_goes_around() -> None:
    rotor = Rotation(0.1, 0.5, (A, B, C))
    seen, last = [], None
    for _ in range(7):
        answer = rotor.on(COMMITTED, after(last), 0.0 if last is None else last + 0.01)
        assert isinstance(answer, Plan)
        last = answer.at
        seen.append((answer.at, answer.matchings))
    assert [at for at, _ in seen] == pytest.approx([0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1])
    assert [matchings for _, matchings in seen] == [A, B, C, A, B, C, A]


def test_a_rotation_leaves_out_turns_that_were_missed_whole() -> None:
    answer = Rotation(0.1, 0.0, (A, B, C)).on(COMMITTED, after(0.1), 0.45)
    assert isinstance(answer, Plan)
    assert answer.at == pytest.approx(0.4)  # turn 4: the second matching
    assert answer.matchings == B


@given(st.floats(1e-4, 100), st.floats(0, 1000), st.integers(1, 7), st.integers(0, 10_000))
def test_no_turn_of_a_rotation_is_left_out_or_taken_twice(period: float, start: float, count: int, turn: int) -> None:
    matchings = tuple({"o0": duplex([(1, other + 2)])} for other in range(count))
    rotor = Rotation(period, start, matchings)
    at = start + turn * period
    answer = rotor.on(COMMITTED, after(at), at + period / 2)
    assert isinstance(answer, Plan)
    assert answer.at == pytest.approx(start + (turn + 1) * period)
    assert answer.matchings == matchings[(turn + 1) % count]


@pytest.mark.parametrize(("period", "start"), [(0.0, 0.0), (-1.0, 0.0), (1.0, -1.0), (float("inf"), 0.0)])
def test_impossible_rotations_are_refused(period: float, start: float) -> None:
    with pytest.raises(ValueError, match="is none"):
        Rotation(period, start, (A,))
    with pytest.raises(ValueError, match="needs matchings"):
        Rotation(1.0, 0.0, ())
