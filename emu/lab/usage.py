"""What every circuit carried in every epoch, and what was lost in the dark, by the counters of the OCS ports.

By the kernel's counters of the ports, not by Open vSwitch's of its rules: those run up to half a second behind and are
gone with their rule. A port's exit serves one circuit at a time, so what leaves it in an epoch left by that circuit.
Counters are read in the midst of each dark time, when nothing passes the circuits that change: what was lost before
that counts to the old epoch, what was lost after it to the new one. Ports are read one after the other, so a packet
may be seen to leave and not yet to enter: a row may then say -1 lost. It is left so, for the sum of the rows is exact.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from controllers.epochs import Epoch, OcsCircuit
from emu.lab.probing import FRAME_BYTES
from emu.measurement import CircuitUse
from topologies.fabric import Fabric, Port

_RX_PACKETS, _TX_BYTES, _TX_PACKETS = 1, 8, 9
"""Columns of the kernel's table of interfaces."""
_TABLE = Path("/proc/thread-self/net/dev")
_MOMENT, _PATIENCE = 0.005, 0.1
"""Wall seconds: a switch passes a packet on in less than the one, and stray acknowledgements end before the other."""


@dataclass(frozen=True, slots=True)
class _Count:
    """What came in at an OCS port and what left by it, without probes."""

    entered: int
    left: int
    left_bytes: int


_Counts = Mapping[Port, _Count]


class UseMeter:
    """Adds up what circuits carry, epoch after epoch. Instants are modelled seconds."""

    def __init__(self, fabric: Fabric, epoch: Epoch, probes: Mapping[Port, int], table: Path = _TABLE) -> None:
        """`epoch` is lit since time zero, which is now.

        probes: by port, the frames (of FRAME_BYTES) that are not to be counted. table: of interfaces, with counters.
        """
        self._fabric, self._epoch, self._probes, self._table = fabric, epoch, probes, table
        self._interfaces = {port.interface: port for ocs in fabric.ocses for port in fabric.ports(ocs.name)}
        self._last: _Counts = self._read()
        self._middle: _Counts | None = None
        self._began = 0.0
        self._in_flight: dict[OcsCircuit, int] = {}
        """Of circuits that were kept: what had come in and not left when counters were read, to be settled later."""
        self._rows: list[CircuitUse] = []

    def read(self) -> None:
        """It is the midst of a dark time."""
        self._middle = self._read()

    def kept(self) -> None:
        """The change was given up: the epoch goes on."""
        self._middle = None

    def commit(self, epoch: Epoch, dark_at: float, lit_at: float) -> None:
        """The circuits that differ went dark at `dark_at`, and those of `epoch` shine since `lit_at`."""
        counts, self._middle = self._middle or self._read(), None
        self._end_epoch(counts, self._epoch.lit & epoch.lit, dark_at, lit_at)
        self._last, self._epoch, self._began = counts, epoch, lit_at

    def finish(self, end: float) -> list[CircuitUse]:
        """The rows of all epochs; the run ended at `end`. Waits until nothing is inside the switch: it is not lost."""
        self._end_epoch(self._settled(), frozenset(), end, end)
        for row in self._rows:
            row.duty = row.lit / end if end > 0 else 0.0
        return self._rows

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _end_epoch(self, counts: _Counts, kept: Set[OcsCircuit], gone_at: float, until: float) -> None:
        for ocs in self._fabric.ocses:
            exits = {circuit.in_port: OcsCircuit(ocs.name, circuit) for circuit in self._epoch.circuits(ocs.name)}
            for port in self._fabric.ports(ocs.name):
                circuit = exits.get(port.number)
                if circuit is not None:
                    ended = until if circuit in kept else gone_at
                    self._rows.append(self._use(circuit, counts, circuit in kept, max(0.0, ended - self._began)))
                elif lost := counts[port].entered - self._last[port].entered:
                    self._rows.append(CircuitUse(self._epoch.number, *port, None, 0.0, 0.0, 0, 0, lost))

    def _use(self, circuit: OcsCircuit, counts: _Counts, kept: bool, lit: float) -> CircuitUse:
        (entry, exit_) = (Port(circuit.ocs, number) for number in circuit.circuit)
        packets = counts[exit_].left - self._last[exit_].left
        lost = counts[entry].entered - self._last[entry].entered - packets + self._in_flight.pop(circuit, 0)
        if kept:
            self._in_flight[circuit], lost = lost, 0
        size = counts[exit_].left_bytes - self._last[exit_].left_bytes
        return CircuitUse(self._epoch.number, circuit.ocs, entry.number, exit_.number, lit, 0.0, size, packets, lost)

    def _settled(self) -> _Counts:
        """The counts once they stand still for a moment, or what they are when patience is at its end."""
        counts, deadline = self._read(), time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            time.sleep(_MOMENT)
            before, counts = counts, self._read()
            if counts == before:
                break
        return counts

    def _read(self) -> _Counts:
        return dict(self._counts())

    def _counts(self) -> Iterator[tuple[Port, _Count]]:
        """All at once: one reading of the kernel's table."""
        for line in self._table.read_text().splitlines():
            name, _, columns = line.partition(":")
            port = self._interfaces.get(name.strip())
            if port is not None:
                numbers = columns.split()
                entered, left = self._probes.get(self._fabric.peer(port), 0), self._probes.get(port, 0)
                yield (
                    port,
                    _Count(
                        int(numbers[_RX_PACKETS]) - entered,
                        int(numbers[_TX_PACKETS]) - left,
                        int(numbers[_TX_BYTES]) - left * FRAME_BYTES,
                    ),
                )
