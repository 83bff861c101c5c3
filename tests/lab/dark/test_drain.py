"""`dark: drain`: the flow on the circuit ends first; or the deadline comes, and the circuit goes dark under it."""

from __future__ import annotations

import pytest

from tests.lab.dark.change import DARK, MOVED, SWAPPED, play
from tests.lab.topologies.bench import Bench, on_bench
from topologies.fabric import Port
from workloads.protocol import Endpoint, Transfer

pytestmark = pytest.mark.lab

OLD, NEW = Port("o0", 3), Port("o0", 4)


@on_bench(**SWAPPED, dark={"mode": "drain", "deadline": "3s"})
def test_a_change_waits_until_the_flow_on_its_circuit_is_over(bench: Bench) -> None:
    seen = play(bench, (MOVED,), (2.5, Transfer("late", Endpoint("h0"), Endpoint("h1"), 20_000, connection="new")))
    assert seen.change.mode == "drain"
    assert seen.after.dark_drops == seen.before.dark_drops
    assert seen.change.asked_at > seen.fct["moved"] > 0.9
    assert len(seen.data(OLD)) > 0.9 * (6_000_000 // 8948)  # some frames are not full
    assert seen.data(NEW)
    assert seen.change.service == []
    assert any(one.outcome == "drain" and one.reason.startswith("drained after") for one in seen.decisions)


@on_bench(**SWAPPED, dark={"mode": "drain", "deadline": "200ms"})
def test_at_the_deadline_the_circuit_goes_dark_under_the_flow(bench: Bench) -> None:
    seen = play(bench)
    assert 0.6 <= seen.change.asked_at < 0.8
    (reason,) = (decision.reason for decision in seen.decisions if decision.outcome == "drain")
    assert "they go dark all the same" in reason
    assert seen.change.lost is not None
    assert seen.change.lost > 0
    assert seen.data(NEW)
    assert seen.change.service_dark is not None
    assert seen.change.service_dark > 0.9 * DARK
