"""`dark: hold` in a lab: the queues that hold traffic at switches before circuits, as cables from a switch to itself.

Each queue (see `controllers.voq`) is a pair of interfaces on its switch's bridge, with a gate (`controllers.gates`) at
the end that the switch sends into. Open, it is shaped to the rate of the switch's uplinks, so that what waits, waits
there and not behind an uplink, where it would be lost in the dark.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pyroute2 import IPRoute

from controllers.epochs import Epoch, OcsCircuit
from controllers.gates import Gate, Gates
from controllers.tables import Tables
from controllers.voq import Voq, Voqs
from emu.lab.errors import LabError
from emu.lab.network import LabNet
from emu.lab.openvswitch import run
from emu.lab.shaping import ETHERNET_HEADER, UNCOUNTED_BYTES
from emu.measurement import CircuitChange
from emu.packet.loop import Loop, TimerFd
from topologies.fabric import Fabric, Port

MOST_QUEUES = 512
_TABLES_KEPT = 64
_UNSHAPED = 400_000_000
"""Bytes a second: of a lab whose links are not shaped yet."""
_UNSHAPED_LIMIT = 1 << 20
_BEFORE_LIGHT = 0.002
"""Wall seconds before the new light at which what is held is read."""


class Holding:
    """The queues of one lab."""

    def __init__(self, net: LabNet) -> None:
        """Make them, open and unshaped. Raises LabError for a fabric that needs too many."""
        self.voqs, self._fabric = Voqs(net.fabric), net.fabric
        if len(self.voqs.all) > MOST_QUEUES:
            raise LabError(
                f"dark: hold needs {len(self.voqs.all)} queues on {net.fabric.name}; a lab can have {MOST_QUEUES}"
            )
        self._gates: dict[Voq, Gate] = {}
        self._open = set(self.voqs.all)
        """Those that led on when tables were installed last; changes of circuits are the controller's."""
        self._switch = Gates()
        self._realised: dict[frozenset[OcsCircuit], Tables] = {}
        self._make(net)

    def gates(self, queues: Iterable[Voq]) -> tuple[Gate, ...]:
        """The gates of some queues, in order."""
        return tuple(self._gates[queue] for queue in sorted(queues))

    def shape(self, beta: float, queue: int, held: int) -> None:
        """Set every gate to its uplinks' emulated rate: `queue` bytes may wait in it, closed so many more as `held`."""
        for voq, gate in self._gates.items():
            ports = [Port(voq.switch, number) for number in self.voqs.uplinks[voq.switch]]
            rate = round(max(self._fabric.link(port).rate for port in ports) / beta / 8)
            self._gates[voq] = replace(gate, rate=max(1, rate), limit=queue, held=queue + held)
        self._set()

    def realised(self, epoch: Epoch, tables: Tables) -> Tables:
        """The tables of an epoch with the queues in them; those of circuits that were met before are kept."""
        if epoch.lit not in self._realised:
            if len(self._realised) >= _TABLES_KEPT:
                self._realised.clear()
            self._realised[epoch.lit] = self.voqs.realise(tables)
        return self._realised[epoch.lit]

    def change(
        self, old: Epoch, new: Epoch, before: Tables, after: Tables
    ) -> tuple[tuple[Gate, ...], tuple[Gate, ...]]:
        """The gates to shut before a change of epoch, and those to release after it. before, after: realised tables."""
        was, will = self.voqs.open(before), self.voqs.open(after)
        shut = (self.voqs.darkening(old, new, before) | (was - will)) & was
        return self.gates(shut), self.gates(will - (was - shut))

    def follow(self, tables: Tables) -> None:
        """Open the queues that lead on by realised tables, and close the others."""
        self._open = self.voqs.open(tables)
        self._set()

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _set(self) -> None:
        self._switch.shut(self.gates(set(self.voqs.all) - self._open))
        self._switch.release(self.gates(self._open))

    def _make(self, net: LabNet) -> None:
        command: list[str] = []
        with IPRoute() as netlink:
            for queue in self.voqs.all:
                ends = (f"{queue.switch}-q{queue.place}", f"{queue.switch}-p{queue.place}")
                there: dict[str, Any] = {"ifname": ends[1], "mtu": net.mtu}
                netlink.link("add", kind="veth", ifname=ends[0], mtu=net.mtu, peer=there)
                for name in ends:
                    netlink.link("set", index=netlink.link_lookup(ifname=name)[0], state="up")
                for name, number in zip(ends, (queue.entry, queue.exit), strict=True):
                    command += ["--", "add-port", queue.switch, name]
                    command += ["--", "set", "Interface", name, f"ofport_request={number}"]
                index = netlink.link_lookup(ifname=ends[0])[0]
                frame = net.mtu + ETHERNET_HEADER
                limit = max(_UNSHAPED_LIMIT, 64 * frame)
                self._gates[queue] = Gate(ends[0], index, _UNSHAPED, frame, UNCOUNTED_BYTES, limit, limit)
        run("ovs-vsctl", *command)
        self._switch.make(self._gates.values())


@dataclass(frozen=True, slots=True)
class _Held:
    """Frames and bytes in queues, and frames that they have refused since they were made."""

    frames: int
    bytes: int
    refused: int


class HoldMeter:
    """Reads what queues hold just before the new light, and what they refused in a change."""

    def __init__(self, holding: Holding, loop: Loop) -> None:
        self._holding, self._loop = holding, loop
        self._netlink = IPRoute()
        self._timer = TimerFd()
        self._queues: tuple[Gate, ...] = ()
        self._before: _Held | None = None
        self._held: _Held | None = None
        loop.watch(self._timer.fileno(), select.EPOLLIN, lambda _: self._due())

    def begin(self) -> None:
        """A change was handed over."""
        self._queues = self._holding.gates(self._holding.voqs.all)
        self._before, self._held = self._read(), None

    def expect_light(self, at: float) -> None:
        """The new circuits come at this wall second."""
        self._timer.arm(max(at - _BEFORE_LIGHT, time.monotonic()))

    def fill(self, change: CircuitChange) -> None:
        """Write what was held into a change's row."""
        if self._before is not None and self._held is not None:
            change.held, change.held_bytes = self._held.frames, self._held.bytes
            change.overflow = self._read().refused - self._before.refused
        self._before = self._held = None

    def close(self) -> None:
        """Free what it has opened."""
        self._loop.forget(self._timer.fileno())
        self._timer.close()
        self._netlink.close()

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _due(self) -> None:
        if self._timer.read():
            self._held = self._read()

    def _read(self) -> _Held:
        indexes = {gate.index for gate in self._queues}
        frames = size = refused = 0
        for message in self._netlink.get_qdiscs():
            if message["index"] in indexes and message.get_attr("TCA_KIND") == "tbf":
                queue = message.get_attr("TCA_STATS2").get_attr("TCA_STATS_QUEUE")
                frames, size, refused = frames + queue["qlen"], size + queue["backlog"], refused + queue["drops"]
        return _Held(frames, size, refused)


def refused(holding: Holding | None) -> int:
    """Frames that all queues have refused since they were made."""
    if holding is None:
        return 0
    indexes = {gate.index for gate in holding.gates(holding.voqs.all)}
    with IPRoute() as netlink:
        found = [message for message in netlink.get_qdiscs() if message["index"] in indexes]
    return sum(message.get_attr("TCA_STATS2").get_attr("TCA_STATS_QUEUE")["drops"] for message in found)


def held_bytes(fabric: Fabric, buffer: int | None, reconfiguration: float, sigma: float) -> int:
    """Emulated bytes that a queue may hold in the dark, beside what may wait in it anyway."""
    if buffer is None:
        fastest = max((fabric.link(port).rate for port in _optical(fabric)), default=0)
        buffer = round(2 * reconfiguration * fastest / 8)
    return round(buffer / sigma)


def _optical(fabric: Fabric) -> list[Port]:
    return [port for ocs in fabric.ocses for port in fabric.ports(ocs.name)]
