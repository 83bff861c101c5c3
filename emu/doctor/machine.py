"""The machine as the checks see it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from controllers.channel import ControllerError
from controllers.process import interpreter
from emu.lab import system
from emu.lab.rooms import SEAL
from emu.versions import library_versions

_TIMEOUT = 15.0
_ROOT = Path(__file__).resolve().parents[2]

Module = Literal["there", "absent", "unknown"]
"""Whether the kernel that runs could load a module; unknown in containers, which do not see its modules."""


class Machine:
    """Looks at the running system; tests put another one in its place."""

    @property
    def root(self) -> bool:
        """Whether this process is root."""
        return os.geteuid() == 0

    @property
    def capabilities(self) -> int:
        """The effective capabilities as a bit mask."""
        lines = self.read("/proc/self/status").splitlines()
        return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)

    @property
    def processors(self) -> int:
        """How many processors this process may use."""
        return len(os.sched_getaffinity(0))

    @property
    def free_disk(self) -> int:
        """Bytes that can be written where runs go: below the current directory."""
        return shutil.disk_usage(Path.cwd()).free

    @property
    def datapath(self) -> system.Datapath:
        """The Open vSwitch datapath that a lab would take."""
        return system.probe_datapath()

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of programs, `missing` where there is none."""
        return system.versions()

    def has(self, program: str) -> bool:
        """Whether a program is on the path."""
        return shutil.which(program) is not None

    @property
    def libraries(self) -> Mapping[str, str]:
        """Versions of the Python libraries that emu asks for, `missing` where one is not installed."""
        return library_versions()

    def module(self, names: str) -> Module:
        """Whether all the modules of the kernel that are named, with spaces between, could be loaded."""
        listed = self.read(f"/lib/modules/{platform.release()}/modules.dep")
        if not listed:
            return "unknown"
        found = {Path(line.partition(":")[0]).name.partition(".")[0].replace("-", "_") for line in listed.splitlines()}
        return "there" if set(names.split()) <= found else "absent"

    def read(self, path: str) -> str:
        """A file's text, empty if it cannot be read."""
        try:
            return Path(path).read_text()
        except OSError:
            return ""

    def controller(self) -> str:
        """What keeps the controller's library from being imported, empty if nothing does."""
        try:
            return self._run([interpreter(), "-c", "import controllers.ryu_api"])[1]
        except ControllerError as error:
            return error.reason

    def probe(self) -> tuple[Mapping[str, str], str]:
        """What fails in a throw-away lab's namespaces, by what was tried; and what kept them from being made."""
        output, trouble = self._run([*SEAL, sys.executable, "-m", "emu.doctor.probe"])
        try:
            found: dict[str, str] = json.loads(output)
        except ValueError:
            return {}, trouble or "the probe said nothing"
        return found, ""

    def _run(self, command: list[str]) -> tuple[str, str]:
        """A command's output; and the last words of one that fails."""
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        environment = {**os.environ, "PYTHONPATH": path}
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return "", str(error)
        words = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()
        return done.stdout, words[-1] if done.returncode else ""
