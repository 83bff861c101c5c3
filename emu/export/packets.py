"""The packets of captured links in one pcapng file, for Wireshark.

Each link is an interface, named `<fabric>/<port>`, with its rate in the lab and a description. Frames carry the stamps
of the lab's kernel, in nanoseconds of wall time: what was measured, and what an analysis of TCP must see. Where
circuits went dark or came back, the next frame of the fabric has a comment that says so, with the modelled time; the
file's own comment lists all these events.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, Final

from emu.captures import FOLDER, CapturedLink, CapturedRepeat, read_captures
from emu.errors import InputError
from emu.export.cells import real, text
from emu.export.pcapng_file import Frame, Interface, PcapngFile
from emu.export.selection import Selection
from emu.units import format_rate

HOW: Final = 'add for instance `capture: {links: ["h0:0 -> t0"]}` to the scenario and run it again'
_CIRCUITS: Final = frozenset({"dark", "lit", "aborted"})
"""Events that frames should be seen before and after."""


@dataclass(frozen=True, slots=True)
class Captured:
    """What was captured of one fabric, as far as it is exported. snaplen: bytes of each frame."""

    fabric: str
    snaplen: int
    repeats: Sequence[CapturedRepeat]

    def links(self) -> Iterator[tuple[CapturedRepeat, CapturedLink]]:
        """Every link of every repeat."""
        return ((repeat, link) for repeat in self.repeats for link in repeat.links)

    def name(self, link: CapturedLink) -> str:
        """The name of a link's interface."""
        return f"{self.fabric}/{link.link}"


@dataclass(frozen=True, slots=True)
class Mark:
    """An event of a fabric. at_ns: CLOCK_REALTIME."""

    at_ns: int
    fabric: str
    text: str


def write(selection: Selection, stream: BinaryIO) -> None:
    """Write the packets. Raises InputError for a run that captured none, or whose captures cannot be read."""
    found = _captured(selection)
    marks = sorted((mark for captured in found for mark in _marks(selection, captured)), key=attrgetter("at_ns"))
    application = f"emu {selection.manifest.emu}"
    file = PcapngFile(stream, application, _about(selection, marks), _interfaces(found))
    frames = heapq.merge(*_files(selection.directory / FOLDER, found), key=attrgetter("at_ns"))
    for frame, comments in commented(frames, marks):
        file.add(frame, comments)
    file.finish()
    selection.notes.extend(_missing(found))


# -- what was captured -------------------------------------------------------------------------------------------------


def _captured(selection: Selection) -> list[Captured]:
    found = []
    for fabric in selection.fabrics:
        captures = read_captures(selection.directory / FOLDER / fabric.name)
        repeats = [one for one in captures.repeats if selection.repeat in (None, one.repeat)] if captures else []
        if captures and repeats:
            found.append(Captured(fabric.name, captures.snaplen, repeats))
    if not found:
        names = ", ".join(fabric.name for fabric in selection.fabrics)
        raise InputError(f"{selection.directory} has no captured packets of {names}", hint=HOW)
    return found


def _interfaces(found: Iterable[Captured]) -> list[Interface]:
    """One for each link, however many repeats it was captured in."""
    interfaces = []
    for captured in found:
        links: dict[str, list[CapturedLink]] = defaultdict(list)
        for _, link in captured.links():
            links[captured.name(link)].append(link)
        for name, same in links.items():
            what = f"{same[0].link} -> {same[0].peer} on {captured.fabric}: {format_rate(same[0].rate)} modelled"
            lost = sum(link.lost for link in same)
            interfaces.append(Interface(name, what, same[0].rate_emulated, captured.snaplen, lost))
    return interfaces


def _files(folder: Path, found: Iterable[Captured]) -> Iterator[Iterator[Frame]]:
    for captured in found:
        for _, link in captured.links():
            yield read_pcap(folder / captured.fabric / link.file, captured.name(link))


def read_pcap(path: Path, interface: str) -> Iterator[Frame]:
    """The frames of a pcap file, in its order; none of an empty file, and not one that was cut off.

    Raises InputError for a file that cannot be read.
    """
    from scapy.error import Scapy_Exception  # noqa: PLC0415 - scapy takes half a second to import
    from scapy.utils import RawPcapReader  # noqa: PLC0415

    try:
        if not path.stat().st_size:
            return
        with RawPcapReader(str(path)) as reader:
            unit = 1 if reader.nano else 1000
            for data, about in reader:
                if len(data) == about.caplen:
                    yield Frame(about.sec * 1_000_000_000 + about.usec * unit, interface, about.wirelen, data)
    except (OSError, Scapy_Exception) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _missing(found: Iterable[Captured]) -> Iterator[str]:
    for captured in found:
        for repeat, link in captured.links():
            name = f"{captured.name(link)} in repeat {repeat.repeat}"
            if link.full:
                yield f"{name}: only the first {link.most} frames were captured"
            if link.lost:
                yield f"{name}: {link.lost} frames were not captured, for they were not read in time"


# -- events ------------------------------------------------------------------------------------------------------------


def _marks(selection: Selection, captured: Captured) -> Iterator[Mark]:
    fabric = captured.fabric
    for repeat in captured.repeats:
        begins = f"{fabric}, repeat {repeat.repeat}"
        yield Mark(repeat.zero_ns, fabric, f"{begins}: time zero")
        for row in selection.rows("events", fabric, repeat.repeat):
            if text(row, "event") in _CIRCUITS:
                at = real(row, "at_s")
                what = f"{text(row, 'event')} {text(row, 'subject')} at {at:.9g} s modelled: {text(row, 'detail')}"
                yield Mark(repeat.wall_ns(at), fabric, f"{begins}: {what}")


def commented(frames: Iterable[Frame], marks: Iterable[Mark]) -> Iterator[tuple[Frame, list[str]]]:
    """Every frame with the marks of its fabric since the fabric's frame before; both in the order of their instants."""
    waiting: Mapping[str, deque[Mark]] = defaultdict(deque)
    for mark in marks:
        waiting[mark.fabric].append(mark)
    for frame in frames:
        queue = waiting[frame.interface.partition("/")[0]]
        comments = []
        while queue and queue[0].at_ns <= frame.at_ns:
            comments.append(queue.popleft().text)
        yield frame, comments


def _about(selection: Selection, marks: Iterable[Mark]) -> str:
    run = selection.manifest
    scale = f"sigma {run.scale.sigma:g} for bytes, beta {run.scale.beta:g} for rates"
    lines = [
        f"Run {run.name} (scenario {run.scenario_hash}): {run.verdict}.",
        f"Stamps are the lab's wall time: {run.scale.tdf:g} s of it are one modelled second ({scale}).",
        *(f"{_instant(mark.at_ns)} {mark.text}" for mark in marks),
    ]
    return "\n".join(lines)


def _instant(at_ns: int) -> str:
    seconds, rest = divmod(at_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
