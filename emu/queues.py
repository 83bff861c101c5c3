"""How long the queues of a lab are, and how long they take to run empty."""

from __future__ import annotations

from controllers.dark import Dark
from emu.packet.circuits import DECISION_LEAD
from emu.scale import Scale
from emu.scenario.schema import Emulation
from emu.wire import FRAME_OVERHEAD
from topologies.fabric import Fabric, Kind, Port

QUEUE_FLOOR = 64
"""Frames that every queue holds at least, whatever the scaled limit says: below it TCP could not fill a link."""
_BEHIND = 4
"""Frames that a queue of `hold` may have let go and that have not left by the uplink: a bucket's, and the shaper's."""
_MOMENT = 0.005
"""Wall seconds that what has left a queue may still be inside a switch, on a busy machine."""


def queue_floor(emulation: Emulation) -> int:
    """The smallest queue in bytes."""
    return QUEUE_FLOOR * (emulation.mtu + FRAME_OVERHEAD)


def queue_bytes(emulation: Emulation, sigma: float) -> int:
    """The queue behind each transmitter: the scenario's over sigma, floored to some frames."""
    return max(round(emulation.queue / sigma), queue_floor(emulation))


def uplinks(fabric: Fabric) -> list[Port]:
    """The electrical ports that transmit into an OCS, in the order in which OCSs have their ports."""
    peers = (fabric.peer(port) for ocs in fabric.ocses for port in fabric.ports(ocs.name))
    return [port for port in peers if fabric.node(port.node).kind is not Kind.OCS]


def emptying_time(fabric: Fabric, emulation: Emulation, scale: Scale) -> float:
    """Wall seconds until the full queue of the slowest port into an OCS has run empty and all of it has arrived."""
    links = [fabric.link(port) for port in uplinks(fabric)]
    if not links:
        return 0.0
    full = 8 * queue_bytes(emulation, scale.sigma) * scale.beta / min(link.rate for link in links)
    return full + max(link.delay for link in links) * scale.tdf + _MOMENT


def holding_time(fabric: Fabric, emulation: Emulation, scale: Scale) -> float:
    """Wall seconds until what queues of `hold` had let go when they were closed has crossed its circuit."""
    links = [fabric.link(port) for port in uplinks(fabric)]
    if not links:
        return 0.0
    frames = 8 * _BEHIND * (emulation.mtu + FRAME_OVERHEAD) * scale.beta / min(link.rate for link in links)
    return frames + max(link.delay for link in links) * scale.tdf + _MOMENT


def moving_time(fabric: Fabric, dark: Dark, emulation: Emulation, scale: Scale) -> float:
    """Wall seconds before circuits go dark at which their traffic takes a detour or is held; 0 if it does neither."""
    times = {"detour": emptying_time, "hold": holding_time}
    return times[dark.mode](fabric, emulation, scale) if dark.mode in times else 0.0


def decision_leads(fabric: Fabric, dark: Dark, emulation: Emulation, scale: Scale) -> tuple[float, float]:
    """Modelled seconds from a decision on circuits to the dark time for it, and those of them that `moving_time` is."""
    moving = moving_time(fabric, dark, emulation, scale)
    return (DECISION_LEAD + moving) / scale.tdf, moving / scale.tdf
