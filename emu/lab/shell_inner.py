"""The inner program of a shell: `python -m emu.lab.shell_inner JOB IN OUT ERR`, started by a room like `emu.lab.inner`.

Its arguments are open descriptors: the job, and the three ends of the terminal that it talks to. Its own standard input
and output stay the room's, for words and progress, until the room says that the terminal is the shell's. It writes no
file outside the lab's own tmpfs.

Exit status: 0, REFUSED if a command of a script could not be used, and 1 if the lab could not be built or broke; then
the last line of the standard error says why.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from emu.errors import EmuError, one_line
from emu.lab.inner import PRIVATE, keep_for_progress, mount_private, teller
from emu.lab.job import INTERRUPT, OPEN, REFUSED, Job
from emu.progress import Progress


class Words:
    """What the room says on the standard input, heard in a thread."""

    def __init__(self, source: BinaryIO) -> None:
        """Listen from now on."""
        self.opened = threading.Event()
        self._source = source
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for word in iter(self._source.readline, b""):
            if word == OPEN:
                self.opened.set()
            elif word == INTERRUPT:
                os.kill(os.getpid(), signal.SIGINT)
            else:
                break
        os._exit(130)  # told to stop, or the room is gone: there is nothing to write, and the namespaces end with this


def main(job: Path, terminal: Sequence[int], words: Words, tell: Callable[[Progress], None], log: BinaryIO) -> int:
    """Build the job's lab, hand the terminal to its shell, and return when the user leaves; the exit status."""
    try:
        mount_private()
        from emu.lab.shell_session import ShellSession  # noqa: PLC0415 - needs the tmpfs, and costs time

        session = ShellSession(Job.read(job), PRIVATE / "emu", tell)
        session.build()
        tell(Progress("done", "the shell is open", session.fabric.name))
        words.opened.wait()
        _take(terminal)
        return REFUSED if session.converse() else 0
    except EmuError as error:
        reason = str(error)
    except Exception as error:
        log.write(traceback.format_exc().encode())
        reason = f"defect: {type(error).__name__}: {error}"
    log.write(f"{one_line(reason)}\n".encode())
    return 1


def _take(terminal: Sequence[int]) -> None:
    """Make the terminal's descriptors the standard ones of this process and of all that it starts."""
    for standard, descriptor in enumerate(terminal):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    # Python's own streams keep what they knew of the room's pipe and log, which could be sought in, for one.
    sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1, errors="replace", closefd=False) for n in (1, 2))


if __name__ == "__main__":
    # Deaf until there is a prompt (the room says `stop` if it is interrupted), but not SIG_IGN: hosts would inherit it.
    signal.signal(signal.SIGINT, lambda *_: None)
    heard = Words(os.fdopen(os.dup(0), "rb", buffering=0))
    given, *ends = (int(argument) for argument in sys.argv[1:])
    kept = os.fdopen(os.dup(2), "wb", buffering=0)  # the log, when the terminal has taken the standard error's place
    status = main(Path(f"/proc/self/fd/{given}"), ends, heard, teller(keep_for_progress()), kept)
    sys.stdout.flush()
    os._exit(status)  # the namespaces end with this process, and everything in them
