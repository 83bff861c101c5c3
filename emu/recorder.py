"""What a dispatcher writes down: the rows of a run, and what crosses the fabric while each phase has transfers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emu.crossing import Crossing
from emu.records import CollectiveRecord, ComputationRecord, FailureRecord, FlowRecord, Trace
from workloads.protocol import Collective, Computation, TaskId, Transfer


@dataclass(slots=True)
class _Window:
    """While transfers of a phase are not over: how many, and what had crossed the fabric when the first was asked for.

    A transfer that waits for another counts, or a window would close between any two steps of a collective.
    """

    opened: Crossing
    left: int = 0


class Recorder:
    """The trace of one run while it grows.

    crossed: asked when the first transfer of a phase is asked for and when none is left: what has crossed the fabric so
        far.
    """

    def __init__(self, crossed: Callable[[], Crossing]) -> None:
        """Nothing has happened yet."""
        self.trace = Trace()
        self._crossed = crossed
        self._windows: dict[str, _Window] = {}

    # -- phases -------------------------------------------------------------------------------------------------------

    def enter(self, phase: str) -> None:
        """A transfer of the phase was asked for."""
        if phase not in self._windows:
            self._windows[phase] = _Window(self._crossed() if phase else Crossing())
        self._windows[phase].left += 1

    def leave(self, phase: str) -> None:
        """A transfer of the phase is over; after the last, what crossed meanwhile is the phase's."""
        window = self._windows.get(phase)
        if window is None:  # `close` was first
            return
        window.left -= 1
        if not window.left:
            self._shut(phase)

    def close(self) -> None:
        """The run is over, at its end or before: phases that still have transfers get what crossed until now."""
        for phase in list(self._windows):
            self._shut(phase)

    def _shut(self, phase: str) -> None:
        window = self._windows.pop(phase)
        row = self.trace.phases.get(phase)
        if row is not None:
            crossed = self._crossed() - window.opened
            row.circuit_bytes += crossed.circuits
            row.core_bytes += crossed.core

    # -- rows ---------------------------------------------------------------------------------------------------------

    def flow(self, row: FlowRecord) -> None:
        """A transfer is over."""
        self.trace.flows.append(row)
        if row.phase:
            phase = self.trace.touch_phase(row.phase, row.start, row.end)
            match row.how:
                case "local":
                    phase.local_bytes += row.bytes
                case "charged":
                    phase.charged_bytes += row.bytes
                case _:
                    phase.packet_bytes += row.bytes

    def collective(self, task: Collective, start: float, end: float) -> None:
        """A collective is over."""
        label, group = task.label or task.id, len(task.group)
        self.trace.collectives.append(
            CollectiveRecord(
                task.id, label, task.phase, task.kind, task.algorithm, group, task.bytes, task.merged, start, end
            )
        )

    def computation(self, task: Computation, start: float, end: float) -> None:
        """A computation is over, or was stopped."""
        self.trace.computations.append(ComputationRecord(task.id, task.phase, task.hosts, start, end))

    def failure(self, task: TaskId, reason: str, at: float) -> None:
        """A task cannot be finished."""
        self.trace.failures.append(FailureRecord(task, reason, at))


def local_row(transfer: Transfer, now: float) -> FlowRecord:
    """The row of a transfer that never left its host: over as soon as it was asked for."""
    src, dst = str(transfer.src), str(transfer.dst)
    return FlowRecord(
        transfer.id, transfer.collective, transfer.phase, src, dst, transfer.bytes, now, now, now, how="local"
    )
