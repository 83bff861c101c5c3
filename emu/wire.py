"""What a byte of payload costs on an Ethernet wire.

Rates in a fabric are line rates: everything that keeps a wire busy counts. A fluid of payload bytes therefore flows at
line rate times `payload_efficiency`.
"""

from __future__ import annotations

IP_TCP_HEADERS = 40
"""IPv4 and TCP headers without options, inside the MTU (RFC 791, RFC 9293)."""

TCP_TIMESTAMPS = 12
"""The timestamps option and its padding, which Linux puts into every segment (RFC 7323)."""

ETHERNET_HEADER = 14
FRAME_CHECK = 4
PREAMBLE = 8
"""Preamble and start-of-frame delimiter (IEEE 802.3, clause 3)."""

INTERFRAME_GAP = 12
"""96 bit times (IEEE 802.3, clause 4)."""

FRAME_OVERHEAD = ETHERNET_HEADER + FRAME_CHECK + PREAMBLE + INTERFRAME_GAP
"""Bytes of a full frame on the wire beyond its MTU."""


def payload_per_frame(mtu: int) -> int:
    """TCP payload bytes in a full frame. Raises ValueError for an MTU that holds none."""
    payload = mtu - IP_TCP_HEADERS - TCP_TIMESTAMPS
    if payload <= 0:
        raise ValueError(f"an MTU of {mtu} bytes leaves no room for TCP payload")
    return payload


def payload_efficiency(mtu: int) -> float:
    """TCP payload bytes per byte of wire time, for full frames: 8948/9038 at an MTU of 9000.

    The acknowledgements of traffic the other way also take wire time; they are not in it.
    """
    return payload_per_frame(mtu) / (mtu + FRAME_OVERHEAD)
