"""Rates, queues and delays at the transmitters: HTB with one class, a byte-limited FIFO behind it, through netlink.

A rate is an Ethernet line rate: HTB's `overhead` adds to every frame what the kernel does not count (preamble 8,
inter-frame gap 12, FCS 4), so a link at 50 Mb/s carries what 50 Mb/s Ethernet would. The burst is one frame: with more,
short chunks finish faster than the line could send them.

A transmitter whose link has a delay has netem between class and FIFO: a frame first waits its delay, then joins the
queue, so that the queue's limit counts no frames in flight. Delay before rate or after it is the same to the receiver.

OCS ports are never shaped: a queue behind a circuit would keep shining while the circuit is dark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
_BEHIND, _QUEUE = _LEAF + 1, 0x200000
"""netem's only class, and the FIFO in it."""
_SHORTEST_FRAME = 64
_FAN_IN = 16
"""So many times its rate may reach a transmitter at once; netem must not lose what it holds meanwhile."""
_LONGEST_DELAY = 200.0
"""Wall seconds; netem's clock is 32 bits of 64 ns."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What one transmitter is set to: bit/s on the emulated wire, the queue's limit in bytes, delay in wall seconds."""

    rate: int
    queue: int
    delay: float = 0.0


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
        if shape.delay:
            _add_delay(netlink, index, interface, shape)
        else:
            netlink.tc("add", "bfifo", index, _LEAF, parent=_CLASS, limit=shape.queue)
    except NetlinkError as error:
        needed = "HTB and netem (sch_htb, sch_netem)" if shape.delay else "HTB (sch_htb)"
        raise LabError(f"{interface}: the kernel refused the shaper ({error}); it needs {needed}") from error


def _add_delay(netlink: IPRoute, index: int, interface: str, shape: Shape) -> None:
    """netem below the class, and the queue below netem."""
    if shape.delay > _LONGEST_DELAY:
        raise LabError(
            f"{interface}: a delay of {shape.delay:g} s in the lab is too long; {_LONGEST_DELAY:g} s is the most"
        )
    in_flight = shape.delay * shape.rate / 8 * _FAN_IN
    frames = 1000 + int((in_flight + shape.queue) / _SHORTEST_FRAME)
    netlink.tc("add", "netem", index, _LEAF, parent=_CLASS, delay=shape.delay * 1e6, limit=frames)
    netlink.tc("add", "bfifo", index, _QUEUE, parent=_BEHIND, limit=shape.queue)


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


def read(netlink: IPRoute, index: int, *, delayed: bool = False) -> QdiscState | None:
    """The state of an interface's shaper, or None if it has none. delayed: whether its shape has a delay."""
    state = next((_state(message) for message in netlink.get_classes(index) if message["handle"] == _CLASS), None)
    if state is None or not delayed:
        return state
    # A frame that the queue refuses has left the class's books already, and is netem's loss.
    losses = (_drops(message) for message in netlink.get_qdiscs(index) if message["handle"] == _LEAF)
    return replace(state, drops=next(losses, state.drops))


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


def _drops(message: Any) -> int:  # noqa: ANN401 - pyroute2's messages are untyped
    return int(message.get_attr("TCA_STATS2").get_attr("TCA_STATS_QUEUE")["drops"])
