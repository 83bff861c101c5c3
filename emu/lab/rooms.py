"""Rooms: where a lab runs. Each starts the inner program with a run directory and passes on what it says.

The host room seals the lab in namespaces of its own (network, processes, mounts, host name, IPC) on the running
kernel. When the process that started it dies, even by SIGKILL, the kernel ends the lab's first process and with it all
others, their interfaces, bridges and files: there is nothing to clean.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from emu.errors import InputError
from emu.lab.errors import LabError
from emu.lab.job import INTERRUPT, JOB, LOG, OPEN, REFUSED, STOP, Job, decode_progress
from emu.progress import Listener

_GRACE = 2.5
"""Seconds that a lab gets to write what it measured when it is told to stop."""


class Terminal(NamedTuple):
    """Descriptors of whoever talks to a shell: a terminal, or pipes and files."""

    input: int = 0
    output: int = 1
    errors: int = 2


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

    def talk(self, job: Job, terminal: Terminal, listener: Listener) -> int:
        """Open a shell, let the terminal's user talk to it until they leave, and return its exit status: 0 or REFUSED.

        The listener hears how the lab is built; after the stage `done` the terminal is the shell's, and an interrupt is
        handed to what runs there. Before, it ends the lab and raises KeyboardInterrupt. Raises LabError if the lab
        cannot be built or breaks.
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
        with (directory / LOG).open("ab") as log, _started("emu.lab.inner", [str(directory)], log) as process:
            try:
                return _attend(process, listener)
            finally:
                (directory / JOB).unlink(missing_ok=True)

    def talk(self, job: Job, terminal: Terminal, listener: Listener) -> int:
        """See Room.talk."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as log:  # they have no names to be left behind
            given.write(job.encode())
            given.flush()
            with _above_the_standard_ones(terminal) as ends:
                handed = (given.fileno(), *ends)
                arguments = [str(descriptor) for descriptor in handed]
                with _started("emu.lab.shell_inner", arguments, log, handed) as process, _unsuspended():
                    status = _converse(process, listener)
                if status not in (0, REFUSED):
                    raise LabError(_last_words(log))
                return status


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


@contextmanager
def _started(
    module: str, arguments: Sequence[str], log: IO[bytes], handed: Sequence[int] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """An inner program in namespaces of its own; told to stop if what is done meanwhile fails.

    handed: descriptors that it gets beside the standard ones, under their own numbers.
    """
    # setpriv: the kernel kills unshare when this process dies; unshare takes the lab with it.
    process = subprocess.Popen(
        [*SEAL, sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        pass_fds=handed,
        start_new_session=True,  # a Ctrl-C at the terminal is for emu alone, which then tells the lab
        env={**os.environ, "PYTHONPATH": _python_path()},
    )
    try:
        yield process
    except BaseException:
        _stop(process)
        raise
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _attend(process: subprocess.Popen[bytes], listener: Listener) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        listener(decode_progress(line))
    return process.wait()


def _converse(process: subprocess.Popen[bytes], listener: Listener) -> int:
    """Attend a shell: hand it the terminal once it is ready, and interrupts from then on."""
    assert process.stdout is not None
    ready = False
    while True:
        try:
            while line := process.stdout.readline():
                said = decode_progress(line)
                listener(said)
                if said.stage == "done":
                    ready = True
                    _say(process, OPEN)
            return process.wait()
        except KeyboardInterrupt:
            if not ready:
                raise
            _say(process, INTERRUPT)


@contextmanager
def _above_the_standard_ones(terminal: Terminal) -> Iterator[list[int]]:
    """Copies of a terminal's descriptors that a child can have beside its own standard ones."""
    copies = [os.dup(descriptor) for descriptor in terminal]
    try:
        yield copies
    finally:
        for copy in copies:
            os.close(copy)


@contextmanager
def _unsuspended() -> Iterator[None]:
    """Ctrl-Z would stop this process only, and leave the terminal to two readers."""
    before = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)


def _last_words(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").splitlines()
    return lines[-1] if lines else "the lab was ended"


def _say(process: subprocess.Popen[bytes], word: bytes) -> None:
    """Tell a lab something, if it is still there to hear it."""
    if process.stdin is not None:
        try:
            process.stdin.write(word)
            process.stdin.flush()
        except OSError:
            pass


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Tell the lab to stop and give it a moment to write; then end it."""
    _say(process, STOP)
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        pass
    finally:  # a second Ctrl-C does not wait, and leaves no lab behind either
        process.kill()
        process.wait()
