"""Socket options of the traffic's connections, and what the kernel tells about them (struct tcp_info)."""

from __future__ import annotations

import fcntl
import socket
import struct
from dataclasses import dataclass

_TCP_NOTSENT_LOWAT, _SIOCOUTQ = 25, 0x5411
_INFO_BYTES = 104
_RTT, _TOTAL_RETRANS = 68, 100
_ORDER_BYTES = 228
_REORD_SEEN, _RCV_OOOPACK = 220, 224
_U32 = struct.Struct("I")

UNSENT_BYTES = 128 << 10
"""How much a sender may have written that TCP has not sent: enough to never run dry between two turns of the loop."""


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """Segments retransmitted since the connection opened, and its smoothed round trip in (wall) seconds."""

    retransmits: int
    rtt: float


@dataclass(frozen=True, slots=True)
class Order:
    """How a connection's segments came: overtakings that the sender has seen, segments that were early at the receiver.

    known: whether the kernel counts them (Linux 5.4).
    """

    seen: int = 0
    early: int = 0
    known: bool = True

    def since(self, before: Order | None) -> Order:
        """What came since then; all if there was no connection then, or another."""
        if before is None or self.seen < before.seen or self.early < before.early:
            return self
        return Order(self.seen - before.seen, self.early - before.early, self.known and before.known)


def prepare_sender(sock: socket.socket, congestion_control: str) -> None:
    """Bound what is written but not sent, so that "sent" is not "buffered"; no Nagle; the named congestion control."""
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
    sock.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, UNSENT_BYTES)


def info(sock: socket.socket) -> TcpInfo:
    """What TCP knows of this connection now."""
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    retransmits, rtt = (_U32.unpack_from(raw, offset)[0] for offset in (_TOTAL_RETRANS, _RTT))
    return TcpInfo(retransmits, rtt / 1e6)


def order(sender: socket.socket, receiver: socket.socket | None) -> Order:
    """How the segments of a connection came so far."""
    raw = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ORDER_BYTES)
    got = receiver.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ORDER_BYTES) if receiver is not None else raw
    if min(len(raw), len(got)) < _ORDER_BYTES:
        return Order(known=False)
    return Order(_U32.unpack_from(raw, _REORD_SEEN)[0], _U32.unpack_from(got, _RCV_OOOPACK)[0])


def unacknowledged(sock: socket.socket) -> int:
    """Bytes that were written and not yet acknowledged."""
    return int(_U32.unpack(fcntl.ioctl(sock.fileno(), _SIOCOUTQ, _U32.pack(0)))[0])
