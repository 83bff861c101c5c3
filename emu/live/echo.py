"""One ICMP echo between two NICs: whether a packet gets there and back, and how long that takes."""

from __future__ import annotations

import os
import socket
import struct
import time

from emu.lab.namespaces import NetworkNamespace

_ECHO_REQUEST, _ECHO_REPLY = 8, 0
_IP_HEADER, _PAYLOAD = 20, bytes(56)


def ping(namespace: NetworkNamespace, src: str, dst: str, timeout: float) -> float | None:
    """The round trip from address `src`, whose host's namespace it is, to `dst` in wall seconds; None if none came.

    The echo is answered by the other host's kernel.
    """
    identity = struct.unpack("!H", os.urandom(2))[0]
    with namespace.entered():
        sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    with sock:
        sock.bind((src, 0))
        sent = time.monotonic()
        sock.sendto(_request(identity), (dst, 0))
        while (left := sent + timeout - time.monotonic()) > 0:
            sock.settimeout(left)
            try:
                packet, (peer, _) = sock.recvfrom(2048)
            except TimeoutError:
                return None
            kind, _, _, answered, _ = struct.unpack_from("!BBHHH", packet, _IP_HEADER)
            if (kind, answered, peer) == (_ECHO_REPLY, identity, dst):
                return time.monotonic() - sent
    return None


def _request(identity: int) -> bytes:
    blank = struct.pack("!BBHHH", _ECHO_REQUEST, 0, 0, identity, 1) + _PAYLOAD
    return struct.pack("!BBHHH", _ECHO_REQUEST, 0, checksum(blank), identity, 1) + _PAYLOAD


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071) of an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
