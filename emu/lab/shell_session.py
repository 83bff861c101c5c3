"""A lab for a person: built, shaped and lit like one that measures, and then theirs."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from emu.lab.job import Job
from emu.lab.lab import Lab
from emu.lab.shell import Shell
from emu.lab.shell_circuits import Optics
from emu.progress import Progress
from emu.scale import Scale
from emu.scenario.build import build_fabrics
from emu.scenario.load import load_plugins
from emu.scenario.schema import Scenario


class ShellSession:
    """One shell in one lab."""

    def __init__(self, job: Job, directory: Path, tell: Callable[[Progress], None]) -> None:
        load_plugins(job.plugins)
        scenario = Scenario.from_json(job.scenario)
        self._scale = Scale(job.sigma, job.beta)
        self.built = build_fabrics(scenario)[job.fabric]
        self.fabric = self.built.fabric
        self.lab = Lab(scenario, self.built, directory, tell)

    def build(self) -> None:
        """Build the lab, check its wiring, install epoch 0 and shape the links."""
        lab = self.lab
        lab.build(self._scale.tdf)
        lab.install(self.built.epoch)
        lab.verify_wiring()
        lab.shape(self._scale.beta, self._scale.sigma)
        lab.raise_buffers()

    def converse(self) -> int:
        """Talk with whoever is at the standard input until they leave; the number of commands that were refused."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        optics = Optics(self.lab.control, self.built.epoch, self.built.reconfiguration * self._scale.tdf)
        shell = Shell(self.lab, self.built, optics, self._scale)
        return shell.refused
