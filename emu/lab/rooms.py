"""Rooms: where a lab runs. Each starts the inner program with a run directory and passes on what it says.

The host room seals the lab in namespaces of its own (network, processes, mounts, host name, IPC) on the running
kernel. When the process that started it dies, even by SIGKILL, the kernel ends the lab's first process and with it all
others, their interfaces, bridges and files: there is nothing to clean.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from emu.errors import InputError
from emu.lab.errors import LabError
from emu.lab.job import JOB, LOG, Job, decode_progress
from emu.progress import Listener

_GRACE = 2.5
"""Seconds that a lab gets to write what it measured when it is told to stop."""


class Room(Protocol):
    """Runs one job to its end."""

    name: str

    def check(self, directory: Path) -> None:
        """See that a lab can be opened here and write to `directory`, before anything is made.

        Raises LabError for what the machine lacks, InputError for a directory that the room cannot take.
        """
        ...

    def run(self, job: Job, directory: Path, listener: Listener) -> int:
        """Run a job in a run directory and return the inner program's exit status.

        Raises KeyboardInterrupt when interrupted, after the lab has written what it had and ended. Raises LabError if
        the room cannot be opened.
        """
        ...


class HostRoom:
    """Namespaces on the running kernel; needs root."""

    name = "host"

    def check(self, directory: Path) -> None:
        """See Room.check."""
        if directory.resolve().is_relative_to("/run"):
            raise InputError(f"{directory}: a run directory cannot lie under /run, which a lab has for itself")
        _require_tools()

    def run(self, job: Job, directory: Path, listener: Listener) -> int:
        """See Room.run."""
        directory = directory.resolve()
        job.write(directory / JOB)
        with (directory / LOG).open("ab") as log:
            # setpriv: the kernel kills unshare when this process dies; unshare takes the lab with it.
            process = subprocess.Popen(
                [*SEAL, sys.executable, "-m", "emu.lab.inner", str(directory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # a Ctrl-C at the terminal is for emu alone, which then tells the lab
                env={**os.environ, "PYTHONPATH": _python_path()},
            )
        try:
            return _attend(process, listener)
        except BaseException:
            _stop(process)
            raise
        finally:
            (directory / JOB).unlink(missing_ok=True)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


SEAL = (
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--uts", "--ipc", "--"),
)


def _require_tools() -> None:
    if os.geteuid() != 0:
        raise LabError("a lab needs root; run it with sudo")
    missing = [name for name in ("setpriv", "unshare", "mount") if shutil.which(name) is None]
    if missing:
        raise LabError(f"{', '.join(missing)} not found; fix: apt-get install util-linux")


def _python_path() -> str:
    """What the inner program needs to find the same packages, wherever it is started from."""
    root = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))


def _attend(process: subprocess.Popen[bytes], listener: Listener) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        listener(decode_progress(line))
    return process.wait()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Tell the lab to stop and give it a moment to write; then end it."""
    if process.stdin is not None:
        try:
            process.stdin.write(b"stop\n")
            process.stdin.close()
        except OSError:
            pass
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        pass
    finally:  # a second Ctrl-C does not wait, and leaves no lab behind either
        process.kill()
        process.wait()
