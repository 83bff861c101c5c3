"""Queues that can be closed and opened: a token bucket (TBF) at an interface, changed over netlink.

A change keeps what is in the queue. Closed, every frame is reckoned as 65535 bytes (the kernel's `mpu`), which is more
than the bucket ever holds, so that none leaves; with a rate that is merely small, a bucket's worth would still leave
after each change, for the kernel fills the bucket then. Opened again, the queue runs when the next frame comes: a small
frame of a kind that no switch has a rule for is sent after it, and dies behind the interface.

Messages are made here by hand, for the controller must send them at an instant, whichever event loop it runs on.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

_NEW_QDISC, _REQUEST, _ACK, _CREATE, _REPLACE = 36, 0x1, 0x4, 0x400, 0x100
_ROOT, _HANDLE = 0xFFFFFFFF, 0x10000
_KIND, _OPTIONS, _PARAMETERS = 1, 2, 1
_HEADER = struct.Struct("=IHHII")
_QDISC = struct.Struct("=BxHiIII")
_RATE = struct.Struct("=BBHhHI")
_ETHERNET = 1
"""Link layer: without one, the kernel wants a table of times."""
_TICK = 64
"""ns: the kernel's unit of a bucket's depth (PSCHED_SHIFT)."""
_MOST = 0xFFFF
_CLOSED_RATE = 6_000_000
"""Bytes a second: so the kernel looks again about every 10 ms whether a frame may leave, should the kick be lost."""
_DEPTH = 2
"""Frames in the bucket: with one, every wake-up that is late would cost throughput."""
_ETHERTYPE = 0x88B5
_KICK = b"\xff" * 6 + b"\x02" + bytes(5) + struct.pack("!H", _ETHERTYPE) + bytes(46)


@dataclass(frozen=True, slots=True)
class Gate:
    """A queue at an interface of the controller's network namespace.

    index: of the interface. rate: bytes a second when it is open. frame: bytes of the longest. overhead: bytes that a
    frame takes beside. limit, held: bytes that may wait when it is open, and when it is closed.
    """

    interface: str
    index: int
    rate: int
    frame: int
    overhead: int
    limit: int
    held: int


def message(gate: Gate, *, closed: bool, create: bool = False, room: int = 0) -> bytes:
    """The netlink message that makes a gate, or changes it without losing what it holds.

    room: bytes that may wait beside; if there are any, as much as in a closed gate may.
    """
    rate = _CLOSED_RATE if closed else gate.rate
    mpu = _MOST if closed else 0
    depth = round(_DEPTH * (gate.frame + gate.overhead) * 1e9 / rate / _TICK)
    limits = struct.pack("=III", gate.held + room if closed or room else gate.limit, depth, 0)
    rates = _RATE.pack(0, _ETHERNET, gate.overhead, 0, mpu, rate) + _RATE.pack(0, 0, 0, 0, 0, 0)
    options = _attribute(_OPTIONS, _attribute(_PARAMETERS, rates + limits))
    body = _QDISC.pack(0, 0, gate.index, _HANDLE, _ROOT, 0) + _attribute(_KIND, b"tbf\0") + options
    flags = _REQUEST | _ACK | (_CREATE | _REPLACE if create else 0)
    return _HEADER.pack(_HEADER.size + len(body), _NEW_QDISC, flags, gate.index, 0) + body


class Gates:
    """What changes gates, by sockets that are opened in the current network namespace when they are needed first."""

    @cached_property
    def _netlink(self) -> socket.socket:
        opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        opened.bind((0, 0))
        return opened

    @cached_property
    def _kicker(self) -> socket.socket:
        return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)

    def make(self, gates: Iterable[Gate]) -> None:
        """Put open gates at interfaces, in the place of what is there. Raises OSError if the kernel refuses."""
        for gate in gates:
            self._send(message(gate, closed=False, create=True))

    def shut(self, gates: Iterable[Gate]) -> None:
        """Nothing leaves them any more; what comes is held. Raises OSError if the kernel refuses."""
        for gate in gates:
            self._send(message(gate, closed=True))

    def release(self, gates: Iterable[Gate]) -> None:
        """Let them run at their rates. Raises OSError if the kernel refuses."""
        gates = tuple(gates)
        for gate in gates:
            self._send(message(gate, closed=False, room=len(_KICK)))  # a full queue would refuse the kick
            with contextlib.suppress(OSError):  # then it runs when the kernel looks again
                self._kicker.sendto(_KICK, (gate.interface, _ETHERTYPE))
        for gate in gates:
            self._send(message(gate, closed=False))

    def _send(self, data: bytes) -> None:
        """The kernel does what it is told before `send` returns, so its answer is there to be read."""
        self._netlink.send(data)
        error: int = -struct.unpack_from("=i", self._netlink.recv(4096), _HEADER.size)[0]
        if error:
            raise OSError(error, f"a queue that holds traffic could not be changed: {os.strerror(error)}")


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)
