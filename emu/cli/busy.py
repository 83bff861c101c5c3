"""A warning before a lab is built on a machine that is busy already: its verdict would tell only at the end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from emu.progress import Listener, Progress

_WATCHED: Final = 0.5
"""Wall seconds for which the processors are watched."""


class BusyWarning:
    """Hears the progress of a run for another listener, and looks at the processors before the first lab.

    Runs in the model say neither `plan` nor `build`, so nothing is looked at for them.
    """

    def __init__(self, console: Console, listener: Listener) -> None:
        self._console, self._listener = console, listener
        self._looked = False

    def __call__(self, said: Progress) -> None:
        """Hear one progress."""
        if not self._looked and said.stage in ("plan", "build"):
            self._looked = True
            warn_if_busy(self._console)
        self._listener(said)


def warn_if_busy(console: Console) -> None:
    """Say so if the processors are less idle than a VALID verdict asks for."""
    from emu.verdict import THRESHOLDS  # noqa: PLC0415

    idle = idle_share()
    if THRESHOLDS.idle_before.level(idle) != "VALID":
        text = f"emu: warning: processors are only {100 * idle:.0f} % idle: the verdict may suffer"
        console.print(Text(text, style="yellow"), soft_wrap=True)


def idle_share() -> float:
    """The share of all processors' time, 0 to 1, that is idle now."""
    from emu.lab.system import CpuTimes  # noqa: PLC0415

    before = CpuTimes.read()
    time.sleep(_WATCHED)
    return CpuTimes.read().idle_share_since(before)
