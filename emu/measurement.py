"""What a lab hands back: one `Measurement` a fabric, written by the inner program as JSON and read by the judge.

Times are modelled seconds unless a name says wall; rates in bit/s; bytes on links are emulated frames as the kernel
counts them (Ethernet header in, preamble, gap and FCS out).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from controllers.decisions import Decision
from emu.records import Trace


@dataclass(slots=True)
class LinkCalibration:
    """One directed link before time zero, named by its transmitting port ("t0:3").

    declared: the emulated rate that it should have. configured: what its shaper said (None: an OCS port has none).
    measured: goodput of calibration flows as an Ethernet rate, None where no flow could load the link alone; its rate
    is then `derived` from the shaper.
    """

    link: str
    declared: int
    configured: int | None
    measured: float | None

    @property
    def ratio(self) -> float | None:
        """measured / declared, or None if it was not measured."""
        return None if self.measured is None else self.measured / self.declared


@dataclass(slots=True)
class CrossCheck:
    """One pair of hosts measured by iperf3 and by emu's own traffic engine, both in payload bit/s."""

    src: str
    dst: str
    iperf3: float
    own: float


@dataclass(slots=True)
class LinkCounters:
    """One directed link over one repeat.

    rate: the emulated one. bytes, packets: transmitted. expected_bytes: payload that the model says should have crossed
    it, scaled.
    queue_drops: lost at its shaper's queue. switch_drops: lost by Open vSwitch when it sent there.
    """

    link: str
    rate: int
    bytes: int
    packets: int
    expected_bytes: float
    queue_drops: int = 0
    switch_drops: int = 0


@dataclass(slots=True)
class DataPlane:
    """What probe frames saw of one OCS in a change, see `emu.lab.probing`.

    dark: from the last frame that left by a circuit that goes to the first by one that comes; None if not measured.
    resolution_wall: wall seconds by which that may be too long: the distance of probes. last_wall: of the last frame,
    after DARK was sent. first_wall: of the first frame, after LIGHT was sent.
    problem: what went wrong by the word of the probes, or empty.
    """

    ocs: str
    dark: float | None = None
    resolution_wall: float = 0.0
    last_wall: float | None = None
    first_wall: float | None = None
    problem: str = ""


@dataclass(slots=True)
class Service:
    """How long one flow that a change affected stood still, as its receiver saw it: between two reads of payload."""

    flow: str
    gap: float


@dataclass(slots=True)
class CircuitChange:
    """One scheduled change of epoch as it happened, with four figures for its dark time that are never mixed.

    asked_at, asked_dark: from the schedule. dark_at, lit_at: when the last delete was sent, and when the last barrier
    after the new circuits was answered. late_wall: wall seconds by which the first commit missed its instant.
    outcome: `committed`, or `aborted: reason`.
    data_plane: an entry for each OCS that was probed. service: one for each flow that crossed a circuit that changed.
    mode: what became of traffic meanwhile (`controllers.dark`). lost, held, overflow: packets; held_bytes: as kernels
    count frames; reordered, out_of_order: see `emu.lab.toll`. None: not measured.
    """

    epoch: int
    asked_at: float
    asked_dark: float
    dark_at: float
    lit_at: float
    late_wall: float
    outcome: str = "committed"
    data_plane: list[DataPlane] = field(default_factory=list)
    service: list[Service] = field(default_factory=list)
    mode: str = "drop"
    lost: int | None = None
    held: int | None = None
    held_bytes: int | None = None
    overflow: int | None = None
    reordered: int | None = None
    out_of_order: int | None = None

    @property
    def control_dark(self) -> float:
        """Dark time as the control plane saw it: last delete sent to last barrier reply."""
        return self.lit_at - self.dark_at

    @property
    def data_plane_dark(self) -> float | None:
        """Dark time of the data plane: the longest of all OCSs that were measured, None if none was."""
        return max((plane.dark for plane in self.data_plane if plane.dark is not None), default=None)

    @property
    def resolution_wall(self) -> float | None:
        """Wall seconds by which `data_plane_dark` may be too long; None where that is not measured."""
        measured = (plane.resolution_wall for plane in self.data_plane if plane.dark is not None)
        return max(measured, default=None)

    @property
    def service_dark(self) -> float | None:
        """Dark time of the service: the median of the affected flows, TCP's recovery included; None without any."""
        return statistics.median(flow.gap for flow in self.service) if self.service else None

    @property
    def transport_share(self) -> float | None:
        """What the transport added: service minus data plane; None unless both were measured."""
        service, plane = self.service_dark, self.data_plane_dark
        return None if service is None or plane is None else service - plane


@dataclass(slots=True)
class CircuitUse:
    """One circuit in one epoch; or, without out_port, an OCS port where packets came in that had no circuit.

    lit: modelled seconds. duty: lit by the length of the run. bytes, packets: frames that left by it. lost: packets
    that came in by its port and did not leave, in the dark time at either end of the epoch or for want of a circuit.
    """

    epoch: int
    ocs: str
    in_port: int
    out_port: int | None
    lit: float
    duty: float
    bytes: int
    packets: int
    lost: int


@dataclass(slots=True)
class Health:
    """How the machine and the transport did over one repeat.

    idle_cpu: share of all processors' time. lag_p50, lag_p99, lag_max: wall seconds by which the event loop was late.
    retransmits: segments sent again on all connections. receive_drops: frames lost at Open vSwitch's AF_PACKET sockets.
    dark_drops: packets that met an OCS port without a circuit, or a full queue of `hold`. smallest_buffer: the smallest
    send or receive buffer of those sockets in bytes. late_connections: connections opened after time zero.
    """

    idle_cpu: float
    lag_p50: float
    lag_p99: float
    lag_max: float
    retransmits: int
    receive_drops: int
    dark_drops: int
    smallest_buffer: int
    late_connections: int = 0


@dataclass(slots=True)
class Repeat:
    """One run of the workload in the lab. decisions: what was decided about circuits, in order."""

    seed: int
    trace: Trace
    links: list[LinkCounters]
    changes: list[CircuitChange]
    health: Health
    wall: float
    jumped: float = 0.0
    jumps: int = 0
    decisions: list[Decision] = field(default_factory=list)
    circuits: list[CircuitUse] = field(default_factory=list)


@dataclass(slots=True)
class Finding:
    """Something that the lab's own checks found wrong, with the place named. subject: rule, shaper, buffer, link."""

    subject: str
    place: str
    problem: str


@dataclass(slots=True)
class LabFacts:
    """What the lab was, for the manifest."""

    room: str
    datapath: str
    kernel: str
    versions: dict[str, str]
    mtu: int
    queue_bytes: int
    queue_floored: bool
    socket_buffers: str
    idle_cpu_before: float
    stage_wall: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Measurement:
    """Everything that one lab measured."""

    fabric: str
    sigma: float
    beta: float
    facts: LabFacts | None = None
    calibration: list[LinkCalibration] = field(default_factory=list)
    cross_check: CrossCheck | None = None
    repeats: list[Repeat] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    partial: bool = False
    error: str = ""

    def write(self, path: Path) -> None:
        """Write it as JSON, whole or not at all."""
        draft = path.with_suffix(".part")
        draft.write_bytes(_JSON.dump_json(self))
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> Measurement:
        """Read what `write` wrote. Raises pydantic's ValidationError if it is not that."""
        return _JSON.validate_json(path.read_bytes())


@dataclass(slots=True)
class Capacity:
    """What a fabric's lab can carry on this machine, from the calibration before `scale: auto`.

    host_rate: emulated bit/s that every NIC reaches when all hosts send. step_cost: wall seconds that a dependent step
    takes beyond its ideal. control_jitter: 99th percentile of a barrier's round trip, wall seconds.
    """

    fabric: str
    host_rate: float
    step_cost: float
    control_jitter: float


_JSON: TypeAdapter[Measurement] = TypeAdapter(Measurement)
