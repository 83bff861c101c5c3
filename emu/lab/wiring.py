"""Proof of the wiring: a frame of its own kind leaves one end of every cable and must arrive at the other."""

from __future__ import annotations

import select
import socket
import struct
import time

from emu.lab.counters import Transmitters
from emu.lab.errors import LabError
from topologies.fabric import Fabric, Port

_ETHERTYPE = 0x88B5
"""IEEE 802's local experimental type 1: nobody else's traffic, and no switch has a rule for it."""
_TIMEOUT = 2.0


def verify_wiring(fabric: Fabric, ports: Transmitters) -> int:
    """Probe every cable in both directions and return how many probes arrived. Raises LabError naming those lost."""
    ends = {port: _open(ports, port) for link in fabric.links for port in (link.a, link.b)}
    try:
        for port, sock in ends.items():
            sock.send(_frame(port))
        lost = _receive_all(fabric, ends)
    finally:
        for sock in ends.values():
            sock.close()
    if lost:
        sample = ", ".join(f"{port} -> {fabric.peer(port)}" for port in sorted(lost)[:3])
        raise LabError(f"wiring: {len(lost)} of {len(ends)} probes did not arrive: {sample}")
    return len(ends)


def _open(ports: Transmitters, port: Port) -> socket.socket:
    with ports.namespace_of(port):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETHERTYPE))
    sock.bind((port.interface, _ETHERTYPE))
    sock.setblocking(False)
    return sock


def _frame(port: Port) -> bytes:
    return b"\xff" * 6 + b"\x02" + bytes(5) + struct.pack("!H", _ETHERTYPE) + str(port).encode().ljust(46, b"\0")


def _receive_all(fabric: Fabric, ends: dict[Port, socket.socket]) -> set[Port]:
    """The ports whose probe did not reach the other end in time."""
    missing = set(ends)
    poller = select.epoll()
    by_fd = {sock.fileno(): port for port, sock in ends.items()}
    for fd in by_fd:
        poller.register(fd, select.EPOLLIN)
    deadline = time.monotonic() + _TIMEOUT
    while missing and (left := deadline - time.monotonic()) > 0:
        for fd, _ in poller.poll(left):
            here = by_fd[fd]
            sender = ends[here].recv(2048)[14:60].rstrip(b"\0").decode(errors="replace")
            if sender == str(fabric.peer(here)):
                missing.discard(fabric.peer(here))
    poller.close()
    return missing
