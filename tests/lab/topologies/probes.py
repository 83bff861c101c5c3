"""Numbered frames, sent past the hosts' own stacks, and every frame that comes to hosts or leaves switches."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import checksum

from emu.lab.network import mac_address
from tests.lab.topologies.bench import Bench
from topologies.fabric import Port

PROBE_PORT = 7777
TTL = 17
_ALL = 0x0003
_HEADER = slice(14, 34)
_ID, _SUM = 18, 24
"""Where the IPv4 header, its identification and its checksum are in a frame."""
_SO_RCVBUFFORCE = 33


@dataclass(frozen=True, slots=True)
class Arrival:
    """A probe that was seen: its number (its IPv4 identification), its time to live, and when it was sent (ns)."""

    number: int
    ttl: int
    sent_ns: int


class Probes:
    """A source of numbered probes from one NIC to another, or to an `address` that the other does not have."""

    def __init__(self, bench: Bench, src: Port, dst: Port, address: str = "") -> None:
        fabric = bench.fabric
        packet = IP(src=fabric.address(src), dst=address or fabric.address(dst), ttl=TTL)
        datagram = UDP(sport=PROBE_PORT, dport=PROBE_PORT, chksum=0) / Raw(bytes(8))
        # Built once: scapy takes a millisecond for a packet.
        self._frame = bytearray(
            bytes(Ether(src=mac_address(fabric, src), dst=mac_address(fabric, dst)) / packet / datagram)
        )
        self._socket = _packet_socket(bench, src, 0)
        self.count = 0

    def send(self) -> None:
        """Send the next one; its payload is the time."""
        frame = self._frame
        frame[_ID : _ID + 2] = self.count.to_bytes(2, "big")
        frame[_SUM : _SUM + 2] = bytes(2)
        frame[_SUM : _SUM + 2] = checksum(bytes(frame[_HEADER])).to_bytes(2, "big")
        frame[-8:] = time.monotonic_ns().to_bytes(8, "big")
        self._socket.send(frame)
        self.count += 1


class Capture:
    """Every IPv4 frame that comes in at a NIC."""

    def __init__(self, bench: Bench, at: Port) -> None:
        self._socket = _packet_socket(bench, at, _ALL)

    def arrivals(self) -> list[Arrival]:
        """What has come since the last call, in order; fails on IPv4 that is no probe."""
        found: list[Arrival] = []
        while True:
            try:
                frame, address = self._socket.recvfrom(2048)
            except BlockingIOError:
                return found
            if address[2] != socket.PACKET_OUTGOING and address[1] == 0x0800:
                packet = Ether(frame)
                assert packet[UDP].dport == PROBE_PORT, packet.summary()
                sent = int.from_bytes(bytes(packet[Raw].load)[:8], "big")
                found.append(Arrival(packet[IP].id, packet[IP].ttl, sent))


def swallow(bench: Bench, at: Iterable[Port]) -> list[socket.socket]:
    """Let hosts take probes for theirs: the kernel would answer an unknown port with ICMP. Keep what is returned."""
    sinks = []
    for nic in at:
        with bench.lab.ports.namespace_of(nic):
            sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sink.bind((bench.fabric.address(nic), PROBE_PORT))
        sinks.append(sink)
    return sinks


def _packet_socket(bench: Bench, at: Port, protocol: int) -> socket.socket:
    with bench.lab.ports.namespace_of(at):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 16 << 20)  # frames are read after the test
    sock.bind((at.interface, protocol))
    sock.setblocking(False)
    return sock
