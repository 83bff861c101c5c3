"""Before any lab is built: which scale fits, and how long it will take."""

from emu.plan.outline import Estimate, Plan, describe
from emu.plan.planning import plan
from emu.plan.rates import own_rate

__all__ = ["Estimate", "Plan", "describe", "own_rate", "plan"]
