"""Open labs that are kept for the next one who asks for the same: starting one takes seconds."""

from __future__ import annotations

from emu.errors import EmuError
from emu.live.client import LiveLab
from emu.live.specify import Spec
from emu.scale import Scale

_KEPT = 3
"""Labs that stay open at a time; an idle one takes some memory and hardly any processor time."""


class LabPool:
    """Gives out one lab for each fabric, as good as new."""

    def __init__(self) -> None:
        """No lab is open yet."""
        self._labs: dict[tuple[str, Scale], LiveLab] = {}
        self.opened = 0
        """How many were started."""

    def lab(self, spec: Spec) -> LiveLab:
        """A lab of that fabric, reset; the one of before if it is alive. Raises as `LiveLab` does."""
        found = self._labs.pop(spec.key, None)
        lab = found if found is not None and _reset(found) else self._open(spec)
        self._labs[spec.key] = lab  # the latest comes last
        return lab

    def close(self) -> None:
        """End all of them."""
        while self._labs:
            self._labs.popitem()[1].close()

    def _open(self, spec: Spec) -> LiveLab:
        while len(self._labs) >= _KEPT:
            self._labs.pop(next(iter(self._labs))).close()
        self.opened += 1
        return LiveLab(spec)


def _reset(lab: LiveLab) -> bool:
    """Whether it is as good as new now; one that is not is ended."""
    try:
        lab.reset()
    except EmuError:
        lab.close()
        return False
    return True
