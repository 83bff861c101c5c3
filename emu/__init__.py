"""emu: packet-level emulation of disaggregated RL training on reconfigurable fabrics.

As a library: `emu.run`, `emu.check`, `emu.load` and the `emu.RunRecord` that they give (see `emu.api`), and
`emu.open_lab`, a lab that stays open (see `emu.live`). Importing emu imports nothing else; each name is fetched when it
is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emu.api import Checked, check, load, run
    from emu.errors import EmuError, InputError
    from emu.lab.errors import LabError
    from emu.live.client import LiveLab, open_lab
    from emu.progress import Progress
    from emu.results.record import RunRecord

__all__ = [
    "Checked",
    "EmuError",
    "InputError",
    "LabError",
    "LiveLab",
    "Progress",
    "RunRecord",
    "check",
    "load",
    "open_lab",
    "run",
]

_HOMES = {
    **dict.fromkeys(("Checked", "check", "load", "run"), "emu.api"),
    **dict.fromkeys(("EmuError", "InputError"), "emu.errors"),
    "LabError": "emu.lab.errors",
    **dict.fromkeys(("LiveLab", "open_lab"), "emu.live.client"),
    "Progress": "emu.progress",
    "RunRecord": "emu.results.record",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what the name stands for
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
