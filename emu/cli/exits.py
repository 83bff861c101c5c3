"""The exit statuses of `emu`: all of them, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # at run time it would bring numpy and the model
    from emu.verdict.levels import Level


class Exit(IntEnum):
    """What a status means."""

    VALID = 0
    ERROR = 1
    INPUT = 2
    DEGRADED = 3
    INVALID = 4
    INTERRUPTED = 130


MEANINGS: Final[Mapping[Exit, str]] = {
    Exit.VALID: "done; a run is VALID, a scenario can be run, the machine has all that is needed",
    Exit.ERROR: "the lab or the machine could not do it, or a defect of emu; the message says which",
    Exit.INPUT: "a scenario, file or option that cannot be used as it is",
    Exit.DEGRADED: "the run's verdict is DEGRADED",
    Exit.INVALID: "the run's verdict is INVALID",
    Exit.INTERRUPTED: "stopped by Ctrl-C, SIGTERM or SIGHUP; what was measured until then is written, marked partial",
}

OF_VERDICT: Final[Mapping[Level, Exit]] = {
    "VALID": Exit.VALID,
    "DEGRADED": Exit.DEGRADED,
    "INVALID": Exit.INVALID,
}
