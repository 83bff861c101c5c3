"""Whether a run can be trusted: `judge` holds a measurement against its prediction and the table of thresholds."""

from emu.verdict.levels import LEVELS, Level, Reason, Verdict, worst

__all__ = ["LEVELS", "Level", "Reason", "Verdict", "worst"]
