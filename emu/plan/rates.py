"""From what a lab can carry to the rate that it should emulate."""

from __future__ import annotations

import math

HEADROOM = 0.6
"""The share of the calibrated rate that a run asks for; the rest is room for noise."""
_STEPS = (1, 2, 5)


def own_rate(capacity: float) -> int:
    """The emulated NIC rate for a lab whose NICs reach `capacity` bit/s together: 60 % of it, down to a 1-2-5 step."""
    asked = max(1.0, capacity * HEADROOM)
    decade = 10 ** math.floor(math.log10(asked))
    return int(max(step * decade for step in _STEPS if step * decade <= asked * (1 + 1e-9)))
