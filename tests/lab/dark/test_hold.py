"""`dark: hold`: the ToR queues what its circuit cannot carry, and sends it on by the new one."""

from __future__ import annotations

import pytest

from tests.lab.dark.change import DARK, SWAPPED, play
from tests.lab.topologies.bench import Bench, on_bench
from topologies.fabric import Port
from workloads.protocol import Endpoint, Transfer

pytestmark = pytest.mark.lab

OLD, NEW = Port("o0", 3), Port("o0", 4)


@on_bench(**SWAPPED, dark="hold")
def test_what_is_held_is_sent_on_at_the_light(bench: Bench) -> None:
    """Nothing is lost, nothing sent again; the first held frame leaves as soon as the new circuit is there."""
    seen = play(bench)
    change = seen.change
    assert change.mode == "hold"
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
