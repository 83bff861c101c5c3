"""Captures of links: a tcpdump at each port whose egress the scenario wants to see, for as long as a repeat runs.

tcpdump sees a frame as it leaves the port, behind the port's shaper: its stamps are when the wire took it. It is a
process of its own, so the traffic loop is not held up by it but for the processor that both share. Only IP is kept:
emu's own probes are no traffic.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from emu.captures import CapturedLink, CapturedRepeat, Captures
from emu.lab.errors import LabError
from emu.lab.network import LabNet
from emu.lab.tap import clock_offset
from emu.packet.clock import ModelClock
from emu.scenario.capture_spec import Capture, captured
from topologies.fabric import Fabric, Kind, Port

_DRAIN = 1.1
"""Wall seconds in which tcpdump reads what the kernel holds back for it (libpcap's time-out is 1 s)."""
_END = 2.0
_BUFFER_KIB = 4096
_LOST = re.compile(r"^(\d+) packets? dropped by kernel", re.MULTILINE)


class Lab(Protocol):
    """What a recorder needs of a lab. notes: what should be said about the run."""

    notes: list[str]
    net: LabNet


class Recorder:
    """Captures links of a lab, repeat after repeat. Without links to capture it does nothing.

    clock: that of the repeat under way; whoever makes it sets it.
    """

    def __init__(self, fabric: Fabric, wanted: Capture | None, repeats: int, beta: float) -> None:
        """repeats: how many will be run, since they share the limit. Raises LabError if there is no tcpdump."""
        self._fabric, self._wanted, self._beta = fabric, wanted, beta
        self._ports = captured(fabric, wanted.links) if wanted else []
        self._most = wanted.frames(len(self._ports), repeats) if wanted and self._ports else 0
        self._made = Captures(wanted.snaplen if wanted else 0)
        self.clock: ModelClock | None = None
        self.folder: Path | None = None
        if self._ports and shutil.which("tcpdump") is None:
            raise LabError("tcpdump not found, which captures links; fix: apt-get install tcpdump")

    @contextmanager
    def recording(self, lab: Lab) -> Iterator[None]:
        """Inside the block frames are kept. Raises LabError if a link cannot be captured."""
        if not self._ports or self.folder is None:
            yield
            return
        number = len(self._made.repeats) + 1
        folder = self.folder
        folder.mkdir(exist_ok=True)
        sessions = [_Session(self._link(port, number), folder, self._command(port)) for port in self._ports]
        self.clock = None
        try:
            for session, port in zip(sessions, self._ports, strict=True):
                session.start(self._namespace(lab, port))
            for session in sessions:
                session.wait()
            yield
            time.sleep(_DRAIN)
        finally:  # an interrupt does not wait for the last frames
            for session in sessions:
                session.end()
            links = [session.result() for session in sessions]
            self._keep(number, links, lab)

    # -- helpers -----------------------------------------------------------------

    def _link(self, port: Port, number: int) -> CapturedLink:
        rate = self._fabric.link(port).rate
        return CapturedLink(
            link=str(port),
            peer=str(self._fabric.peer(port)),
            rate=rate,
            rate_emulated=round(rate / self._beta),
            file=f"{number}-{port.interface}.pcap",
            most=self._most,
        )

    def _command(self, port: Port) -> list[str]:
        return [
            *("tcpdump", "-i", port.interface, "-Q", "out", "-n", "-s", str(self._made.snaplen)),
            *("-c", str(self._most), "-B", str(_BUFFER_KIB), "-Z", "root"),
            *("--time-stamp-precision=nano", "-w", "-", "ip"),
        ]

    def _namespace(self, lab: Lab, port: Port) -> AbstractContextManager[None]:
        inside = self._fabric.node(port.node).kind is Kind.HOST
        return lab.net.namespaces[port.node].entered() if inside else nullcontext()

    def _keep(self, number: int, links: list[CapturedLink], lab: Lab) -> None:
        """Write the index anew, and say what is missing. A repeat that never came to time zero is not kept."""
        if self.clock is None or not self.clock.wall(0.0) or self.folder is None:
            return
        jumps = [(jump.start, jump.end) for jump in self.clock.jumps]
        zero = self.clock.wall(0.0) + sum(end - start for start, end in jumps) * self.clock.tdf
        repeat = CapturedRepeat(number, round(zero * 1e9) + clock_offset(), self.clock.tdf, jumps, links)
        self._made.repeats.append(repeat)
        self._made.write(self.folder)
        lab.notes += _notes(repeat)


class _Session:
    """One tcpdump at one port."""

    def __init__(self, link: CapturedLink, folder: Path, command: list[str]) -> None:
        self._link, self._file, self._command = link, folder / link.file, command
        self._process: subprocess.Popen[bytes] | None = None
        self._full = False

    def start(self, namespace: AbstractContextManager[None]) -> None:
        with self._file.open("wb") as out, namespace:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE
            )

    def wait(self) -> None:
        """Until it listens."""
        assert self._process is not None
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            if b"listening on" in line:
                return
            said.append(line.decode(errors="replace").strip())
        raise LabError(f"tcpdump cannot capture {self._link.link}: {'; '.join(said) or 'it ended'}")

    def end(self) -> None:
        """Ask it to end, if it has not reached its limit."""
        if self._process is not None:
            self._full = self._process.poll() == 0
            self._process.terminate()  # and not SIGINT, which programs that a shell starts in the background ignore

    def result(self) -> CapturedLink:
        """Wait for its end; the link with what came out."""
        if self._process is None:
            return self._link
        try:
            _, said = self._process.communicate(timeout=_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, said = self._process.communicate()
        lost = _LOST.search(said.decode(errors="replace"))
        return replace(self._link, full=self._full, lost=int(lost[1]) if lost else 0)


def _notes(repeat: CapturedRepeat) -> list[str]:
    notes = [] if repeat.repeat > 1 else [f"{len(repeat.links)} links were captured, which takes processor time"]
    for link in repeat.links:
        name = f"repeat {repeat.repeat}: the capture of {link.link} -> {link.peer}"
        if link.full:
            notes.append(f"{name} reached its limit of {link.most} frames; later ones are missing")
        if link.lost:
            notes.append(f"{name} lost {link.lost} frames, which were not read in time")
    return notes
