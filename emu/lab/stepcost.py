"""What a dependent step costs on this machine: the event loop, the switches and the kernel between two messages."""

from __future__ import annotations

import time
from collections.abc import Sequence

from emu.lab.calibrate import Pair
from emu.lab.lab import Lab
from emu.packet.lanes import Lane, LaneKey, Lanes, Part

_STEPS, _MESSAGE_MTU = 30, 16


def step_cost(lab: Lab, lanes: Lanes, pairs: Sequence[Pair], goodput: float) -> float:
    """Wall seconds that a step takes beyond its ideal, when every pair sends short messages one after the other.

    A ring's ranks wait for each other in the same way: each message starts when the one before it was read.
    goodput: payload bit/s that a pair reaches.
    """
    size = _MESSAGE_MTU * lab.scenario.emulation.mtu
    keys = [LaneKey(src, dst, "steps") for src, dst in pairs]
    lanes.open_all(keys)
    open_lanes = [lane for lane in map(lanes.get, keys) if lane is not None]
    left = {lane.key: _STEPS for lane in open_lanes}
    began = time.monotonic()
    for lane in open_lanes:
        _next(lanes, lane, left, size)
    while any(left.values()):
        lab.loop.turn(time.monotonic() + 0.1)
        lab.check_alive()
    took = time.monotonic() - began
    for key in keys:
        lanes.close(key)
    return max(0.0, took / _STEPS - size * 8 / goodput)


def _next(lanes: Lanes, lane: Lane, left: dict[LaneKey, int], size: int) -> None:
    def done(_: Part) -> None:
        left[lane.key] -= 1
        if left[lane.key]:
            _next(lanes, lane, left, size)

    lanes.send(lane, Part(size, done))
