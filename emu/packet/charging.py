"""Messages too small to be sent: they are charged the time that they would take."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from emu.records import FlowRecord
from workloads.protocol import TaskId, Transfer


@dataclass(frozen=True, slots=True)
class Charging:
    """Messages that scale to less than one MTU are charged alpha + bytes/rate of modelled time, unless `send`."""

    mtu: int
    alpha: float
    send: bool = False

    def charges(self, scaled_bytes: int) -> bool:
        """Whether a message of so many scaled bytes is charged."""
        return scaled_bytes < self.mtu and not self.send

    def seconds(self, modelled_bytes: int, rate: int) -> float:
        """Modelled seconds that a message is charged on a link of `rate` bit/s."""
        return self.alpha + modelled_bytes * 8 / rate


@dataclass(slots=True)
class Charges:
    """The charged messages that are not over, by their end."""

    _pending: list[tuple[float, TaskId, FlowRecord]] = field(default_factory=list)

    def add(self, transfer: Transfer, start: float, seconds: float) -> None:
        """A message begins at modelled time `start`."""
        end = start + seconds
        row = FlowRecord(
            id=transfer.id,
            collective=transfer.collective,
            phase=transfer.phase,
            src=str(transfer.src),
            dst=str(transfer.dst),
            bytes=transfer.bytes,
            start=start,
            first_byte=end,
            end=end,
            how="charged",
        )
        heapq.heappush(self._pending, (end, transfer.id, row))

    @property
    def next_end(self) -> float | None:
        """When the earliest is over, or None if there is none."""
        return self._pending[0][0] if self._pending else None

    def due(self, now: float) -> list[FlowRecord]:
        """Those that are over at `now`, in order, taken out."""
        out = []
        while self._pending and self._pending[0][0] <= now:
            out.append(heapq.heappop(self._pending)[2])
        return out

    def forget(self, transfer_id: TaskId) -> None:
        """A message was cancelled."""
        self._pending = [entry for entry in self._pending if entry[1] != transfer_id]
        heapq.heapify(self._pending)
