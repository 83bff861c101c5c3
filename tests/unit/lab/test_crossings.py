"""What crosses between pods, from the text of /proc/net/dev."""

from __future__ import annotations

from emu.crossing import Crossing
from emu.lab.crossings import CrossingMeter
from topologies.hybrid import hybrid

_HEAD = "Inter-|   Receive                 |  Transmit\n face |bytes packets errs ...|bytes packets errs ...\n"


def line(name: str, sent: int, packets: int) -> str:
    return (
        f"{name:>8}: 7000000  5000    0    0    0     0     0      0 {sent} {packets}    0    0    0     0   0      0\n"
    )


def test_payload_is_what_frames_have_beyond_their_headers() -> None:
    fabric = hybrid(pods=2, hosts_per_pod=1, uplinks=1, electrical_rate=100_000_000_000)
    core = next(port for port in fabric.ports("t0") if fabric.peer(port).node == "c0")
    other = next(port for port in fabric.ports("t1") if fabric.peer(port).node == "c0")
    down = fabric.peer(core)
    text = (
        _HEAD
        + line("lo", 1, 1)
        + line("o0-eth1", 9014 + 66, 2)  # a full frame, and an acknowledgement of 66 bytes
        + line("o0-eth2", 66 * 40, 40)
        + line(core.interface, 9014 * 3, 3)
        + line(other.interface, 66, 1)
        + line(down.interface, 9014, 1)  # goes down again: counted on its way up
    )
    assert CrossingMeter(fabric, sigma=10).read(text) == Crossing(circuits=89_480, core=268_440)
