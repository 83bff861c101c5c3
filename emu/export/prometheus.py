"""A run as metrics in Prometheus' text format, for the textfile collector of node_exporter or a push gateway.

All are gauges and summaries without time stamps, in base units (seconds, bytes, bytes per second, ratios). Times are
modelled.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import BinaryIO, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from emu.export.cells import Row, maybe, real
from emu.export.selection import Selection

_RUN: Final = ("fabric", "repeat")
_PHASE: Final = (*_RUN, "phase")
_COLLECTIVE: Final = (*_RUN, "phase", "collective", "kind", "algorithm")
_LINK: Final = (*_RUN, "link", "peer")
_CIRCUIT: Final = (*_RUN, "epoch", "ocs", "in_port", "out_port")
QUANTILES: Final = (0.5, 0.9, 0.99, 1.0)
_COLUMN_OF_LABEL: Final = {"collective": "label"}
"""Labels whose column has another name: a collective is told by its step, not one by one."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """One gauge: a sample for each row of a table that has the number. value: of a row, None for no sample."""

    name: str
    help: str
    table: str
    labels: Sequence[str]
    value: Callable[[Row], float | None]


def _column(name: str) -> Callable[[Row], float | None]:
    return lambda row: maybe(row, name)


GAUGES: Final = (
    Gauge("emu_phase_duration_seconds", "Duration of a phase, modelled.", "phases", _PHASE, _column("duration_s")),
    Gauge("emu_phase_ideal_seconds", "Its duration in the fluid model.", "phases", _PHASE, _column("ideal_s")),
    Gauge("emu_phase_slowdown_ratio", "Duration by ideal.", "phases", _PHASE, _column("ratio")),
    Gauge(
        "emu_phase_exposed_seconds", "Communication that no computation hid.", "phases", _PHASE, _column("exposed_s")
    ),
    Gauge("emu_phase_hidden_seconds", "Communication that computation hid.", "phases", _PHASE, _column("hidden_s")),
    Gauge("emu_phase_dark_seconds", "Time in which some circuit was dark.", "phases", _PHASE, _column("dark_s")),
    Gauge("emu_phase_packet_bytes", "Payload sent as packets.", "phases", _PHASE, _column("packet_bytes")),
    Gauge("emu_phase_charged_bytes", "Payload too small to send.", "phases", _PHASE, _column("charged_bytes")),
    Gauge("emu_phase_circuit_bytes", "Payload that left OCSs.", "phases", _PHASE, _column("circuit_bytes")),
    Gauge("emu_phase_core_bytes", "Payload sent up to the core.", "phases", _PHASE, _column("core_bytes")),
    Gauge(
        "emu_link_rate_bytes_per_second",
        "Line rate of a link's direction.",
        "links",
        _LINK,
        lambda row: real(row, "rate_bps") / 8,
    ),
    Gauge("emu_link_utilisation_ratio", "Share of time in which it was busy.", "links", _LINK, _column("utilisation")),
    Gauge("emu_link_payload_bytes", "Payload that it carried.", "links", _LINK, _column("payload_bytes")),
    Gauge("emu_link_expected_bytes", "Payload by the model.", "links", _LINK, _column("expected_bytes")),
    Gauge("emu_link_queue_drops", "Frames lost at its queue.", "links", _LINK, _column("queue_drops")),
    Gauge("emu_link_switch_drops", "Frames that the switch lost.", "links", _LINK, _column("switch_drops")),
    Gauge("emu_circuit_lit_seconds", "Time for which a circuit was lit.", "circuit_use", _CIRCUIT, _column("lit_s")),
    Gauge("emu_circuit_duty_ratio", "The same by the run's length.", "circuit_use", _CIRCUIT, _column("duty")),
    Gauge("emu_circuit_payload_bytes", "Payload that left by it.", "circuit_use", _CIRCUIT, _column("payload_bytes")),
    Gauge("emu_circuit_lost_packets", "Packets lost for want of it.", "circuit_use", _CIRCUIT, _column("lost_packets")),
)


def write(selection: Selection, stream: BinaryIO) -> None:
    """Write the metrics."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Run(selection))
    stream.write(generate_latest(registry))


class _Run(Collector):
    """What prometheus_client asks for metrics."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection

    def collect(self) -> Iterator[Metric]:
        """Every metric family of the run that has a sample."""
        tables = self._selection.tables
        families = [
            _information(self._selection),
            *_verdicts(self._selection),
            *_repeats(self._selection),
            *(_gauge(gauge, tables[gauge.table]) for gauge in GAUGES),
            _dark_times(tables["circuits"]),
            *_collectives(tables["collectives"]),
            _flows(tables["flows"]),
        ]
        return (family for family in families if family.samples)


# -- of the whole run --------------------------------------------------------------------------------------------------


def _information(selection: Selection) -> Metric:
    run = selection.manifest
    labels = {
        "run": run.name,
        "version": run.emu,
        "scenario_hash": run.scenario_hash,
        "seed": str(run.seed),
        "engine": run.engine,
        "traffic": run.traffic,
    }
    family = GaugeMetricFamily("emu_run_info", "What was run; always 1.", labels=list(labels))
    family.add_metric(list(labels.values()), 1)
    return family


def _verdicts(selection: Selection) -> Iterator[Metric]:
    run = selection.manifest
    began = GaugeMetricFamily("emu_run_start_time_seconds", "When the run began, seconds since 1970.")
    began.add_metric([], run.began.timestamp())
    yield began
    tdf = GaugeMetricFamily("emu_run_time_dilation_ratio", "Wall seconds for each modelled second.")
    tdf.add_metric([], run.scale.tdf)
    yield tdf
    verdict = GaugeMetricFamily(
        "emu_fabric_verdict", "1 for the verdict on a fabric's numbers, 0 for the others.", labels=["fabric", "verdict"]
    )
    for fabric in selection.fabrics:
        for level in ("VALID", "DEGRADED", "INVALID"):
            verdict.add_metric([fabric.name, level], float(fabric.verdict.level == level))
    yield verdict


def _repeats(selection: Selection) -> Iterator[Metric]:
    duration = GaugeMetricFamily("emu_run_duration_seconds", "From time zero to the end, modelled.", labels=_RUN)
    idle = GaugeMetricFamily("emu_lab_idle_cpu_ratio", "Share of the processors' time that was idle.", labels=_RUN)
    again = GaugeMetricFamily("emu_lab_retransmitted_segments", "TCP segments sent again.", labels=_RUN)
    lost = GaugeMetricFamily("emu_lab_receive_drops", "Frames lost at Open vSwitch's sockets.", labels=_RUN)
    for fabric, number in selection.runs():
        labels, repeat = [fabric.name, str(number)], fabric.repeats[number - 1]
        duration.add_metric(labels, repeat.end_s)
        idle.add_metric(labels, repeat.health.idle_cpu)
        again.add_metric(labels, repeat.health.retransmits)
        lost.add_metric(labels, repeat.health.receive_drops)
    yield from (duration, idle, again, lost)


# -- of tables ---------------------------------------------------------------------------------------------------------


def _gauge(gauge: Gauge, rows: Iterable[Row]) -> Metric:
    family = GaugeMetricFamily(gauge.name, gauge.help, labels=gauge.labels)
    for row in rows:
        value = gauge.value(row)
        if value is not None:
            family.add_metric(_labels(row, gauge.labels), value)
    return family


def _dark_times(rows: Iterable[Row]) -> Metric:
    family = GaugeMetricFamily(
        "emu_circuit_dark_seconds",
        "Dark time of a change of circuits, by who saw it: asked, control, data_plane or service.",
        labels=[*_RUN, "epoch", "measure"],
    )
    for row in rows:
        for measure in ("asked", "control", "data_plane", "service"):
            value = maybe(row, f"{measure}_dark_s")
            if value is not None:
                family.add_metric([*_labels(row, (*_RUN, "epoch")), measure], value)
    return family


def _collectives(rows: Sequence[Row]) -> Iterator[Metric]:
    """Of a step's collectives: how long they took, and their bandwidths on average."""
    groups = _grouped(rows, _COLLECTIVE)
    yield _summary(
        "emu_collective_completion_seconds", "Completion times of a step's collectives.", _COLLECTIVE, groups, "cct_s"
    )
    for name, column, what in (("algbw", "algbw_Bps", "Algorithm"), ("busbw", "busbw_Bps", "Bus")):
        family = GaugeMetricFamily(
            f"emu_collective_{name}_bytes_per_second", f"{what} bandwidth, mean of a step's.", labels=_COLLECTIVE
        )
        for labels, members in groups.items():
            values = [value for row in members if (value := maybe(row, column)) is not None]
            if values:
                family.add_metric(labels, fmean(values))
        yield family


def _flows(rows: Iterable[Row]) -> Metric:
    sent = [row for row in rows if row["how"] == "packets"]
    what = "Completion times of a phase's flows that were sent as packets."
    return _summary("emu_flow_completion_seconds", what, _PHASE, _grouped(sent, _PHASE), "fct_s")


def _summary(
    name: str, what: str, labels: Sequence[str], groups: dict[tuple[str, ...], list[Row]], column: str
) -> Metric:
    family = SummaryMetricFamily(name, what, labels=labels)
    for values, rows in groups.items():
        times = sorted(real(row, column) for row in rows)
        named = dict(zip(labels, values, strict=True))
        for quantile in QUANTILES:
            time = times[math.ceil(len(times) * quantile) - 1]
            family.add_sample(name, {**named, "quantile": f"{quantile:g}"}, time)
        family.add_metric(values, len(times), math.fsum(times))
    return family


def _grouped(rows: Iterable[Row], labels: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(_labels(row, labels))].append(row)
    return groups


def _labels(row: Row, labels: Sequence[str]) -> list[str]:
    cells = (row[_COLUMN_OF_LABEL.get(label, label)] for label in labels)
    return ["" if cell is None else str(cell) for cell in cells]
