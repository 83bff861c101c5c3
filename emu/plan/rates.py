"""What a lab can carry, and the rate that it should emulate."""

from __future__ import annotations

import math
from collections.abc import Sequence

from emu.measurement import Capacity
from topologies.fabric import Fabric

HEADROOM = 0.6
"""The share of the calibrated rate that a run asks for; the rest is room for noise."""
SMALLEST_RATE = 100_000
"""Emulated bit/s below which a link takes over 0.7 s for one full frame at an MTU of 9000: nothing is left to time."""
NOMINAL_TOTAL = 960e6
"""Emulated bit/s that all NICs together send at on two processors with the userspace datapath (16 NICs at 60 Mb/s)."""
NOMINAL_STEP_COST = 0.005
NOMINAL_JITTER = 0.005
_STEPS = (1, 2, 5)


def own_rate(capacity: float) -> int:
    """The emulated NIC rate for a lab whose NICs reach `capacity` bit/s together: 60 % of it, down to a 1-2-5 step."""
    asked = max(1.0, capacity * HEADROOM)
    decade = 10 ** math.floor(math.log10(asked))
    return int(max(step * decade for step in _STEPS if step * decade <= asked * (1 + 1e-9)))


def nominal_capacity(fabric: Fabric) -> Capacity:
    """What to assume of a lab that nobody has measured: a 16-NIC fat-tree's figures, the rate shared by all NICs."""
    rate = NOMINAL_TOTAL / len(fabric.all_nics)
    return Capacity(fabric.name, rate, NOMINAL_STEP_COST, NOMINAL_JITTER)


def fastest_nic(fabric: Fabric) -> int:
    """The rate of the fabric's fastest NIC in bit/s."""
    return max(fabric.link(nic).rate for nic in fabric.all_nics)


def own_beta(fabrics: Sequence[tuple[Fabric, Capacity]]) -> tuple[float, Fabric, Capacity]:
    """The smallest beta at which no fabric is asked for more than it carries, and the fabric that needs it.

    A fabric's fastest NICs decide: its capacity is what every NIC reaches when all send.
    """
    return max(
        ((fastest_nic(fabric) / own_rate(capacity.host_rate), fabric, capacity) for fabric, capacity in fabrics),
        key=lambda needed: needed[0],
    )


def clean_tdf(at_least: float) -> int:
    """The smallest round time dilation that is at least so much: 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, ..."""
    decade: int = 10 ** max(0, math.floor(math.log10(max(1.0, at_least))))
    rungs = (step * scale // 10 for scale in (decade, 10 * decade) for step in _CLEAN if step * scale % 10 == 0)
    return min(rung for rung in rungs if rung >= at_least * (1 - 1e-9))


def clean_tdf_below(at_most: float) -> int:
    """The largest such dilation that is at most so much, never below 1."""
    decade: int = 10 ** max(0, math.floor(math.log10(max(1.0, at_most))))
    rungs = (step * decade // 10 for step in _CLEAN if step * decade % 10 == 0)
    return max(rung for rung in rungs if rung <= max(1.0, at_most * (1 + 1e-9)))


_CLEAN = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
"""Tenths of a decade."""
