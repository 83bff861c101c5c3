"""A run as a timeline in the Chrome trace format, which Perfetto (https://ui.perfetto.dev) opens.

A process is a fabric (and repeat); its threads are the phases, the collectives of each step, decisions on circuits,
dark times, the circuits of each OCS port, and what every host sends and receives. Counters show the load of each link
between a host and the fabric. Time is modelled time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final

from emu.export.cells import Row, real, text, whole
from emu.export.hosts import natural, nic_of, split
from emu.export.selection import Selection
from emu.export.stream import write_text
from emu.export.trace_events import Event, Process, lanes

MOST_DETAILED: Final = 20_000
"""Flows of one repeat above which arrows and receivers' slices are left out: viewers get slow on millions of events."""

_Flow = tuple[int, Row]
"""A flow with its number, which its arrow has."""


def write(selection: Selection, stream: BinaryIO) -> None:
    """Write the trace, an event a line."""
    write_text(stream, _lines(selection))


def _lines(selection: Selection) -> Iterator[str]:
    yield '{"displayTimeUnit": "ms",'
    yield f'"otherData": {json.dumps(_about(selection))},'
    yield '"traceEvents": ['
    before = ""
    for event in _events(selection):
        if before:
            yield f"{before},"
        before = json.dumps(event, separators=(",", ":"))
    yield before
    yield "]}"


def _about(selection: Selection) -> dict[str, str]:
    run = selection.manifest
    return {
        "emu": run.emu,
        "run": run.name,
        "verdict": run.verdict,
        "scenario_hash": run.scenario_hash,
        "seed": str(run.seed),
        "time": "modelled microseconds from time zero",
    }


def _events(selection: Selection) -> Iterator[Event]:
    runs = selection.runs()
    repeated = len({repeat for _, repeat in runs}) > 1
    for pid, (fabric, repeat) in enumerate(runs, start=1):
        process = Process(pid, f"{fabric.name}, repeat {repeat}" if repeated else fabric.name)
        tables = {name: selection.rows(name, fabric.name, repeat) for name in selection.tables}
        yield from _phases(process, tables["phases"])
        yield from _collectives(process, tables["collectives"])
        yield from _decisions(process, tables["events"])
        yield from _dark_times(process, tables["circuits"])
        yield from _circuits(process, tables["circuit_use"], tables["circuits"])
        yield from _flows(process, tables["flows"], selection.notes)
        yield from _loads(process, tables["flows"], tables["links"])
        yield from process.names()


# -- threads -----------------------------------------------------------------------------------------------------------


def _phases(process: Process, rows: Iterable[Row]) -> Iterator[Event]:
    for row in sorted(rows, key=_start):
        name = text(row, "phase")
        args = _numbers(row, "duration_s", "ideal_s", "ratio", "packet_bytes", "exposed_s", "hidden_s", "dark_s")
        yield process.slice(f"phase {name}", "phase", name, *_span(row), args)


def _collectives(process: Process, rows: Iterable[Row]) -> Iterator[Event]:
    steps: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=_start):
        steps[text(row, "label")].append(row)
    for label, members in steps.items():
        for row, lane in lanes(members, _span):
            words = {name: text(row, name) for name in ("kind", "algorithm", "phase")}
            numbers = _numbers(row, "ranks", "bytes", "merged", "cct_s", "ideal_s", "ratio", "algbw_Bps", "busbw_Bps")
            thread = _laned(f"collectives {label}", lane)
            yield process.slice(thread, "collective", text(row, "id"), *_span(row), {**words, **numbers})


def _decisions(process: Process, rows: Iterable[Row]) -> Iterator[Event]:
    """Decisions of the policy, failures, and marks across the process where circuits go dark and come back."""
    for row in rows:
        event, subject = text(row, "event"), text(row, "subject")
        name = f"{event} {subject}".strip()
        args = {"detail": text(row, "detail")}
        marks = event in ("dark", "lit")
        yield process.instant(
            "decisions", "circuits" if marks else "decision", name, real(row, "at_s"), args, whole=marks
        )


def _dark_times(process: Process, rows: Iterable[Row]) -> Iterator[Event]:
    for row in rows:
        if not _committed(row):
            continue
        args = _numbers(row, "asked_dark_s", "control_dark_s", "data_plane_dark_s", "service_dark_s", "affected_flows")
        name = f"dark before epoch {whole(row, 'epoch')}"
        yield process.slice("dark time", "circuits", name, real(row, "dark_at_s"), real(row, "lit_at_s"), args)


def _circuits(process: Process, rows: Iterable[Row], changes: Iterable[Row]) -> Iterator[Event]:
    """When each circuit was lit: from its epoch's first light for as long as its row says."""
    began = {0: 0.0} | {whole(row, "epoch"): real(row, "lit_at_s") for row in changes if _committed(row)}
    found = [row for row in rows if row["out_port"] is not None and whole(row, "epoch") in began]
    for row in sorted(found, key=lambda row: (text(row, "ocs"), whole(row, "in_port"), whole(row, "epoch"))):
        start = began[whole(row, "epoch")]
        name = f"{whole(row, 'in_port')} -> {whole(row, 'out_port')}"
        args = {"epoch": whole(row, "epoch"), **_numbers(row, "duty", "payload_bytes", "packets", "lost_packets")}
        thread = f"circuit {text(row, 'ocs')}:{whole(row, 'in_port')}"
        yield process.slice(thread, "circuits", name, start, start + real(row, "lit_s"), args)


def _flows(process: Process, rows: list[Row], notes: list[str]) -> Iterator[Event]:
    detailed = len(rows) <= MOST_DETAILED
    if not detailed:
        left_out = f"arrows and what hosts receive are left out above {MOST_DETAILED}"
        notes.append(f"{process.name}: {len(rows)} flows; {left_out}")
    numbered = list(enumerate(sorted(rows, key=_start), start=1))
    sent, got = _by_host(numbered, "src"), _by_host([item for item in numbered if _by_packets(item[1])], "dst")
    for host in sorted({*sent, *got}, key=lambda host: natural(f"{host}:0")):
        yield from _sends(process, host, sent.get(host, []), arrows=detailed)
        if detailed:
            yield from _receives(process, host, got.get(host, []))


def _by_host(flows: Iterable[_Flow], end: str) -> dict[str, list[_Flow]]:
    """Flows by the host at one of their ends."""
    hosts: dict[str, list[_Flow]] = defaultdict(list)
    for flow in flows:
        hosts[split(nic_of(text(flow[1], end)))[0]].append(flow)
    return hosts


def _sends(process: Process, host: str, flows: list[_Flow], *, arrows: bool) -> Iterator[Event]:
    for (number, row), lane in lanes(flows, lambda item: _span(item[1])):
        name, thread = f"to {text(row, 'dst')}", _laned(f"{host} sends", lane)
        args = {"id": text(row, "id"), "phase": text(row, "phase"), "how": text(row, "how")}
        numbers = _numbers(row, "bytes", "fct_s", "ideal_s", "slowdown", "retransmits")
        yield process.slice(thread, "transfer", name, *_span(row), {**args, **numbers})
        if arrows and _by_packets(row):
            yield process.arrow(thread, "transfer", real(row, "start_s"), number, ends=False)


def _receives(process: Process, host: str, flows: list[_Flow]) -> Iterator[Event]:
    for (number, row), lane in lanes(flows, lambda item: _reading(item[1])):
        start, end = _reading(row)
        thread, args = _laned(f"{host} receives", lane), {"id": text(row, "id"), "phase": text(row, "phase")}
        yield process.slice(thread, "transfer", f"from {text(row, 'src')}", start, end, args)
        yield process.arrow(thread, "transfer", start, number, ends=True)


# -- counters ----------------------------------------------------------------------------------------------------------


def _loads(process: Process, flows: Iterable[Row], links: Iterable[Row]) -> Iterator[Event]:
    """The load of every link at a NIC: at each instant, the mean rates of the flows under way on it, added up."""
    peers = {text(row, "link"): text(row, "peer") for row in links}
    changes: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for row in flows:
        if not _by_packets(row) or real(row, "fct_s") <= 0:
            continue
        rate = 8 * whole(row, "bytes") / real(row, "fct_s") / 1e9
        src, dst = nic_of(text(row, "src")), nic_of(text(row, "dst"))
        for link in (f"{src} -> {peers.get(src, '')}", f"{peers.get(dst, '')} -> {dst}"):
            changes[link][real(row, "start_s")] += rate
            changes[link][real(row, "end_s")] -= rate
    for link in sorted(changes):
        load = 0.0
        for at in sorted(changes[link]):
            load += changes[link][at]
            yield process.counter(link, "Gb/s", at, abs(round(load, 3)))


# -- rows --------------------------------------------------------------------------------------------------------------


def _numbers(row: Row, *columns: str) -> dict[str, Any]:
    return {column: row[column] for column in columns}


def _start(row: Row) -> float:
    return real(row, "start_s")


def _span(row: Row) -> tuple[float, float]:
    return real(row, "start_s"), real(row, "end_s")


def _reading(row: Row) -> tuple[float, float]:
    """From the receiver's first read to its last."""
    return real(row, "first_byte_s"), real(row, "end_s")


def _committed(change: Row) -> bool:
    return text(change, "outcome").startswith("committed")


def _by_packets(flow: Row) -> bool:
    return flow["how"] == "packets"


def _laned(name: str, lane: int) -> str:
    return name if lane == 0 else f"{name} #{lane + 1}"
