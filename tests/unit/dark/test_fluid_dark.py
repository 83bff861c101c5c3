"""The dark modes in the model, each with a time that was worked out by hand."""

from __future__ import annotations

import pytest

from controllers.dark import Dark
from controllers.epochs import Epoch, EpochChange, duplex
from emu.model.conditions import Conditions
from emu.model.engine import Outcome, simulate
from emu.model.transport import Transport
from tests.unit.model.fluid_pieces import GB, Script, cluster_of, transfer
from topologies.fabric import Port
from topologies.hybrid import hybrid

FABRIC = hybrid(pods=2, hosts_per_pod=1, uplinks=2, rate=8 * GB, electrical_rate=2 * GB)
"""t0 is at OCS ports 1 and 2, t1 at 3 and 4. A circuit carries 1 GB/s, the core 0.25 GB/s."""
BEFORE, MOVED = Epoch(0, {"o0": duplex([(1, 3)])}), Epoch(1, {"o0": duplex([(2, 4)])})
CHANGE = EpochChange(0.5, MOVED, 0.25)
SLOW = Transport(retransmission=0.2)
"""A stream whose circuit went dark for 0.25 s goes on when the timer has fired for the second time: after 0.6 s."""


def end(dark: Dark, ahead: float = 0.0, transport: Transport | None = None) -> tuple[float, Outcome]:
    more = {} if transport is None else {"transport": transport}
    conditions = Conditions(BEFORE, (CHANGE,), dark=dark, ahead=ahead, **more)  # type: ignore[arg-type]
    outcome = simulate(FABRIC, Script(transfer("a", 0, 1)), cluster_of(FABRIC), conditions)
    (row,) = outcome.trace.flows
    return row.end, outcome


def test_drop_and_hold_pause_and_lose_nothing() -> None:
    """0.5 GB before the change, then 0.25 s of dark time, then the rest."""
    for mode in ("drop", "hold"):
        seconds, outcome = end(Dark(mode))  # type: ignore[arg-type]
        assert seconds == pytest.approx(1.25)
        assert outcome.carried[Port("c0", 2)] == 0


def test_a_detour_goes_on_over_the_core_while_it_is_dark() -> None:
    """In 0.25 s of dark time the core carries 1/16 GB: 0.4375 GB are left at 0.75 s."""
    seconds, outcome = end(Dark("detour"))
    assert seconds == pytest.approx(0.75 + 0.4375)
    assert outcome.carried[Port("c0", 2)] == GB // 16


def test_a_detour_that_begins_ahead_is_on_the_core_for_longer() -> None:
    """From 0.3 s on: 0.3 GB by circuit, then 0.45 s at 0.25 GB/s, then the remaining 0.5875 GB."""
    seconds, outcome = end(Dark("detour"), ahead=0.2)
    assert seconds == pytest.approx(0.75 + 0.5875)
    assert outcome.carried[Port("c0", 2)] == pytest.approx(0.1125 * GB)


def test_only_a_drop_waits_for_its_retransmission() -> None:
    """The timer fires 0.2 s and 0.6 s after the circuit went dark: 0.35 s after the light."""
    assert end(Dark("drop"), transport=SLOW)[0] == pytest.approx(1.25 + 0.35)
    assert end(Dark("hold"), transport=SLOW)[0] == pytest.approx(1.25)
    assert end(Dark("detour"), transport=SLOW)[0] == pytest.approx(1.1875)


def test_a_drain_waits_for_the_flow_or_for_its_deadline() -> None:
    """The flow ends at 1 s. A deadline 0.3 s after the asked instant cuts into it at 0.8 s."""
    seconds, outcome = end(Dark("drain", deadline=2.0))
    assert seconds == pytest.approx(1.0)
    seconds, outcome = end(Dark("drain", deadline=0.3))
    assert seconds == pytest.approx(1.25)
    (change,) = outcome.changes
    assert change.at == pytest.approx(0.8)
    assert any("dark all the same" in decision.reason for decision in outcome.decisions)
