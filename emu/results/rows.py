"""The rows of every table, made from what was measured and predicted. Modelled units, the lab's own beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from emu.measurement import LinkCounters, Repeat
from emu.outcome import FabricOutcome
from emu.records import CollectiveRecord, FlowRecord
from emu.results.circuits import change_row, use_row
from emu.results.columns import CIRCUIT_USE, CIRCUITS, COLLECTIVES, EVENTS, FLOWS, LINKS, PHASES, Value
from emu.results.phases import PhaseFigures, measured_dark, modelled_dark, phase_figures
from emu.scale import Scale
from emu.verdict.link_rules import payload
from emu.wire import ETHERNET_HEADER, FRAME_OVERHEAD
from topologies.fabric import Port
from workloads.collectives import bus_factor
from workloads.protocol import CollectiveKind

Row = Mapping[str, Value]
_UNCOUNTED = FRAME_OVERHEAD - ETHERNET_HEADER
"""Bytes of wire time of a frame that the kernel's counters leave out: preamble, gap and FCS."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One repeat on one fabric."""

    fabric: FabricOutcome
    scale: Scale
    repeat: Repeat


def rows_of(table: str, fabric: FabricOutcome) -> Iterator[Row]:
    """The rows of a table for one fabric, repeat after repeat."""
    scale = Scale(fabric.measurement.sigma, fabric.measurement.beta)
    for number, repeat in enumerate(fabric.measurement.repeats, start=1):
        common: dict[str, Value] = {"fabric": fabric.name, "repeat": number, "seed": repeat.seed}
        for row in _MAKERS[table](_Run(fabric, scale, repeat)):
            yield {**common, **row}


def busbw(kind: str, ranks: int, size: float, seconds: float) -> float | None:
    """Bus bandwidth in byte/s: size / seconds times the factor of nccl-tests; None of no time."""
    return float(bus_factor(cast(CollectiveKind, kind), ranks)) * size / seconds if seconds > 0 else None


def ratio(value: float, ideal: float | None) -> float | None:
    """value / ideal, None where there is no ideal or it takes no time."""
    return value / ideal if ideal else None


def _flows(run: _Run) -> Iterator[dict[str, Any]]:
    for row in run.repeat.trace.flows:
        yield _flow(run, row)


def _flow(run: _Run, row: FlowRecord) -> dict[str, Any]:
    ideal = run.fabric.prediction.fct.get(row.id)
    return {
        "id": row.id,
        "collective": row.collective,
        "phase": row.phase,
        "src": row.src,
        "dst": row.dst,
        "bytes": row.bytes,
        "bytes_emulated": run.scale.bytes(row.bytes) if row.how == "packets" else 0,
        "start_s": row.start,
        "first_byte_s": row.first_byte,
        "end_s": row.end,
        "fct_s": row.fct,
        "fct_wall_s": row.fct * run.scale.tdf,
        "ideal_s": ideal,
        "slowdown": ratio(row.fct, ideal),
        "retransmits": row.retransmits,
        "rtt_s": row.rtt,
        "how": row.how,
    }


def _collectives(run: _Run) -> Iterator[dict[str, Any]]:
    ideals = run.fabric.prediction.cct
    for row in run.repeat.trace.collectives:
        yield _collective(run, row, ideals.get(row.id))


def _collective(run: _Run, row: CollectiveRecord, ideal: float | None) -> dict[str, Any]:
    return {
        "id": row.id,
        "label": row.label,
        "phase": row.phase,
        "kind": row.kind,
        "algorithm": row.algorithm,
        "ranks": row.ranks,
        "bytes": row.bytes,
        "bytes_emulated": round(row.bytes / run.scale.sigma),
        "merged": row.merged,
        "start_s": row.start,
        "end_s": row.end,
        "cct_s": row.cct,
        "cct_wall_s": row.cct * run.scale.tdf,
        "ideal_s": ideal,
        "ratio": ratio(row.cct, ideal),
        "algbw_Bps": row.bytes / row.cct if row.cct > 0 else None,
        "busbw_Bps": busbw(row.kind, row.ranks, row.bytes, row.cct),
    }


def _phases(run: _Run) -> Iterator[dict[str, Any]]:
    fabric, prediction = run.fabric.built.fabric, run.fabric.prediction
    ideals = phase_figures(fabric, prediction.trace, modelled_dark(prediction.changes))
    for name, found in phase_figures(fabric, run.repeat.trace, measured_dark(run.repeat.changes)).items():
        yield {**_phase(run, found, ideals.get(name)), **_measured(found), **_modelled(ideals.get(name))}


def _phase(run: _Run, found: PhaseFigures, ideal: PhaseFigures | None) -> dict[str, Any]:
    row = found.record
    fabric = row.packet_bytes + row.charged_bytes
    expected = None if ideal is None else ideal.duration
    return {
        "phase": row.name,
        "start_s": row.start,
        "end_s": row.end,
        "duration_s": found.duration,
        "duration_wall_s": found.duration * run.scale.tdf,
        "ideal_s": expected,
        "ratio": ratio(found.duration, expected),
        "packet_bytes": row.packet_bytes,
        "packet_bytes_emulated": round(row.packet_bytes / run.scale.sigma),
        "charged_bytes": row.charged_bytes,
        "local_bytes": row.local_bytes,
        "charged_share": row.charged_bytes / fabric if fabric else 0.0,
    }


def _measured(found: PhaseFigures) -> dict[str, Any]:
    """What was seen of a phase beyond its time."""
    return {
        "communication_s": found.communication.total,
        "exposed_s": found.communication.exposed,
        "hidden_s": found.communication.hidden,
        "dark_s": found.dark,
        "dark_share": found.dark_share,
        "between_pods_bytes": found.between_pods,
        "circuit_bytes": found.record.circuit_bytes,
        "core_bytes": found.record.core_bytes,
    }


def _modelled(ideal: PhaseFigures | None) -> dict[str, Any]:
    """The same in the model; nothing if it has no such phase."""
    return {
        "ideal_communication_s": ideal and ideal.communication.total,
        "ideal_exposed_s": ideal and ideal.communication.exposed,
        "ideal_hidden_s": ideal and ideal.communication.hidden,
        "ideal_dark_share": ideal and ideal.dark_share,
        "ideal_circuit_bytes": ideal and ideal.record.circuit_bytes,
        "ideal_core_bytes": ideal and ideal.record.core_bytes,
    }


def _circuits(run: _Run) -> Iterator[dict[str, Any]]:
    for change in run.repeat.changes:
        yield change_row(change, run.scale.tdf)


def _circuit_use(run: _Run) -> Iterator[dict[str, Any]]:
    for use in run.repeat.circuits:
        yield use_row(use, run.scale.sigma)


def _links(run: _Run) -> Iterator[dict[str, Any]]:
    for link in run.repeat.links:
        yield _link(run, link)


def _link(run: _Run, link: LinkCounters) -> dict[str, Any]:
    node, _, number = link.link.rpartition(":")
    port, fabric = Port(node, int(number)), run.fabric.built.fabric
    rate = fabric.link(port).rate
    busy_wall = (run.repeat.trace.end - run.repeat.jumped) * run.scale.tdf
    wire_bits = 8 * (link.bytes + _UNCOUNTED * link.packets)
    return {
        "link": link.link,
        "peer": str(fabric.peer(port)),
        "rate_bps": rate,
        "rate_emulated_bps": round(rate / run.scale.beta),
        "payload_bytes": round(payload(link) * run.scale.sigma),
        "expected_bytes": round(link.expected_bytes * run.scale.sigma),
        "frame_bytes_emulated": link.bytes,
        "packets": link.packets,
        "expected_bytes_emulated": round(link.expected_bytes),
        "utilisation": wire_bits / (rate / run.scale.beta * busy_wall) if busy_wall > 0 else None,
        "queue_drops": link.queue_drops,
        "switch_drops": link.switch_drops,
    }


def _events(run: _Run) -> Iterator[dict[str, Any]]:
    found = [*_circuit_events(run.repeat), *_decisions(run.repeat), *_failures(run.repeat)]
    yield from sorted(found, key=lambda row: float(row["at_s"]))
    if run.repeat.jumps:
        detail = f"{run.repeat.jumps} jumps over {run.repeat.jumped:.12g} s of idle time"
        yield _event(run.repeat.trace.end, "jumps", "", detail)


def _circuit_events(repeat: Repeat) -> Iterator[dict[str, Any]]:
    for change in repeat.changes:
        if change.outcome == "committed":
            yield _event(change.dark_at, "dark", f"epoch {change.epoch}", "circuits that change carry nothing")
            yield _event(change.lit_at, "lit", f"epoch {change.epoch}", "the new circuits carry traffic")
        else:
            yield _event(change.asked_at, "aborted", f"epoch {change.epoch}", change.outcome)


def _decisions(repeat: Repeat) -> Iterator[dict[str, Any]]:
    """What the policy decided; how changes went that were begun is told with them."""
    begun = {change.epoch for change in repeat.changes}
    for decision in repeat.decisions:
        if decision.outcome == "commit" or (decision.outcome == "abort" and decision.epoch in begun):
            continue
        event = "aborted" if decision.outcome == "abort" else decision.outcome
        slack = "" if decision.slack is None else f", slack {decision.slack:.6g} s"
        yield _event(decision.at, event, f"epoch {decision.epoch}", f"{decision.event}{slack}: {decision.reason}")


def _failures(repeat: Repeat) -> Iterator[dict[str, Any]]:
    for failure in repeat.trace.failures:
        yield _event(failure.at, "failure", failure.task, failure.reason)


def _event(at: float, event: str, subject: str, detail: str) -> dict[str, Any]:
    return {"at_s": at, "event": event, "subject": subject, "detail": detail}


_MAKERS: Final[Mapping[str, Callable[[_Run], Iterator[dict[str, Any]]]]] = {
    FLOWS.name: _flows,
    COLLECTIVES.name: _collectives,
    PHASES.name: _phases,
    CIRCUITS.name: _circuits,
    CIRCUIT_USE.name: _circuit_use,
    LINKS.name: _links,
    EVENTS.name: _events,
}
