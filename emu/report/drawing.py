"""The fabric, drawn: boxes, cables, and for each step of a run what circuits are lit and what every link carries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from controllers.epochs import CircuitError, Epoch, OcsCircuit
from emu.errors import InputError
from emu.report import words
from emu.report.budget import Budget
from emu.report.layout import Layout, TooLargeError, arrange
from emu.report.loads import Bools, FlowTimes, Loads, Routing, load
from emu.report.optics import Span, spans
from emu.report.series import Run, Series, numbers, texts
from emu.report.shapes import Json, short
from emu.results.wiring import StoredFabric, read_wiring
from emu.scenario.build import build_fabrics
from emu.scenario.schema import Scenario
from emu.units import format_rate
from topologies.fabric import Fabric, FabricError, Port

MOST_STEPS: Final = 120
"""Steps of one kind in one drawing; a run with more epochs shows the first ones."""


@dataclass(frozen=True)
class Drawn:
    """A fabric that can be drawn. cables: both ends and the rate in bit/s, 0 for one that stands for many."""

    fabric: Fabric
    first: Epoch
    layout: Layout
    cables: list[tuple[Port, Port, int]]


def wired(run: Run) -> dict[str, StoredFabric] | str:
    """By name, the fabrics of a run; or why they are not known."""
    try:
        stored = read_wiring(run.directory)
        if stored is None:
            text = (run.directory / run.record.manifest.scenario_file).read_text()
            stored = [StoredFabric.of(built) for built in build_fabrics(Scenario.from_json(text))]
    except (ValidationError, FabricError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        return f"This run keeps no wiring, and its scenario cannot be built here: {reason}."
    except (InputError, OSError) as error:
        return f"The wiring of this run cannot be read: {error}."
    return {fabric.name: fabric for fabric in stored}


def draw(series: Series, repeat: int, known: dict[str, StoredFabric] | str, budget: Budget) -> Json:
    """One fabric in one repeat, or the `problem` that stands in place of a drawing."""
    if isinstance(known, str) or series.name not in known:
        return {"problem": known if isinstance(known, str) else "This run keeps no wiring of this fabric."}
    stored = known[series.name]
    fabric = stored.rebuild()
    try:
        layout = arrange(fabric)
        drawn = Drawn(fabric, stored.epoch, layout, _cables(fabric, layout))
        return {**_static(drawn), **_steps(drawn, series, repeat, budget)}
    except TooLargeError as error:
        return {"problem": f"This fabric is not drawn: its {error}."}
    except (CircuitError, FabricError) as error:
        return {"problem": f"The tables of this run do not fit its wiring: {error}."}


# -- what does not change --------------------------------------------------------------------------------------------


def _cables(fabric: Fabric, layout: Layout) -> list[tuple[Port, Port, int]]:
    """Every cable between two boxes; a box of hosts hangs at its switch by one, which stands for theirs."""
    found = [
        (link.a, link.b, link.rate)
        for link in fabric.links
        if link.a.node in layout.boxes and link.b.node in layout.boxes
    ]
    groups = {box for box in layout.boxes if box.endswith(".hosts")}
    return found + [(Port(name, 0), Port(name.removesuffix(".hosts"), 0), 0) for name in sorted(groups)]


def _static(drawn: Drawn) -> Json:
    layout = drawn.layout
    return {
        "width": short(layout.width),
        "height": short(layout.height),
        "layers": [[title, short(y)] for title, y in layout.layers],
        "nodes": [
            {
                "name": box.name,
                "kind": box.kind,
                "x": short(box.x),
                "y": short(box.y),
                "w": short(box.width),
                "count": box.count,
                "ports": {str(number): short(x) for number, x in (box.ports or {}).items()},
            }
            for box in layout.boxes.values()
        ],
        "cables": [
            {"a": a.node, "ap": a.number, "b": b.node, "bp": b.number, "rate": format_rate(rate) if rate else ""}
            for a, b, rate in drawn.cables
        ],
    }


# -- the steps -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stage:
    """What a step is made from. parts: windows inside epochs. lit: drawn as lit; going: as dark."""

    label: str
    when: str
    parts: list[tuple[Span, tuple[float, float]]]
    lit: frozenset[OcsCircuit]
    going: frozenset[OcsCircuit] = frozenset()
    which: Bools | None = None


def _steps(drawn: Drawn, series: Series, repeat: int, budget: Budget) -> Json:
    found = spans(series, repeat, drawn.first)
    routing = Routing(drawn.fabric, series.run.record.manifest.seed)
    whole = _counted(drawn, series, repeat, found)
    if not routing.fits([span.epoch for span in found]):
        by = "the model" if series.predicted else "their counters"
        note = f"Links are coloured by {by} over the whole run: this fabric is too large to route it again."
        return {"groups": {"epochs": [whole]}, "note": note}
    flows = FlowTimes.of(series, repeat)
    most = max(3, min(MOST_STEPS, budget.cells // max(1, 2 * len(drawn.cables))))
    epochs = list(_epoch_stages(found))
    phases = list(_phase_stages(series, repeat, flows, found))
    groups = {"phases": [whole, *(_step(drawn, routing, flows, stage) for stage in phases[:most])]}
    if drawn.fabric.ocses:
        groups = {"epochs": [whole, *(_step(drawn, routing, flows, stage) for stage in epochs[:most])], **groups}
    more = max(len(epochs), len(phases)) > most
    return {"groups": groups, "note": f"Only the first {most} steps of this run are drawn." if more else ""}


def _epoch_stages(found: Sequence[Span]) -> Iterator[_Stage]:
    """Each epoch, and before all but the first one the change that led to it."""
    for place, span in enumerate(found):
        if place:
            before, change = found[place - 1], (span.change, span.start)
            kept = before.epoch.lit & span.epoch.lit
            yield _Stage(
                f"change to epoch {span.epoch.number}",
                f"{_window(change)}: dark for {words.duration(span.start - span.change)}",
                [(before, change)],
                kept,
                before.epoch.lit - kept,
            )
        window = (span.start, span.end)
        yield _Stage(f"epoch {span.epoch.number}", _window(window), [(span, window)], span.epoch.lit)


def _phase_stages(series: Series, repeat: int, flows: FlowTimes, found: Sequence[Span]) -> Iterator[_Stage]:
    rows = series.phases[series.phases["repeat"] == repeat]
    for name, start, end in zip(
        texts(rows, "phase"), numbers(rows, "start_s").tolist(), numbers(rows, "end_s").tolist(), strict=True
    ):
        parts = [
            (span, (max(start, span.change), min(end, span.end)))
            for span in found
            if span.change < end and span.end > start
        ]
        lit = frozenset().union(*(span.epoch.lit for span, _ in parts)) if parts else frozenset()
        yield _Stage(name, _window((start, end)), parts, lit, which=flows.of_phase(name))


def _window(window: tuple[float, float]) -> str:
    start, end = window
    return f"{words.duration(start) if start > 0 else 0} to {words.duration(end)}"


def _step(drawn: Drawn, routing: Routing, flows: FlowTimes, stage: _Stage) -> Json:
    carried = load(routing, flows, stage.parts, stage.which)
    return {
        "label": stage.label,
        "when": stage.when,
        "source": "flows on their routes",
        **_links(drawn, carried),
        **_circuits(drawn, carried, stage.lit, stage.going),
    }


def _links(drawn: Drawn, carried: Loads) -> Json:
    """Load and bytes of each cable, up (from its first end) and down."""
    ends = [(port, drawn.fabric, rate) for a, b, rate in drawn.cables for port in (a, b)]
    shares = [_share(drawn, carried, port, rate) for port, _, rate in ends]
    return {
        "load": [short(share, 3) for share, _ in shares],
        "bytes": [short(moved, 4) for _, moved in shares],
    }


def _share(drawn: Drawn, carried: Loads, port: Port, rate: int) -> tuple[float, float]:
    """Of a port; of a box of hosts, or of what faces it, the mean of its links."""
    if rate:
        return carried.share(port, rate), carried.bytes.get(port, 0.0)
    box = port.node if port.node.endswith(".hosts") else f"{port.node}.hosts"
    nics = [
        nic
        for host in drawn.fabric.hosts
        if drawn.layout.stands_for[host.name] == box
        for nic in drawn.fabric.nics(host.name)
    ]
    ports = nics if port.node == box else [drawn.fabric.peer(nic) for nic in nics]
    shares = [carried.share(each, drawn.fabric.link(each).rate) for each in ports]
    return sum(shares) / max(len(shares), 1), sum(carried.bytes.get(each, 0.0) for each in ports)


def _circuits(drawn: Drawn, carried: Loads, lit: frozenset[OcsCircuit], going: frozenset[OcsCircuit]) -> Json:
    """Each circuit: OCS, ports, load and bytes; load is null for one that has gone dark."""
    rows = []
    for ocs, (entry, leaving) in sorted(lit | going):
        out = Port(ocs, leaving)
        rate = min(drawn.fabric.link(port).rate for port in (out, Port(ocs, entry)))
        dark = OcsCircuit(ocs, (entry, leaving)) in going  # type: ignore[arg-type]
        share = None if dark else short(carried.share(out, rate), 3)
        rows.append([ocs, entry, leaving, share, short(carried.bytes.get(out, 0.0), 4)])
    return {"circuits": rows}


def _counted(drawn: Drawn, series: Series, repeat: int, found: Sequence[Span]) -> Json:
    """The whole repeat, by the counters of its links, or by what the model says of them."""
    rows = series.links[series.links["repeat"] == repeat]
    ports = [_port(name) for name in texts(rows, "link")]
    moved = dict(zip(ports, numbers(rows, "payload_bytes").tolist(), strict=True))
    busy = dict(zip(ports, numbers(rows, "utilisation").tolist(), strict=True))
    counted = _Counted(moved, 1.0, busy)
    lit = frozenset().union(*(span.epoch.lit for span in found))
    return {
        "label": "whole run",
        "when": _window((0.0, series.end(repeat))),
        "source": "the model" if series.predicted else "counters",
        **_links(drawn, counted),
        **_circuits(drawn, counted, lit, frozenset()),
    }


@dataclass(frozen=True)
class _Counted(Loads):
    """As the counters of links say, which know how long each was busy."""

    busy: dict[Port, float]

    def share(self, port: Port, rate: int) -> float:
        """Share of the time not jumped over in which the link was busy."""
        return self.busy.get(port, 0.0)


def _port(name: str) -> Port:
    node, _, number = name.rpartition(":")
    return Port(node, int(number))
