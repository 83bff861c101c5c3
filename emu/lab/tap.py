"""Frames of one EtherType, seen where they arrive, with the kernel's own time stamps.

A `Tap` costs nothing until such a frame comes: a packet socket of a particular EtherType is not asked about any other.
(The kernel's Open vSwitch datapath takes frames before such sockets see them. There a tap asks for everything, with a
filter in the kernel, so that still only its own frames are copied.) What arrives waits in the socket with its stamp, so
it may be read whenever there is time.

The kernel stamps packets by CLOCK_REALTIME; everything else here is CLOCK_MONOTONIC. The two are read together, at
each reading anew, and stamps are handed out as monotonic nanoseconds.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

_SO_TIMESTAMPNS, _SO_RCVBUFFORCE, _SO_ATTACH_FILTER = 35, 33, 26
_SOL_PACKET, _PACKET_QDISC_BYPASS = 263, 20
_ALL = 0x0003
_TIMESPEC = struct.Struct("@qq")
_INSTRUCTION = struct.Struct("@HBBI")
_LONGEST, _BUFFER = 128, 8 << 20


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that arrived: at which interface, when (CLOCK_MONOTONIC, ns), and what follows its Ethernet header."""

    interface: str
    at_ns: int
    payload: bytes


class Tap:
    """Every frame of one EtherType that arrives at an interface of one network namespace."""

    def __init__(
        self,
        ethertype: int,
        namespace: AbstractContextManager[None],
        *,
        everything: bool = False,
        buffer: int = _BUFFER,
    ) -> None:
        """Listen from now on.

        everything: ask for all frames and filter, as the kernel's datapath needs it.
        buffer: bytes of frames that may wait to be read, each with all that the kernel keeps of it.
        """
        self._ethertype = struct.pack("!H", ethertype)
        with namespace:
            protocol = socket.htons(_ALL if everything else ethertype)
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, protocol)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, buffer)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        if everything:
            _filter(self._socket, ethertype)

    def frames(self) -> Iterator[Frame]:
        """What has arrived since the last call, in order."""
        offset = clock_offset()
        while True:
            try:
                data, ancillary, _, address = self._socket.recvmsg(_LONGEST, 64)
            except BlockingIOError:
                return
            stamp = next((value for level, kind, value in ancillary if kind == _SO_TIMESTAMPNS), None)
            ours = address[2] != socket.PACKET_OUTGOING and data[12:14] == self._ethertype
            if ours and stamp is not None:
                seconds, rest = _TIMESPEC.unpack(stamp)
                yield Frame(address[0], seconds * 1_000_000_000 + rest - offset, data[14:])

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


def clock_offset() -> int:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC in ns, from the reading that was interrupted least."""
    readings = []
    for _ in range(3):
        before = time.monotonic_ns()
        real = time.time_ns()
        after = time.monotonic_ns()
        readings.append((after - before, real - (before + after) // 2))
    return min(readings)[1]


def unshaped_sender(namespace: AbstractContextManager[None]) -> socket.socket:
    """A packet socket whose frames go past every queue and shaper, straight onto the wire; it receives nothing."""
    with namespace:
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
    sender.setblocking(False)
    return sender


def _filter(sock: socket.socket, ethertype: int) -> None:
    """Let only frames of one EtherType through: load the half-word at 12, compare, accept all of it or nothing."""
    steps = ((0x28, 0, 0, 12), (0x15, 0, 1, ethertype), (0x06, 0, 0, 0xFFFF), (0x06, 0, 0, 0))
    program = ctypes.create_string_buffer(b"".join(_INSTRUCTION.pack(*step) for step in steps))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(steps), ctypes.addressof(program)))
