"""`dark: hold`: the ToR queues what its circuit cannot carry, and sends it on by the new one."""

from __future__ import annotations

import time

import pytest

from controllers.channel import Prepare
from controllers.transition import transition
from emu.lab.circuits import SETTLE_NS
from emu.packet.lanes import LaneKey, Part
from tests.lab.dark.change import DARK, SWAPPED, play
from tests.lab.topologies.bench import Bench, on_bench
from topologies.fabric import Port
from workloads.protocol import Endpoint, Transfer

pytestmark = pytest.mark.lab

OLD, NEW = Port("o0", 3), Port("o0", 4)
AHEAD = 0.005
"""Wall seconds that a switch may lag behind when traffic is held."""


@on_bench(**SWAPPED, dark="hold")
def test_what_is_held_is_sent_on_at_the_light(bench: Bench) -> None:
    """Nothing is lost, nothing sent again; the first held frame leaves as soon as the new circuit is there."""
    seen = play(bench)
    change = seen.change
    assert change.mode == "hold"
    (plane,) = change.data_plane
    assert plane.last_wall is not None
    assert plane.first_wall is not None
    if plane.last_wall < AHEAD and plane.first_wall < SETTLE_NS / 1e9:  # else the switch followed too late
        assert seen.after.dark_drops == seen.before.dark_drops
    assert change.lost is not None
    assert change.held is not None
    assert change.held_bytes is not None
    assert change.held > 10
    assert change.held_bytes > 10 * 9000
    assert change.overflow == 0
    assert seen.data(OLD)
    first = min(frame.at_ns for frame in seen.data(NEW))
    last = max(frame.at_ns for frame in seen.data(OLD))
    assert 0.95 * DARK < (first - last) / 1e9 < DARK + 0.1
    assert bench.lab.control.foreign_rules() == []


@on_bench(**SWAPPED, dark="hold")
def test_a_change_that_is_given_up_lets_go_what_it_held(bench: Bench) -> None:
    """Its queues were closed when it was aborted, no circuit had changed: the flow stands still, and goes on."""
    control, old, (change,) = bench.lab.control, bench.epoch, bench.built.schedule
    assert control.holding is not None
    before, after = control.realised(old), control.realised(change.epoch)
    step = transition(before, after, frozenset({"o0"}), control.dpids)
    shut, release = control.holding.change(old, change.epoch, before, after)
    at_ns = time.monotonic_ns() + 1_500_000_000
    asked = Prepare("given up", step.dark, step.light, at_ns, 10**9, {}, 1_200_000_000, shut, release)
    key = LaneKey(Port("h0", 0), Port("h1", 0), "held")
    bench.lanes.open_all([key])
    lane = bench.lanes.get(key)
    done: list[Part] = []
    assert lane is not None
    control.client.submit(asked)
    part = Part(4_000_000, done.append)
    bench.lanes.send(lane, part)
    bench.turn(lambda: time.monotonic_ns() > at_ns - 700_000_000, 2)
    held_at = part.unread
    bench.turn(lambda: time.monotonic_ns() > at_ns - 500_000_000, 2)
    assert 0 < part.unread == held_at
    assert control.client.abort("given up").outcome == "discarded"
    assert bench.turn(lambda: bool(done), 5)
    assert control.foreign_rules() == []


@on_bench(**SWAPPED, dark={"mode": "hold", "buffer": "1B"})
def test_the_queue_is_bounded_and_its_overflow_counted(bench: Bench) -> None:
    """Three flows fill the queue (64 frames) while the circuit is dark: what does not fit is lost, and counted."""
    many = [Transfer(f"moved{n}", Endpoint("h0"), Endpoint("h1"), 3_000_000, channel=str(n)) for n in range(3)]
    seen = play(bench, many)
    change = seen.change
    assert change.held_bytes is not None
    assert change.overflow is not None
    assert 0 < change.held_bytes <= 64 * 9038
    assert seen.after.dark_drops - seen.before.dark_drops >= change.overflow
