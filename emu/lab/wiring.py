"""Proof of the wiring: a frame of its own kind leaves one end of every cable and must arrive at the other."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time

from emu.lab.counters import Transmitters
from emu.lab.errors import LabError
from topologies.fabric import Fabric, Kind, Port

_ETHERTYPE = 0x88B5
"""IEEE 802's local experimental type 1: nobody else's traffic, and no switch has a rule for it."""
_TIMEOUT = 2.0
_SWITCHES = ""
"""Stands for all switches, whose ports are in one namespace."""


def verify_wiring(fabric: Fabric, ports: Transmitters) -> int:
    """Probe every cable in both directions and return how many probes arrived. Raises LabError naming those lost."""
    ends = {port.interface: port for link in fabric.links for port in (link.a, link.b)}
    probe = _Probe(fabric, ports, ends)
    try:
        for port in ends.values():
            probe.send(port)
        probe.receive(_TIMEOUT)
    finally:
        probe.close()
    if probe.missing:
        sample = ", ".join(f"{port} -> {fabric.peer(port)}" for port in sorted(probe.missing)[:3])
        raise LabError(f"wiring: {len(probe.missing)} of {len(ends)} probes did not arrive: {sample}")
    return len(ends)


class _Probe:
    """One socket for each namespace, open to all its interfaces: to close one takes the kernel 10 ms and more."""

    def __init__(self, fabric: Fabric, ports: Transmitters, ends: dict[str, Port]) -> None:
        self.missing = set(ends.values())
        self._fabric, self._ends = fabric, ends
        self._sockets: dict[str, socket.socket] = {}
        for port in ends.values():
            if self._place(port) not in self._sockets:
                self._sockets[self._place(port)] = _open(ports, port)
        self._by_fd = {sock.fileno(): sock for sock in self._sockets.values()}
        self._poller = select.epoll()
        for fd in self._by_fd:
            self._poller.register(fd, select.EPOLLIN)

    def send(self, port: Port) -> None:
        """Send the port's probe, and take in what has arrived so that no receive buffer fills up."""
        sock = self._sockets[self._place(port)]
        with contextlib.suppress(OSError):  # the interface is down: its probe is among those that did not arrive
            sock.sendto(_frame(port), (port.interface, _ETHERTYPE))
        self.receive(0.0)

    def receive(self, timeout: float) -> None:
        """Strike off the ports whose probe reached the other end, until all did or `timeout` is over."""
        deadline = time.monotonic() + timeout
        while self.missing and (ready := self._poller.poll(max(0.0, deadline - time.monotonic()))):
            for fd, _ in ready:
                self._strike(*self._by_fd[fd].recvfrom(2048))

    def close(self) -> None:
        """Close the sockets."""
        self._poller.close()
        for sock in self._sockets.values():
            sock.close()

    def _strike(self, frame: bytes, address: tuple[str, int]) -> None:
        here, sender = self._ends.get(address[0]), frame[14:60].rstrip(b"\0").decode(errors="replace")
        if here is not None and sender == str(self._fabric.peer(here)):
            self.missing.discard(self._fabric.peer(here))

    def _place(self, port: Port) -> str:
        return port.node if self._fabric.node(port.node).kind is Kind.HOST else _SWITCHES


def _open(ports: Transmitters, port: Port) -> socket.socket:
    with ports.namespace_of(port):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETHERTYPE))
    sock.setblocking(False)
    return sock


def _frame(port: Port) -> bytes:
    return b"\xff" * 6 + b"\x02" + bytes(5) + struct.pack("!H", _ETHERTYPE) + str(port).encode().ljust(46, b"\0")
