"""The recorder with the real tcpdump, at both ends of a cable: what it keeps, what not, and when it stops."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emu.captures import CapturedLink, read_captures
from emu.export.packets import read_pcap
from emu.export.pcapng_file import Frame
from emu.lab.capture import Recorder
from emu.lab.namespaces import NetworkNamespace
from emu.packet.clock import ModelClock
from emu.scenario.capture_spec import Capture
from tests.lab.sealed import sealed
from topologies.fabric import Fabric, Kind, Port

pytestmark = pytest.mark.lab

IP, PROBE = b"\x08\x00", b"\x88\xb5"
LENGTH = 500
SNAPLEN = 100


@dataclass
class Cable:
    """A host and a ToR that are one cable; frames can be sent from either end."""

    folder: Path
    fabric: Fabric
    notes: list[str] = field(default_factory=list)
    net: Any = None

    def recorder(self, frames: int, *links: str) -> Recorder:
        """A recorder of these links that keeps so many frames of each."""
        limit = f"{frames * len(links) * (SNAPLEN + 16)}B"
        wanted = Capture.model_validate({"links": links, "snaplen": f"{SNAPLEN}B", "limit": limit})
        recorder = Recorder(self.fabric, wanted, 1, 100.0)
        recorder.folder = self.folder
        return recorder

    def send(self, interface: str, count: int, ethertype: bytes) -> None:
        """Send frames of an EtherType out of one end."""
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((interface, 0))
            for number in range(count):
                header = b"\x02" * 6 + b"\x04" * 6 + ethertype + b"\x45\x00\x01\xe6"
                sender.send(header + number.to_bytes(2, "big") + bytes(LENGTH - len(header) - 2))

    def kept(self) -> dict[str, tuple[CapturedLink, list[Frame]]]:
        """By link, what came out."""
        made = read_captures(self.folder)
        assert made is not None
        (repeat,) = made.repeats
        return {link.link: (link, list(read_pcap(self.folder / link.file, link.link))) for link in repeat.links}


@contextmanager
def cable(directory: Path) -> Iterator[Cable]:
    """A veth pair in the namespaces of the test."""
    subprocess.run(["ip", "link", "add", "h0-eth0", "type", "veth", "peer", "name", "t0-eth1"], check=True)
    for end in ("h0-eth0", "t0-eth1"):
        Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
        subprocess.run(["ip", "link", "set", end, "up"], check=True)
    fabric = Fabric("pair")
    fabric.add_host("h0")
    fabric.add_switch("t0", Kind.TOR)
    fabric.connect(Port("h0", 0), Port("t0", 1), rate=10**9)
    yield Cable(directory / "captures", fabric, net=SimpleNamespace(namespaces={"h0": NetworkNamespace()}))


def clock() -> ModelClock:
    """A clock whose time zero is now."""
    made = ModelClock(10.0)
    made.start()
    return made


@sealed(cable)
def test_what_a_port_sends_is_kept_with_the_kernels_stamps(made: Cable) -> None:
    recorder = made.recorder(1000, "h0:0", "t0:1")
    with recorder.recording(made):
        recorder.clock = clock()
        began = time.time_ns()
        made.send("h0-eth0", 40, IP)
        made.send("h0-eth0", 40, PROBE)  # emu's own, which is no traffic
        made.send("t0-eth1", 30, IP)
        ended = time.time_ns()
    kept = made.kept()
    assert {name: len(frames) for name, (_, frames) in kept.items()} == {"h0:0": 40, "t0:1": 30}
    assert not any(link.full or link.lost for link, _ in kept.values())
    frames = kept["h0:0"][1]
    assert [int.from_bytes(frame.data[18:20], "big") for frame in frames] == list(range(40))
    assert {(frame.length, len(frame.data)) for frame in frames} == {(LENGTH, SNAPLEN)}
    assert began <= frames[0].at_ns <= frames[-1].at_ns <= ended
    assert any(frame.at_ns % 1000 for frame in frames), "stamps are in nanoseconds"


@sealed(cable)
def test_a_capture_ends_at_its_limit_and_says_so(made: Cable) -> None:
    recorder = made.recorder(100, "h0:0", "t0:1")
    with recorder.recording(made):
        recorder.clock = clock()
        made.send("h0-eth0", 150, IP)
        made.send("t0-eth1", 50, IP)
    kept = made.kept()
    assert {name: (link.full, len(frames)) for name, (link, frames) in kept.items()} == {
        "h0:0": (True, 100),
        "t0:1": (False, 50),
    }
    size = sum(path.stat().st_size for path in made.folder.glob("*.pcap"))
    assert size <= 2 * 100 * (SNAPLEN + 16) + 2 * 24
    assert "repeat 1: the capture of h0:0 -> t0:1 reached its limit of 100 frames; later ones are missing" in made.notes


@sealed(cable)
def test_no_tcpdump_is_left_when_the_lab_breaks(made: Cable) -> None:
    recorder = made.recorder(100, "h0:0")
    try:
        with recorder.recording(made):
            recorder.clock = clock()
            made.send("h0-eth0", 10, IP)
            raise RuntimeError("the lab broke")
    except RuntimeError:
        pass
    running = [path.read_text().strip() for path in Path("/proc").glob("[0-9]*/comm")]
    assert "tcpdump" not in running
    assert made.kept()["h0:0"][0].full is False
