"""Rates and queues at the transmitters: HTB with one class, a byte-limited FIFO behind it, set through netlink.

A rate is an Ethernet line rate: HTB's `overhead` adds to every frame what the kernel does not count (preamble 8,
inter-frame gap 12, FCS 4), so a link at 50 Mb/s carries what 50 Mb/s Ethernet would. The burst is one frame: with more,
short chunks finish faster than the line could send them.

OCS ports are never shaped: a queue behind a circuit would keep shining while the circuit is dark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl.tcmsg import plugins

from emu.lab.errors import LabError

ETHERNET_HEADER = 14
UNCOUNTED_BYTES = 8 + 12 + 4
"""Per frame on the wire and not in the kernel's packet length: preamble with delimiter, gap, frame check sequence."""

# pyroute2 knows the packet-limited FIFO only; the byte-limited one takes the same option.
plugins.setdefault("bfifo", plugins["pfifo"])

_ROOT, _CLASS, _LEAF = 0x10000, 0x10001, 0x100000


@dataclass(frozen=True, slots=True)
class Shape:
    """What one transmitter is set to: bit/s on the emulated wire, and the queue's limit in bytes."""

    rate: int
    queue: int


@dataclass(frozen=True, slots=True)
class QdiscState:
    """What a transmitter's queue says: the rate that is set now, what it sent, dropped and still holds."""

    rate: int
    sent_bytes: int
    sent_packets: int
    drops: int
    backlog: int


def frame_bytes(mtu: int) -> int:
    """A full frame as HTB counts it with the overhead: `mtu` + 14 + 24."""
    return mtu + ETHERNET_HEADER + UNCOUNTED_BYTES


def apply(netlink: IPRoute, index: int, interface: str, shape: Shape, mtu: int) -> None:
    """Shape interface `index` in the namespace that `netlink` was opened in. Raises LabError if the kernel refuses."""
    rate, frame = shape.rate / 8, frame_bytes(mtu)
    options = {
        "rate": rate,
        "ceil": rate,
        "burst": frame,
        "cburst": frame,
        "quantum": frame,
        "overhead": UNCOUNTED_BYTES,
        "mtu": mtu + ETHERNET_HEADER,
    }
    try:
        netlink.tc("add", "htb", index, _ROOT, default=1)
        netlink.tc("add-class", "htb", index, _CLASS, parent=_ROOT, **options)
        netlink.tc("add", "bfifo", index, _LEAF, parent=_CLASS, limit=shape.queue)
    except NetlinkError as error:
        raise LabError(f"{interface}: the kernel refused the shaper ({error}); it needs HTB (sch_htb)") from error


def reshape(netlink: IPRoute, index: int, interface: str, shape: Shape, mtu: int) -> None:
    """Replace an interface's shaper by another."""
    clear(netlink, index)
    apply(netlink, index, interface, shape, mtu)


def clear(netlink: IPRoute, index: int) -> None:
    """Take the shaper away, if there is one."""
    try:
        netlink.tc("del", index=index, parent=0xFFFFFFFF)
    except NetlinkError as error:
        if error.code not in (2, 22):  # ENOENT, EINVAL: there was none
            raise


def read(netlink: IPRoute, index: int) -> QdiscState | None:
    """The state of an interface's shaper, or None if it has none."""
    return next((_state(message) for message in netlink.get_classes(index) if message["handle"] == _CLASS), None)


def _state(message: Any) -> QdiscState:  # noqa: ANN401 - pyroute2's messages are untyped
    options, statistics = message.get_attr("TCA_OPTIONS"), message.get_attr("TCA_STATS2")
    rate = options.get_attr("TCA_HTB_RATE64") or options.get_attr("TCA_HTB_PARMS")["rate"]
    basic, queue = statistics.get_attr("TCA_STATS_BASIC"), statistics.get_attr("TCA_STATS_QUEUE")
    return QdiscState(
        rate=rate * 8,
        sent_bytes=basic["bytes"],
        sent_packets=basic["packets"],
        drops=queue["drops"],
        backlog=queue["backlog"],
    )
