"""The timeline of one fabric in one repeat: phases, collectives, circuits and hosts as rows, by modelled time.

Coordinates: x in modelled seconds, y in rows from the top, each row as high as it says. What is too much to be drawn
one by one is drawn as sums: collectives as times in which any ran, flows as each host's load in bins of equal length.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from controllers.epochs import Epoch
from emu.intervals import union
from emu.report import words
from emu.report.budget import Budget
from emu.report.lanes import binned, lanes
from emu.report.loads import nic
from emu.report.optics import Span, lights, spans
from emu.report.series import Floats, Series, numbers, texts
from emu.report.shapes import Json, short, shorts
from emu.results.wiring import StoredFabric
from emu.units import format_rate, format_size

if TYPE_CHECKING:
    import pandas as pd

MOST_HOST_ROWS: Final = 128
"""Hosts with a row of their own; above that so many groups of neighbours have one."""
MOST_CIRCUIT_ROWS: Final = 40
MOST_CIRCUIT_BARS: Final = 1500
MOST_BANDS: Final = 60
MOST_COLLECTIVE_ROWS: Final = 24
_HEADING: Final = 1.0
_SLIVERS: Final = 800
"""The run's length by this cannot be seen: what is closer, or overlaps less, is taken for adjoining."""


@dataclass
class _Sheet:
    """What has been drawn so far. bars: by kind and colour (the phase's place, or None)."""

    end: float
    budget: Budget
    y: float = 0.0
    rows: list[Json] = field(default_factory=list)
    bars: dict[tuple[str, int | None], Json] = field(default_factory=dict)

    def row(self, label: str, group: str, height: float = 1.0) -> float:
        """Begin a row; its upper edge. The first row of a group stands off, for the group's name."""
        if not self.rows or self.rows[-1]["group"] != group:
            self.y += _HEADING
        top, self.y = self.y, self.y + height
        self.rows.append({"label": label, "group": group, "y": short(top + height / 2), "h": short(height)})
        return top

    def bar(self, kind: str, colour: int | None, y: float, height: float, start: float, end: float, text: str) -> None:
        """Draw an interval in the middle of `y` and `y + height`."""
        bars = self.bars.setdefault(
            (kind, colour), {"kind": kind, "phase": colour, "x": [], "dx": [], "y": [], "h": [], "text": []}
        )
        bars["x"].append(short(start, 7))
        bars["dx"].append(short(max(end - start, 0.0), 5))
        bars["y"].append(short(y + height / 2))
        bars["h"].append(short(height, 3))
        bars["text"].append(text)


def timeline(series: Series, repeat: int, stored: StoredFabric | None, phases: Sequence[str], budget: Budget) -> Json:
    """Everything that one timeline shows. stored: how the fabric was wired, if that is known.

    phases: of the whole report, in order; their places are their colours.
    """
    sheet = _Sheet(series.end(repeat), budget)
    colour = {name: place for place, name in enumerate(phases)}
    found = spans(series, repeat, stored.epoch if stored else Epoch())
    _draw_phases(sheet, series, repeat, colour)
    notes = [_draw_collectives(sheet, series, repeat, colour), _draw_circuits(sheet, found, stored)]
    hosts, heat = _draw_flows(sheet, series, repeat, colour)
    notes.append(hosts)
    bands = [[short(span.change, 7), short(span.start, 7)] for span in found[1:]]
    if len(bands) > MOST_BANDS:
        notes.append(f"{len(bands)} changes of circuits are too many to mark across all rows.")
        bands = []
    return {
        "end": short(sheet.end, 7),
        "height": short(sheet.y),
        "rows": sheet.rows,
        "bars": list(sheet.bars.values()),
        "heat": heat,
        "bands": bands,
        "notes": [note for note in notes if note],
    }


def _draw_phases(sheet: _Sheet, series: Series, repeat: int, colour: dict[str, int]) -> None:
    rows = series.phases[series.phases["repeat"] == repeat]
    for name, start, end in _times(rows, "phase"):
        text = f"{name}<br>{words.duration(end - start)}, from {words.duration(start)}"
        sheet.bar("phase", colour[name], sheet.row(name, "phases") + 0.12, 0.76, start, end, text)


def _draw_collectives(sheet: _Sheet, series: Series, repeat: int, colour: dict[str, int]) -> str:
    """One row for each step, by phase if there are too many steps; what was left out of the drawing, or nothing."""
    table = series.collectives[series.collectives["repeat"] == repeat].sort_values("start_s", kind="stable")
    key = "label" if table["label"].nunique() <= MOST_COLLECTIVE_ROWS else "phase"
    single = len(table) <= sheet.budget.bars
    for name, rows in table.groupby(key, sort=False):
        (_draw_each if single else _draw_any)(sheet, str(name), rows, colour)
    if single:
        return ""
    return f"{len(table)} collectives: rows show when any of them ran."


def _draw_each(sheet: _Sheet, name: str, rows: pd.DataFrame, colour: dict[str, int]) -> None:
    starts, ends = numbers(rows, "start_s").tolist(), numbers(rows, "end_s").tolist()
    places, count = lanes(starts, ends, 6, sheet.end / _SLIVERS)
    height = max(1.0, 0.42 * count)
    top, step = sheet.row(name, "collectives", height), (height - 0.2) / count
    kinds, sizes, speeds = texts(rows, "kind"), numbers(rows, "bytes"), numbers(rows, "busbw_Bps")
    for at, (phase, one) in enumerate(zip(texts(rows, "phase"), texts(rows, "id"), strict=True)):
        text = (
            f"{one}: {kinds[at]}, {format_size(sizes[at])}<br>CCT {words.duration(ends[at] - starts[at])}, "
            f"busbw {format_rate(8 * speeds[at])}"
        )
        y = top + 0.1 + step * places[at]
        sheet.bar("collective", colour.get(phase), y, step * 0.88, starts[at], ends[at], text)


def _draw_any(sheet: _Sheet, name: str, rows: pd.DataFrame, colour: dict[str, int]) -> None:
    top, phase = sheet.row(name, "collectives"), texts(rows, "phase")[0]
    gap = sheet.end / _SLIVERS
    widened = union((start, end + gap) for _, start, end in _times(rows, "id"))
    for start, end in widened:
        sheet.bar("collective", colour.get(phase), top + 0.1, 0.8, start, end - gap, f"{name}: some of {len(rows)}")


# -- circuits --------------------------------------------------------------------------------------------------------


def _draw_circuits(sheet: _Sheet, found: Sequence[Span], stored: StoredFabric | None) -> str:
    """One row for each OCS port where light enters, or for each OCS if those are too many."""
    lit = lights(found)
    if not lit:
        return ""
    ports = {(light.circuit.ocs, light.circuit.circuit.in_port) for light in lit}
    if len(ports) > MOST_CIRCUIT_ROWS or len(lit) > MOST_CIRCUIT_BARS:
        return _draw_epochs(sheet, found, len({light.circuit for light in lit}))
    far = _far_ends(stored)
    tops = {}
    for ocs, port in sorted(ports):
        tops[ocs, port] = sheet.row(f"{ocs}:{port} {far.get((ocs, port), '')}".strip(), "circuits", 0.9)
    for light in lit:
        ocs, (entry, leaving) = light.circuit
        end = far.get((ocs, leaving), f"port {leaving}")
        text = f"{far.get((ocs, entry), entry)} → {end} by {ocs}<br>lit {words.duration(light.end - light.start)}"
        sheet.bar("circuit", None, tops[ocs, entry] + 0.06, 0.78, light.start, light.end, f"→ {end}|{text}")
    _draw_dark(sheet, found, tops)
    return ""


def _draw_dark(sheet: _Sheet, found: Sequence[Span], tops: dict[tuple[str, int], float]) -> None:
    for before, span in pairwise(found):
        text = f"dark for {words.duration(span.start - span.change)}, before epoch {span.epoch.number}"
        changed = before.epoch.lit ^ span.epoch.lit
        for ocs, port in sorted({(ocs, circuit.in_port) for ocs, circuit in changed}):
            sheet.bar("dark", None, tops[ocs, port] + 0.06, 0.78, span.change, span.start, text)


def _draw_epochs(sheet: _Sheet, found: Sequence[Span], circuits: int) -> str:
    top = sheet.row("all OCSs", "circuits")
    gap = sheet.end / _SLIVERS
    shown = [span for span in found if span.end - span.start > gap] or list(found)
    for span in shown[:MOST_CIRCUIT_BARS]:
        text = f"epoch {span.epoch.number}<br>{len(span.epoch.lit)} circuits"
        sheet.bar("circuit", None, top + 0.1, 0.8, span.start, span.end, f"{span.epoch.number}|{text}")
    return f"{circuits} circuits: one row shows the epochs."


def _far_ends(stored: StoredFabric | None) -> dict[tuple[str, int], str]:
    """By OCS port, the node whose cable is in it."""
    cables = [] if stored is None else stored.links
    return {
        (port.node, port.number): other.node for link in cables for port, other in ((link.a, link.b), (link.b, link.a))
    }


# -- flows -----------------------------------------------------------------------------------------------------------


def _draw_flows(sheet: _Sheet, series: Series, repeat: int, colour: dict[str, int]) -> tuple[str, Json | None]:
    """One row for each host: what it sends above, what it receives below. What was summed up, and the sums."""
    rows = series.flows[(series.flows["repeat"] == repeat) & (series.flows["how"] == "packets")]
    rows = rows.sort_values("start_s", kind="stable")
    hosts = sorted({nic(name).node for name in {*texts(rows, "src"), *texts(rows, "dst")}}, key=_natural)
    if len(rows) <= sheet.budget.bars and len(hosts) <= MOST_HOST_ROWS:
        high = _height(len(hosts))
        tops = {host: sheet.row(host, "hosts", high) for host in hosts}
        for column, offset in (("src", 0.05 * high), ("dst", 0.52 * high)):
            halves = {host: top + offset for host, top in tops.items()}
            _draw_half(sheet, rows, column, halves, 0.43 * high, colour)
        return "", None
    return _draw_load(sheet, series, rows, hosts)


def _height(hosts: int) -> float:
    """Of a host's row, in rows: the lower the more of them there are."""
    return min(1.3, 60 / max(hosts, 1))


def _draw_half(
    sheet: _Sheet, rows: pd.DataFrame, column: str, tops: dict[str, float], high: float, colour: dict[str, int]
) -> None:
    """The flows that hosts send, or those that they receive, in as many lanes as overlap. high: of all lanes."""
    starts, ends = numbers(rows, "start_s").tolist(), numbers(rows, "end_s").tolist()
    hosts, phases, said = [nic(name).node for name in texts(rows, column)], texts(rows, "phase"), _flow_texts(rows)
    places: dict[str, list[int]] = defaultdict(list)
    for place, host in enumerate(hosts):
        places[host].append(place)
    for host, mine in places.items():
        lane, count = lanes([starts[at] for at in mine], [ends[at] for at in mine], 5, sheet.end / _SLIVERS)
        step = high / count
        for at, own in zip(mine, lane, strict=True):
            kind = "send" if column == "src" else "receive"
            y = tops[host] + step * own
            sheet.bar(kind, colour.get(phases[at]), y, step * 0.9, starts[at], ends[at], said[at])


def _flow_texts(rows: pd.DataFrame) -> list[str]:
    columns = [texts(rows, name) for name in ("id", "src", "dst")]
    sizes, times, slow = (numbers(rows, name).tolist() for name in ("bytes", "fct_s", "slowdown"))
    return [
        f"{one}<br>{src} → {dst}, {format_size(size)}<br>FCT {words.duration(fct)}"
        + ("" if np.isnan(by) else f", slowdown {by:.2f}")
        for one, src, dst, size, fct, by in zip(*columns, sizes, times, slow, strict=True)
    ]


def _draw_load(sheet: _Sheet, series: Series, rows: pd.DataFrame, hosts: Sequence[str]) -> tuple[str, Json]:
    """Each host's, or group of hosts', load: sent and received payload by what its NICs could have carried."""
    size = -(-len(hosts) // MOST_HOST_ROWS)
    groups = [hosts[at : at + size] for at in range(0, len(hosts), size)]
    group_of = {host: place for place, group in enumerate(groups) for host in group}
    high = _height(len(groups))
    for group in groups:
        sheet.row(group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}", "hosts", high)
    edges = np.linspace(0.0, sheet.end, sheet.budget.bins + 1)
    capacity = _capacities(series, group_of, len(groups)) * (edges[1] - edges[0]) / 8
    z = []
    times = numbers(rows, "start_s"), numbers(rows, "end_s"), numbers(rows, "bytes")
    sides = [np.array([group_of[nic(name).node] for name in texts(rows, column)]) for column in ("src", "dst")]
    for place in range(len(groups)):
        for side in sides:
            mine = side == place
            moved = binned(times[0][mine], times[1][mine], times[2][mine], edges)
            z.append(shorts(moved / capacity[place], 2))
    middles = [row["y"] for row in sheet.rows if row["group"] == "hosts"]
    y = [short(middle + half) for middle in middles for half in (-high / 4, high / 4)]
    note = f"{len(rows)} flows are too many to draw: a row shows its load in bins of {words.duration(edges[1])}"
    return f"{note}, sent above, received below.", {"y": y, "dx": short(float(edges[1]), 7), "z": z}


def _capacities(series: Series, group_of: dict[str, int], count: int) -> Floats:
    """Bit/s that the NICs of each group can send."""
    total = np.zeros(count)
    links = series.links[series.links["repeat"] == series.links["repeat"].min()]
    for name, rate in zip(texts(links, "link"), numbers(links, "rate_bps").tolist(), strict=True):
        if (place := group_of.get(name.rpartition(":")[0])) is not None:
            total[place] += rate
    return np.where(total > 0, total, 1.0)


def _times(rows: pd.DataFrame, column: str) -> list[tuple[str, float, float]]:
    return list(
        zip(texts(rows, column), numbers(rows, "start_s").tolist(), numbers(rows, "end_s").tolist(), strict=True)
    )


def _natural(name: str) -> tuple[str, int]:
    """h2 before h10."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0)
