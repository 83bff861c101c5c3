"""The columns of every table of a run directory: declared once, for writing, reading and the documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SCHEMA_VERSION: Final = 1
"""Of manifest and tables. It grows when a column or key changes its meaning or goes; new ones may come without."""

Type = Literal["text", "int", "float"]
Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column. unit: "" for names and counts. An empty cell means that there is no such number."""

    name: str
    type: Type
    unit: str
    meaning: str

    def read(self, cell: str) -> Value:
        """The value that a cell holds. Raises ValueError if it is none."""
        if self.type == "text":
            return cell
        if not cell:
            return None
        return int(cell) if self.type == "int" else float(cell)


@dataclass(frozen=True, slots=True)
class Table:
    """One CSV file: `name.csv`, with a header line; one line for each `meaning`."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    @property
    def file(self) -> str:
        """The file's name in a run directory."""
        return f"{self.name}.csv"


def _text(name: str, meaning: str) -> Column:
    return Column(name, "text", "", meaning)


def _count(name: str, meaning: str, unit: str = "") -> Column:
    return Column(name, "int", unit, meaning)


def _seconds(name: str, meaning: str) -> Column:
    return Column(name, "float", "s", meaning)


def _wall(name: str, meaning: str) -> Column:
    return Column(name, "float", "wall s", meaning)


def _ratio(name: str, meaning: str) -> Column:
    return Column(name, "float", "1", meaning)


_COMMON = (
    _text("fabric", "the scenario's name of the fabric"),
    _count("repeat", "which repeat, from 1"),
    _count("seed", "what this repeat drew its random numbers from"),
)

FLOWS = Table(
    "flows",
    "transfer",
    (
        *_COMMON,
        _text("id", "of the transfer; those of a collective begin with its id"),
        _text("collective", "id of the collective that it is part of, or empty"),
        _text("phase", "as the workload calls it"),
        _text("src", "sending host, with `.n` NIC n of it"),
        _text("dst", "receiving host, likewise"),
        _count("bytes", "payload", "B"),
        _count("bytes_emulated", "payload that was sent in the lab", "B"),
        _seconds("start_s", "the sender's first write, from time zero"),
        _seconds("first_byte_s", "the receiver's first read"),
        _seconds("end_s", "the receiver's read of the last byte"),
        _seconds("fct_s", "flow completion time, end_s - start_s"),
        _wall("fct_wall_s", "the same in the lab: times TDF"),
        _seconds("ideal_s", "what it would take alone on its path"),
        _ratio("slowdown", "fct_s / ideal_s"),
        _count("retransmits", "segments sent again for it"),
        _seconds("rtt_s", "the sender's smoothed round trip at the end"),
        _text("how", "`packets`, `local` (inside one host) or `charged` (too small to send, counted in time)"),
    ),
)

COLLECTIVES = Table(
    "collectives",
    "collective",
    (
        *_COMMON,
        _text("id", "of the collective"),
        _text("label", "the step of the scenario that it belongs to"),
        _text("phase", "as the workload calls it"),
        _text("kind", "all-reduce, broadcast, ..."),
        _text("algorithm", "ring, tree, ..."),
        _count("ranks", "how many take part"),
        _count("bytes", "S, the full tensor, as nccl-tests counts it", "B"),
        _count("bytes_emulated", "S / sigma", "B"),
        _count("merged", "how many of the workload's messages it stands for"),
        _seconds("start_s", "its first member's start, from time zero"),
        _seconds("end_s", "its last member's end"),
        _seconds("cct_s", "collective completion time, end_s - start_s"),
        _wall("cct_wall_s", "the same in the lab: times TDF"),
        _seconds("ideal_s", "its time in the fluid model, over the same routes and circuits"),
        _ratio("ratio", "cct_s / ideal_s"),
        Column("algbw_Bps", "float", "B/s", "algorithm bandwidth, S / cct_s"),
        Column("busbw_Bps", "float", "B/s", "bus bandwidth as nccl-tests defines it: algbw times the kind's factor"),
    ),
)

PHASES = Table(
    "phases",
    "phase",
    (
        *_COMMON,
        _text("phase", "as the workload calls it"),
        _seconds("start_s", "the first start of what carries its name"),
        _seconds("end_s", "the last end"),
        _seconds("duration_s", "end_s - start_s"),
        _wall("duration_wall_s", "the same in the lab: times TDF, jumps over idle time not taken off"),
        _seconds("ideal_s", "the duration in the fluid model"),
        _ratio("ratio", "duration_s / ideal_s"),
        _count("packet_bytes", "payload that crossed the fabric as packets", "B"),
        _count("packet_bytes_emulated", "packet_bytes / sigma", "B"),
        _count("charged_bytes", "payload in messages too small to send, counted in time", "B"),
        _count("local_bytes", "payload that stayed inside a host", "B"),
        _ratio("charged_share", "charged_bytes by all bytes for the fabric"),
        _seconds("communication_s", "in which any of its transfers was under way, those inside a host left out"),
        _seconds("exposed_s", "of these, in which some transfer was under way while neither of its hosts computed"),
        _seconds("hidden_s", "communication_s - exposed_s"),
        _seconds("ideal_communication_s", "communication_s in the fluid model"),
        _seconds("ideal_exposed_s", "exposed_s in the fluid model"),
        _seconds("ideal_hidden_s", "hidden_s in the fluid model"),
        _seconds("dark_s", "in which some circuit was dark, by the data plane where it was measured, else by control"),
        _ratio("dark_share", "dark_s / duration_s"),
        _ratio("ideal_dark_share", "dark_share in the fluid model"),
        _count("between_pods_bytes", "payload of its transfers, sent as packets, whose hosts are in two pods", "B"),
        _count(
            "circuit_bytes",
            "payload that left OCSs by a circuit while any of its transfers was not over, by port counters, times "
            "sigma: other phases' at the same time, second circuits on a way, and retransmissions included",
            "B",
        ),
        _count("core_bytes", "likewise, payload that pods sent to packet switches that belong to no pod", "B"),
        _count("ideal_circuit_bytes", "circuit_bytes in the fluid model", "B"),
        _count("ideal_core_bytes", "core_bytes in the fluid model", "B"),
    ),
)

CIRCUITS = Table(
    "circuits",
    "change of circuits",
    (
        *_COMMON,
        _count("epoch", "the epoch that it led to"),
        _seconds("asked_at_s", "when the schedule wants it, from time zero"),
        _seconds("asked_dark_s", "how long the circuits that change should be dark"),
        _wall("asked_dark_wall_s", "the same in the lab: times TDF"),
        _seconds("dark_at_s", "when the last rule was deleted"),
        _seconds("lit_at_s", "when the last barrier after the new circuits was answered"),
        _seconds("control_dark_s", "lit_at_s - dark_at_s: dark time as the control plane saw it"),
        _wall("control_dark_wall_s", "the same in the lab: times TDF"),
        _seconds(
            "data_plane_dark_s",
            "from the last frame that left by a circuit that goes to the first by one that comes, by probe frames; the "
            "longest of all OCSs; empty if not measured",
        ),
        _wall("data_plane_dark_wall_s", "the same in the lab: times TDF"),
        _wall("data_plane_resolution_wall_s", "by how much that may be too long: the distance of probes"),
        _wall("last_frame_wall_s", "from the command to go dark to the last frame, at the slowest OCS"),
        _wall("first_frame_wall_s", "from the command to light to the first frame, at the slowest OCS"),
        _seconds(
            "service_dark_s",
            "how long the affected flows stood still: between two of their receivers' reads of payload, the median "
            "flow; TCP's recovery included; empty if no flow was affected",
        ),
        _wall("service_dark_wall_s", "the same in the lab: times TDF"),
        _seconds("service_dark_max_s", "the same of the flow that stood longest"),
        _count("affected_flows", "transfers that were half received when a circuit on their way went dark"),
        _seconds("transport_share_s", "service_dark_s - data_plane_dark_s: the transport's share"),
        _wall("late_wall_s", "by how much the first commit missed its instant"),
        _text("mode", "what became of traffic in the dark: `drop`, `detour`, `hold` or `drain`; see dark-modes.md"),
        _count("lost_packets", "frames that came in at OCS ports that change and did not leave; see circuit_use too"),
        _count("held_packets", "frames that waited in the queues of `hold` when the new circuits came; else empty"),
        _count("held_bytes_emulated", "their bytes in the lab, with Ethernet header", "B"),
        _count("held_overflow_packets", "frames that found such a queue full and were lost"),
        _count("reordered", "overtakings that senders proved by acknowledgements (TCP's tcpi_reord_seen), all flows"),
        _count(
            "out_of_order_packets",
            "segments that came before their turn, all flows (TCP's tcpi_rcv_ooopack); so do those behind a lost one",
        ),
        _text("outcome", "`committed`, or `aborted: ` and why; and what probe frames found wrong"),
    ),
)

CIRCUIT_USE = Table(
    "circuit_use",
    "circuit in each epoch, and OCS port that lost packets for want of one",
    (
        *_COMMON,
        _count("epoch", "while it was committed"),
        _text("ocs", "the optical circuit switch"),
        _count("in_port", "the port of it where light enters"),
        _count("out_port", "the port where it leaves; empty for a port without a circuit"),
        _seconds("lit_s", "how long it was lit in this epoch"),
        _ratio("duty", "lit_s by the length of the run"),
        _count("payload_bytes", "payload that left by it, retransmissions included, times sigma", "B"),
        _count("frame_bytes_emulated", "frames that left by it in the lab, with Ethernet header", "B"),
        _count("packets", "frames that left by it in the lab"),
        _count(
            "lost_packets",
            "frames that came in and did not leave: in the dark before it was lit (from the middle of that time) and "
            "after it went dark (to the middle of that)",
        ),
    ),
)

LINKS = Table(
    "links",
    "direction of a link",
    (
        *_COMMON,
        _text("link", "the port that transmits"),
        _text("peer", "the port that receives"),
        _count("rate_bps", "line rate", "bit/s"),
        _count("rate_emulated_bps", "line rate in the lab, rate_bps / beta", "bit/s"),
        _count("payload_bytes", "payload that it carried, retransmissions included, times sigma", "B"),
        _count("expected_bytes", "payload that routes and circuits put on it, by the model", "B"),
        _count("frame_bytes_emulated", "frames sent in the lab, with Ethernet header", "B"),
        _count("packets", "frames sent in the lab"),
        _count("expected_bytes_emulated", "expected_bytes / sigma", "B"),
        _ratio("utilisation", "share of the time not jumped over in which it was busy, preamble, gap and FCS included"),
        _count("queue_drops", "frames lost at its queue"),
        _count("switch_drops", "frames that Open vSwitch lost when it sent there"),
    ),
)

EVENTS = Table(
    "events",
    "event",
    (
        *_COMMON,
        _seconds("at_s", "when, from time zero"),
        _text(
            "event",
            "`dark`, `lit` or `aborted` (circuits), `plan`, `keep` or `skip` (what their policy decided), `drain` "
            "(how waiting for circuits to be drained ended), `failure` (a task), `jumps` (over idle time, in all)",
        ),
        _text("subject", "the epoch or task that is meant"),
        _text("detail", "more about it"),
    ),
)

TABLES: Final = (FLOWS, COLLECTIVES, PHASES, CIRCUITS, CIRCUIT_USE, LINKS, EVENTS)
