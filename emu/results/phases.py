"""What phases came to, of a measured run and of a predicted one alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from controllers.epochs import EpochChange
from emu.crossing import between_pods
from emu.intervals import Interval
from emu.measurement import CircuitChange
from emu.overlap import Communication, communication, dark_seconds
from emu.records import FlowRecord, PhaseRecord, Trace
from topologies.fabric import Fabric


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    """One phase of one run, see `docs/results.md`. dark: seconds in which some circuit was.

    between_pods: bytes of its transfers from one pod to another.
    """

    record: PhaseRecord
    communication: Communication
    dark: float
    between_pods: int

    @property
    def duration(self) -> float:
        """Seconds from its first start to its last end."""
        return self.record.end - self.record.start

    @property
    def dark_share(self) -> float:
        """Share of its time in which some circuit was dark; 0 if it took no time."""
        return self.dark / self.duration if self.duration > 0 else 0.0


def phase_figures(fabric: Fabric, trace: Trace, dark: Sequence[Interval]) -> dict[str, PhaseFigures]:
    """By phase, in the order in which they began; `dark`: when some circuit was."""
    talking = communication(trace)
    flows: dict[str, list[FlowRecord]] = defaultdict(list)
    for row in trace.flows:
        flows[row.phase].append(row)
    return {
        record.name: PhaseFigures(
            record,
            talking.get(record.name, Communication()),
            dark_seconds(record, dark),
            between_pods(fabric, flows[record.name]),
        )
        for record in sorted(trace.phases.values(), key=lambda record: record.start)
    }


def measured_dark(changes: Iterable[CircuitChange]) -> list[Interval]:
    """When circuits were dark: as the data plane saw it, or the control plane where that was not measured."""
    return [(change.dark_at, change.dark_at + _seconds(change)) for change in changes if change.outcome == "committed"]


def modelled_dark(changes: Iterable[EpochChange]) -> list[Interval]:
    """When circuits are dark in the model."""
    return [(change.at, change.at + change.reconfiguration) for change in changes]


def _seconds(change: CircuitChange) -> float:
    return change.control_dark if change.data_plane_dark is None else change.data_plane_dark
