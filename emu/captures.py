"""What a lab hands back of the links that it captured: one pcap file a link and repeat, and an index of them.

A lab writes both into `captures/` of its own folder; a run directory has them in `captures/<fabric>/`. Frames carry the
kernel's stamps (CLOCK_REALTIME, nanoseconds) in wall time; the index says how modelled time maps onto them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from emu.errors import InputError

FOLDER = "captures"
INDEX = "captures.json"


@dataclass(frozen=True, slots=True)
class CapturedLink:
    """One direction of a link in one repeat.

    link, peer: the port that transmits and the one that receives. rate, rate_emulated: bit/s, modelled and in the lab.
    file: beside the index. most: frames after which the capture ends. full: it ended there, and later frames are
    missing. lost: frames that the kernel dropped because they were not read in time.
    """

    link: str
    peer: str
    rate: int
    rate_emulated: int
    file: str
    most: int
    full: bool = False
    lost: int = 0


@dataclass(frozen=True, slots=True)
class CapturedRepeat:
    """The captures of one repeat, and its clock.

    zero_ns: CLOCK_REALTIME at time zero. tdf: wall seconds for each modelled one.
    jumps: idle stretches that were skipped, from and to in modelled seconds, in order.
    """

    repeat: int
    zero_ns: int
    tdf: float
    jumps: list[tuple[float, float]]
    links: list[CapturedLink]

    def wall_ns(self, at: float) -> int:
        """CLOCK_REALTIME at a modelled instant; of one that was skipped, when it was."""
        skipped = sum(min(at, end) - start for start, end in self.jumps if start < at)
        return self.zero_ns + round((at - skipped) * self.tdf * 1e9)


@dataclass(slots=True)
class Captures:
    """All captures of one fabric. snaplen: bytes kept of each frame."""

    snaplen: int
    repeats: list[CapturedRepeat] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Write the index, whole or not at all."""
        draft = folder / f"{INDEX}.part"
        draft.write_bytes(_JSON.dump_json(self, indent=1))
        draft.replace(folder / INDEX)


def read_captures(folder: Path) -> Captures | None:
    """The index of a folder with captures; None if there is none. Raises InputError for one that is spoiled."""
    try:
        return _JSON.validate_json((folder / INDEX).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise InputError(f"{folder / INDEX} cannot be read: {error}") from error


def collect(lab: Path, directory: Path, fabric: str) -> None:
    """Move what a lab captured from its folder into the run directory; nothing if it captured nothing."""
    made = lab / FOLDER
    if not made.is_dir():
        return
    parent = directory / FOLDER
    parent.mkdir(exist_ok=True)
    made.replace(parent / fabric)


_JSON: TypeAdapter[Captures] = TypeAdapter(Captures)
