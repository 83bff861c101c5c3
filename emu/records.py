"""What a run measured (or predicted), as rows. Times are modelled seconds from time zero, sizes modelled bytes.

The same rows come from every engine, so that measured and predicted tables can be laid side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class FlowRecord:
    """One transfer.

    start: the sender's first write. first_byte: the receiver's first read. end: the receiver's read of the last byte.
    retransmits: segments sent again for it. rtt: the sender's smoothed round trip at the end, modelled seconds.
    how: `packets`; `local` (inside one host, off the fabric) or `charged` (too small to send: alpha + bytes/rate).
    """

    id: str
    collective: str
    phase: str
    src: str
    dst: str
    bytes: int
    start: float
    first_byte: float
    end: float
    retransmits: int = 0
    rtt: float = 0.0
    how: str = "packets"

    @property
    def fct(self) -> float:
        """Flow completion time: the sender's first write to the receiver's read of the last byte."""
        return self.end - self.start


@dataclass(slots=True)
class CollectiveRecord:
    """One collective, from its first member's start to its last member's end."""

    id: str
    label: str
    phase: str
    kind: str
    algorithm: str
    ranks: int
    bytes: int
    merged: int
    start: float
    end: float

    @property
    def cct(self) -> float:
        """Collective completion time in modelled seconds."""
        return self.end - self.start


@dataclass(slots=True)
class ComputationRecord:
    """One computation: `hosts` (all, if it names none) were busy with it. end: of a cancelled one, when it was."""

    id: str
    phase: str
    hosts: tuple[str, ...]
    start: float
    end: float


@dataclass(slots=True)
class PhaseRecord:
    """One phase: everything that carried its name, from the first start to the last end.

    circuit_bytes, core_bytes: payload that left an OCS by a circuit, and payload that pods sent up to the core, while
    any transfer of the phase was not over; that of other phases at the same time is in it.
    """

    name: str
    start: float
    end: float
    packet_bytes: int = 0
    charged_bytes: int = 0
    local_bytes: int = 0
    circuit_bytes: int = 0
    core_bytes: int = 0


@dataclass(slots=True)
class FailureRecord:
    """A task that could not be finished, and why."""

    task: str
    reason: str
    at: float


@dataclass(slots=True)
class Trace:
    """Everything an engine recorded of one run of one workload on one fabric."""

    flows: list[FlowRecord] = field(default_factory=list)
    collectives: list[CollectiveRecord] = field(default_factory=list)
    phases: dict[str, PhaseRecord] = field(default_factory=dict)
    computations: list[ComputationRecord] = field(default_factory=list)
    failures: list[FailureRecord] = field(default_factory=list)
    end: float = 0.0
    complete: bool = False

    def touch_phase(self, name: str, start: float, end: float) -> PhaseRecord:
        """The phase's row, widened to hold start..end; made at the first call."""
        row = self.phases.setdefault(name, PhaseRecord(name, start, end))
        row.start, row.end = min(row.start, start), max(row.end, end)
        return row
