"""Whether a run can be trusted: `judge` holds a measurement against its prediction and the table of thresholds."""

from emu.verdict.judge import judge
from emu.verdict.levels import LEVELS, Level, Reason, Verdict, worst
from emu.verdict.thresholds import THRESHOLDS, Band, Thresholds

__all__ = ["LEVELS", "THRESHOLDS", "Band", "Level", "Reason", "Thresholds", "Verdict", "judge", "worst"]
