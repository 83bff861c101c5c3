"""What a change of circuits cost beside time: packets lost in the dark, and packets that overtook each other.

Lost: by the kernel's counters of the OCS ports whose circuits change, from shortly before the change until some time
after it: what came in and did not leave. Packets pass through a switch meanwhile, so each end is read several times,
and the reading with the fewest inside counts; a figure may still be off by what never ceased to be inside. The books of
`emu.lab.usage` are exact, but by circuit and epoch.

Order: by TCP. A sender counts each time that acknowledgements prove an overtaking (tcpi_reord_seen, Linux 4.19), a
receiver the segments that came before their turn (tcpi_rcv_ooopack, Linux 5.4), which also happens after a loss.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from controllers.circuits import darkened, lit
from controllers.epochs import Epoch
from emu.measurement import CircuitChange
from emu.packet import tcp
from emu.packet.lanes import LaneKey, Lanes
from emu.packet.loop import Loop, TimerFd
from topologies.fabric import Fabric, Port

_TABLE = Path("/proc/thread-self/net/dev")
_RX_PACKETS, _TX_PACKETS = 1, 9
"""Columns of the kernel's table of interfaces."""
_LOOKS, _APART = 5, 0.003
"""How often the counters are read at either end, and wall seconds between."""
_EARLY = 0.02
"""Wall seconds before the first stage of a change at which the books are opened."""


@dataclass(frozen=True, slots=True)
class _Books:
    """What was counted at one instant. missing: packets that came in by ports that change and did not leave."""

    missing: int
    order: Mapping[LaneKey, tcp.Order]


class Toll:
    """Keeps the books of one change at a time."""

    def __init__(
        self, fabric: Fabric, lanes: Lanes, loop: Loop, probes: Callable[[], Mapping[Port, int]], tail: float
    ) -> None:
        """Open no books yet.

        probes: by port, the frames so far that are no traffic. tail: wall seconds after the new circuits were
        acknowledged in which packets that went another way may still arrive.
        """
        self._fabric, self._lanes, self._loop, self._probes, self._tail = fabric, lanes, loop, probes, tail
        self._timer = TimerFd()
        self._entries: dict[str, Port] = {}
        self._exits: dict[str, Port] = {}
        self._opened: _Books | None = None
        self._closed: _Books | None = None
        self._lit = self._watched = False
        self._looks: list[_Books] = []
        loop.watch(self._timer.fileno(), select.EPOLLIN, lambda _: self._due())

    def begin(self, old: Epoch, new: Epoch, first: float) -> None:
        """A change was handed over; `first`: the wall second at which it begins to show."""
        self._opened = self._closed = None
        self._lit, self._watched, self._looks = False, True, []
        changing = [
            (ocs, circuit)
            for circuits in (darkened(old, new), lit(old, new))
            for ocs, found in circuits.items()
            for circuit in found
        ]
        self._entries = {port.interface: port for ocs, one in changing for port in [Port(ocs, one.in_port)]}
        self._exits = {port.interface: port for ocs, one in changing for port in [Port(ocs, one.out_port)]}
        self._timer.arm(max(first - _EARLY, time.monotonic()))

    def committed(self, at: float) -> None:
        """The new circuits were acknowledged at this wall second. Changes that nobody could see have no books."""
        if not self._watched:
            return
        self._settle()
        self._lit = True
        self._timer.arm(at + self._tail)

    def end(self) -> None:
        """The next change begins, or the run is over: close the books if they are still open."""
        self._timer.disarm()
        if self.open:
            self._looks.append(self._read())
            self._settle()

    def fill(self, change: CircuitChange) -> None:
        """Write what a change cost into its row, if its books were opened in time and are closed."""
        before, after = self._opened, self._closed
        self._opened = self._closed = None
        self._watched = False
        if before is None or after is None:
            return
        change.lost = max(0, after.missing - before.missing)
        if not all(order.known for order in after.order.values()):
            return
        since = [order.since(before.order.get(key)) for key, order in after.order.items()]
        change.reordered = sum(order.seen for order in since)
        change.out_of_order = sum(order.early for order in since)

    @property
    def open(self) -> bool:
        """Whether something may still have to be counted."""
        return self._opened is not None and self._closed is None

    def close(self) -> None:
        """Free the timer."""
        self._loop.forget(self._timer.fileno())
        self._timer.close()

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _due(self) -> None:
        if not self._timer.read():
            return
        self._looks.append(self._read())
        if len(self._looks) < _LOOKS:
            self._timer.arm(time.monotonic() + _APART)
        else:
            self._settle()

    def _settle(self) -> None:
        """Open the books by the looks so far, or close them: the latest, with what was inside at the quietest."""
        looks, self._looks = self._looks, []
        if not looks:
            return
        books = replace(looks[-1], missing=min(look.missing for look in looks))
        if self._opened is None:
            self._opened = books
        elif self._lit:
            self._closed = books

    def _read(self) -> _Books:
        return _Books(self._missing(), {lane.key: tcp.order(lane.sender, lane.receiver) for lane in self._lanes})

    def _missing(self) -> int:
        """Packets that came in by the ports that change, less those that left there."""
        probes, total = self._probes(), 0
        for line in _TABLE.read_text().splitlines():
            name, _, columns = line.partition(":")
            name = name.strip()
            entry, exit_ = self._entries.get(name), self._exits.get(name)
            if entry is not None:
                total += int(columns.split()[_RX_PACKETS]) - probes.get(self._fabric.peer(entry), 0)
            if exit_ is not None:
                total -= int(columns.split()[_TX_PACKETS]) - probes.get(exit_, 0)
        return total
