"""The inner program: `python -m emu.lab.inner RUN_DIRECTORY`, started by a room as the first process of its namespaces.

It reads the job, builds the lab, does the work and writes what came out. It knows nothing of its room and touches
nothing of the host but the run directory.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from emu.captures import FOLDER
from emu.errors import EmuError
from emu.lab.job import CAPACITY, JOB, MEASUREMENT, Job, encode_progress, write_capacity
from emu.measurement import Measurement
from emu.progress import Progress

PRIVATE = Path("/run")
"""Where the lab's own tmpfs goes: a directory that every system has, and whose contents (sockets of the system's own
Open vSwitch among them) a lab must not see."""


def main(directory: Path, tell: Callable[[Progress], None]) -> int:
    """Do the job of a run directory and tell how far it is; returns the exit status."""
    job = Job.read(directory / JOB)
    threading.Thread(target=_obey, daemon=True).start()
    measurement = Measurement("", job.sigma, job.beta)
    try:
        mount_private()
        measurement = _work(job, directory, tell)
    except KeyboardInterrupt:
        return 130
    except EmuError as error:
        measurement.error = str(error)
        measurement.write(directory / MEASUREMENT)
        return error.exit_status
    except Exception:
        measurement.error = _defect()
        measurement.write(directory / MEASUREMENT)
        return 1
    return 0


def mount_private() -> None:
    """Give this mount namespace a file system of its own at PRIVATE, which ends with it."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "emu", str(PRIVATE)], check=True)


def _work(job: Job, directory: Path, tell: Callable[[Progress], None]) -> Measurement:
    from emu.lab.session import Session  # noqa: PLC0415 - needs the tmpfs, and costs time that progress should show
    from emu.scenario.load import load_plugins  # noqa: PLC0415
    from emu.scenario.schema import Scenario  # noqa: PLC0415

    load_plugins(job.plugins)
    session = Session(job, Scenario.from_json(job.scenario), PRIVATE / "emu", tell)
    session.recorder.folder = directory / FOLDER
    if job.stage == "capacity":
        write_capacity(session.capacity(), directory / CAPACITY)
        return session.measurement
    try:
        session.measure()
    except KeyboardInterrupt:
        session.measurement.partial = True
        raise
    except EmuError as error:
        session.measurement.error = str(_origin(error))
    except Exception:  # what was measured before it must not be lost
        session.measurement.error = _defect()
    finally:
        session.measurement.write(directory / MEASUREMENT)
    return session.measurement


def _origin(error: EmuError) -> EmuError:
    """The first of several errors: the counters of a lab that broke may fail to be read, and that is not why."""
    while error.__cause__ is None and isinstance(error.__context__, EmuError):
        error = error.__context__
    return error


def _defect() -> str:
    """What the current exception is, in one line; the log gets its traceback."""
    traceback.print_exc()
    return f"defect: {traceback.format_exc(limit=-1).strip().splitlines()[-1]}"


def keep_for_progress() -> BinaryIO:
    """The standard output, for progress alone: what a plugin or a program of the lab prints goes to the log."""
    progress = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return progress


def teller(output: BinaryIO) -> Callable[[Progress], None]:
    """What writes progress, one line each."""

    def tell(progress: Progress) -> None:
        output.write(encode_progress(progress))
        output.flush()

    return tell


def _obey() -> None:
    """Stop when told to, or when whoever started the room is gone (the end of the standard input)."""
    sys.stdin.buffer.readline()
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    status = main(Path(sys.argv[1]), teller(keep_for_progress()))
    sys.stdout.flush()
    os._exit(status)  # the namespaces end with this process, and everything in them; nothing is left to tidy up
