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
from pathlib import Path

from emu.errors import EmuError
from emu.lab.job import CAPACITY, JOB, MEASUREMENT, Job, encode_progress, write_capacity
from emu.measurement import Measurement
from emu.progress import Progress

_PRIVATE = Path("/run")
"""Where the lab's own tmpfs goes: a directory that every system has, and whose contents (sockets of the system's own
Open vSwitch among them) a lab must not see."""


def main(directory: Path) -> int:
    """Do the job of a run directory; returns the exit status."""
    job = Job.read(directory / JOB)
    threading.Thread(target=_obey, daemon=True).start()
    measurement = Measurement("", job.sigma, job.beta)
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "emu", str(_PRIVATE)], check=True)
        measurement = _work(job, directory)
    except KeyboardInterrupt:
        return 130
    except EmuError as error:
        measurement.error = str(error)
        measurement.write(directory / MEASUREMENT)
        return error.exit_status
    except Exception:
        traceback.print_exc()
        measurement.error = f"defect: {traceback.format_exc(limit=-1).strip().splitlines()[-1]}"
        measurement.write(directory / MEASUREMENT)
        return 1
    return 0


def _work(job: Job, directory: Path) -> Measurement:
    from emu.lab.session import Session  # noqa: PLC0415 - needs the tmpfs, and costs time that progress should show
    from emu.scenario.load import load_plugins  # noqa: PLC0415
    from emu.scenario.schema import Scenario  # noqa: PLC0415

    load_plugins(job.plugins)
    session = Session(job, Scenario.from_json(job.scenario), _PRIVATE / "emu", _tell)
    if job.stage == "capacity":
        write_capacity(session.capacity(), directory / CAPACITY)
        return session.measurement
    try:
        session.measure()
    except KeyboardInterrupt:
        session.measurement.partial = True
        raise
    except EmuError as error:
        session.measurement.error = str(error)
    finally:
        session.measurement.write(directory / MEASUREMENT)
    return session.measurement


def _tell(progress: Progress) -> None:
    sys.stdout.buffer.write(encode_progress(progress))
    sys.stdout.buffer.flush()


def _obey() -> None:
    """Stop when told to, or when whoever started the room is gone (the end of the standard input)."""
    sys.stdin.buffer.readline()
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    status = main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(status)  # the namespaces end with this process, and everything in them; nothing is left to tidy up
