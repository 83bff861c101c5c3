"""Draining as a fabric's way: every change waits for its circuits, and goes dark at the deadline all the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.epochs import Epoch, EpochChange, duplex
from controllers.keeper import Keeper
from controllers.loads import Load
from controllers.policies.protocol import CircuitPolicy, Keep, Phase, Plan, PolicyEvent, View
from controllers.policies.scheduled import Scheduled
from topologies.fabric import Port
from topologies.hybrid import hybrid

GB = 10**9
FABRIC = hybrid(hosts_per_pod=1, uplinks=1, rate=8 * GB)  # ToR i is at OCS port i + 1; a circuit carries 1 GB/s
TWO, CROSSED = {"o0": duplex([(1, 2), (3, 4)])}, {"o0": duplex([(1, 3), (2, 4)])}


class Loads:
    """What still has to cross from h0 to h1, in bytes."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self) -> list[Load]:
        """What is left now."""
        return [Load(Port("h0", 0), Port("h1", 0), self.left)] if self.left else []


def draining(loads: Loads, deadline: float, policy: CircuitPolicy | None = None) -> Keeper:
    policy = policy or Scheduled((EpochChange(2.0, Epoch(1, CROSSED), 0.5),))
    keeper = Keeper(FABRIC, policy, Epoch(0, TWO), 0.5, ahead=0.25, lead=0.125, loads=loads, drain=deadline)
    keeper.start()
    return keeper


def test_a_change_waits_until_its_circuits_are_drained() -> None:
    """0.3 GB at 1 GB/s: looked at again after 0.3 s, a tenth of the reconfiguration time later if any is left."""
    loads = Loads(GB * 3 // 10)
    keeper = draining(loads, 1.0)
    assert keeper.next_at == 2.0
    assert keeper.due(2.0) is None
    assert keeper.next_at == pytest.approx(2.3)
    loads.left = 1
    assert keeper.due(2.3) is None
    assert keeper.next_at == pytest.approx(2.35)
    loads.left = 0
    change = keeper.due(2.35)
    assert change == EpochChange(pytest.approx(2.475), Epoch(1, CROSSED), 0.5)
    drained = [decision for decision in keeper.decisions if decision.outcome == "drain"]
    assert [(one.at, one.epoch, one.reason) for one in drained] == [(2.35, 1, "drained after 0.35 s")]


def test_at_the_deadline_circuits_go_dark_all_the_same() -> None:
    keeper = draining(Loads(GB), 0.5)
    assert keeper.due(2.0) is None
    assert keeper.next_at == pytest.approx(2.5)
    change = keeper.due(2.5)
    assert change == EpochChange(pytest.approx(2.625), Epoch(1, CROSSED), 0.5)
    (decision,) = (decision for decision in keeper.decisions if decision.outcome == "drain")
    assert decision.event == "epoch 1"
    assert "still needed for 1 s at line rate: they go dark all the same" in decision.reason


def test_without_anything_to_drain_nothing_is_said() -> None:
    keeper = draining(Loads(0), 0.5)
    assert keeper.due(2.0) == EpochChange(2.125, Epoch(1, CROSSED), 0.5)
    assert [decision.outcome for decision in keeper.decisions] == ["plan"]


def test_a_plan_with_a_deadline_of_its_own_is_given_up_at_that() -> None:
    class Gated:
        name = "gated"

        def on(self, event: PolicyEvent, view: View, now: float) -> Plan | Keep:
            return Plan(CROSSED, 2.0, deadline=2.25) if isinstance(event, Phase) else Keep("no phase")

        def known(self) -> tuple[()]:
            return ()

    keeper = draining(Loads(GB), 9.0, Gated())
    keeper.announce("any", {}, 1.0, 1.0)
    assert keeper.due(2.0) is None
    assert keeper.due(2.25) is None
    assert [decision.outcome for decision in keeper.decisions][:2] == ["plan", "abort"]
    assert not keeper.busy


@given(left=st.integers(0, 3 * GB), deadline=st.floats(0, 2), rate=st.floats(0.1, 1))
def test_a_change_begins_drained_or_at_its_deadline(left: int, deadline: float, rate: float) -> None:
    """Whatever rate the circuits reach: nothing is cut off before the deadline, nothing waits beyond it."""
    loads = Loads(left)
    keeper = draining(loads, deadline)
    change, now = None, 0.0
    while change is None:
        at = keeper.next_at
        assert at is not None
        assert at >= now
        now = at
        loads.left = max(0, round(left - (now - 2.0) * rate * GB))
        change = keeper.due(now)
    assert now <= 2.0 + deadline
    assert loads.left == 0 or now == pytest.approx(2.0 + deadline)
