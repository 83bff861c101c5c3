"""What a room is given and what it gives back: the only things that pass between a lab and the outside.

In: one `job.json` in the run directory. Out: progress as JSON lines on the standard output while it runs, and
`measurement.json` (or `capacity.json`) beside the job. On the standard input one word, `stop`, or its end.

A shell leaves nothing behind and has no run directory: its job is an open file, and so are the three ends of the user's
terminal. On its standard input come also `open` (the terminal is the shell's from now on) and `interrupt` (Ctrl-C).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from emu.measurement import Capacity
from emu.progress import Progress

STOP, OPEN, INTERRUPT = b"stop\n", b"open\n", b"interrupt\n"
"""The words for a lab's standard input."""
REFUSED = 2
"""Exit status of a shell that read a script with a command that could not be used."""
JOB, MEASUREMENT, CAPACITY, LOG = "job.json", "measurement.json", "capacity.json", "lab.log"


@dataclass(frozen=True, slots=True)
class Job:
    """One lab's work.

    stage: `capacity` finds out what the fabric carries here, `measure` runs the workload, `shell` gives the user a
    prompt.
    scenario: canonical JSON. fabric: which of its fabrics. plugins: builder files, absolute.
    sigma, beta, buckets: the plan. seeds: one for each repeat.
    """

    stage: Literal["capacity", "measure", "shell"]
    scenario: str
    fabric: int
    plugins: tuple[str, ...] = ()
    sigma: float = 1.0
    beta: float = 1.0
    buckets: int | None = None
    seeds: tuple[int, ...] = field(default_factory=tuple)
    room: str = "host"

    def encode(self) -> bytes:
        """It as JSON."""
        return _JOB.dump_json(self)

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_bytes(self.encode())

    @classmethod
    def read(cls, path: Path) -> Job:
        """Read what `write` or `encode` wrote."""
        return _JOB.validate_json(path.read_bytes())


def encode_progress(progress: Progress) -> bytes:
    """One line of a lab's standard output."""
    return _PROGRESS.dump_json(progress) + b"\n"


def decode_progress(line: bytes) -> Progress:
    """Read such a line. Raises pydantic's ValidationError if it is none."""
    return _PROGRESS.validate_json(line)


def write_capacity(capacity: Capacity, path: Path) -> None:
    """Write what was calibrated, whole or not at all."""
    draft = path.with_suffix(".part")
    draft.write_bytes(_CAPACITY.dump_json(capacity))
    draft.replace(path)


def read_capacity(path: Path) -> Capacity:
    """Read what `write_capacity` wrote."""
    return _CAPACITY.validate_json(path.read_bytes())


_JOB: TypeAdapter[Job] = TypeAdapter(Job)
_PROGRESS: TypeAdapter[Progress] = TypeAdapter(Progress)
_CAPACITY: TypeAdapter[Capacity] = TypeAdapter(Capacity)
