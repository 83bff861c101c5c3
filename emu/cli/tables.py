"""What a run came to, as tables and lines for people. Everything is in modelled units unless it says wall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from emu.cli.engines import for_engine
from emu.cli.grid import Field, Group, show_grid
from emu.cli.levels import level_text
from emu.cli.lines import show_line
from emu.cli.phase_tables import Cells, show_counterfactuals, show_phases
from emu.results.summary import CollectiveSummary, FabricSummary, FlowSummary, RunSummary
from emu.units import format_duration, format_size
from emu.verdict.levels import Level, Reason

_BUSY: Final = frozenset({"idle_before", "idle_during"})
"""The rules on processors that had too little time to spare."""
_LIKE = 3
"""So many reasons of one rule are shown; the manifest has all."""


def show_run(console: Console, summary: RunSummary) -> None:
    """Print the tables, the verdicts with their reasons, and where the results are."""
    show_phases(console, summary)
    if any(fabric.collectives for fabric in summary.fabrics):
        _show_collectives(console, summary)
    if any(fabric.flows for fabric in summary.fabrics):
        _show_flows(console, summary)
    show_counterfactuals(console, summary)
    if any(fabric.collectives or fabric.flows for fabric in summary.fabrics):
        console.print()
    if summary.engine == "model":
        _show_prediction(console, summary)
        return
    scale = f"sigma {summary.sigma:g}, beta {summary.beta:g}, TDF {summary.tdf:g}"
    show_line(console, f"Times are modelled; in the lab they were {summary.tdf:g} times as long ({scale}).", "dim")
    if summary.interrupted:
        show_line(console, "Interrupted: what was measured until then is written.", "yellow")
    for fabric in summary.fabrics:
        _show_verdict(console, fabric)
    show_line(console, f"Results after {format_duration(summary.wall)} of wall time: {summary.directory}")


def _show_prediction(console: Console, summary: RunSummary) -> None:
    """What is said below the tables of a run that nobody measured."""
    transport = "; ".join(summary.plan)
    show_line(console, f"Predicted by the model, nothing is measured ({transport}). Times are modelled.", "dim")
    for fabric in summary.fabrics:
        for note in fabric.notes:
            show_line(console, f"{fabric.name}: note: {note}", "dim")
    where = f": {summary.directory}" if summary.directory else "."
    show_line(console, f"Predicted in {format_duration(summary.wall)} of wall time{where}")


def _show_collectives(console: Console, summary: RunSummary) -> None:
    """One group for each collective in the order of time, one row for each fabric in it."""
    rows = [(fabric, row) for fabric in summary.fabrics for row in fabric.collectives]
    groups: dict[str, list[tuple[str, dict[str, Text]]]] = {}
    for fabric, row in rows:
        groups.setdefault(_heading(row), []).append((fabric.name, _collective_cells(row, fabric)))
    spread = any(fabric.repeats > 1 for fabric in summary.fabrics)
    fields = [field for field in _COLLECTIVE if spread or field.header not in ("min", "max")]
    _show_groups(console, summary, fields, groups)


def _show_groups(
    console: Console, summary: RunSummary, fields: Sequence[Field], groups: Mapping[str, list[tuple[str, Cells]]]
) -> None:
    named = [Group(heading, members) for heading, members in groups.items()]
    show_grid(console, "fabric", *for_engine(summary.engine, fields, named))


def _show_flows(console: Console, summary: RunSummary) -> None:
    """One group for each phase of flows, one row for each fabric in it."""
    groups: dict[str, list[tuple[str, dict[str, Text]]]] = {}
    for fabric in summary.fabrics:
        for row in fabric.flows:
            heading = f"{row.phase or 'flows'}: {row.count} flows, completion times and slowdowns"
            groups.setdefault(heading, []).append((fabric.name, _flow_cells(row, fabric)))
    _show_groups(console, summary, _FLOW, groups)


def _heading(row: CollectiveSummary) -> str:
    """For instance "training, gradients: ring all-reduce of 16 ranks, 15.26 GiB in 4 parts"."""
    size = format_size(row.bytes)
    if row.count > 1:
        size += f" in {row.count} parts" if row.summed else f", {row.count} times"
    name = row.label if row.phase in ("", row.label) else f"{row.phase}, {row.label}"
    return f"{name}: {row.algorithm} {row.kind} of {row.ranks} ranks, {size}"


def _collective_cells(row: CollectiveSummary, fabric: FabricSummary) -> dict[str, Text]:
    return {
        "measured": Text(format_duration(row.cct)),
        "min": Text(format_duration(row.cct_min)),
        "max": Text(format_duration(row.cct_max)),
        "ideal": Text("-" if row.ideal is None else format_duration(row.ideal)),
        "ratio": Text("-" if row.ratio is None else f"{row.ratio:.3f}"),
        "busbw": Text("-" if row.busbw is None else f"{row.busbw / 1e9:.4g} GB/s"),
        "verdict": level_text(fabric.verdict.level),
    }


def _flow_cells(row: FlowSummary, fabric: FabricSummary) -> dict[str, Text]:
    times = {"min": row.min, "median": row.median, "p99": row.p99, "max": row.max}
    slowdowns = {"mean slow": row.mean_slowdown, "p99 slow": row.p99_slowdown}
    return {
        **{name: Text(format_duration(seconds)) for name, seconds in times.items()},
        **{name: Text("-" if value is None else f"{value:.2f}") for name, value in slowdowns.items()},
        "verdict": level_text(fabric.verdict.level),
    }


_VERDICT = Field("verdict", 8, left=True)
_COLLECTIVE: Final = (
    Field("measured", 9),
    Field("min", 9, keep=3),
    Field("max", 9, keep=3),
    Field("ideal", 9, keep=2),
    Field("ratio", 5),
    Field("busbw", 11, keep=1),
    _VERDICT,
)
_FLOW: Final = (
    Field("min", 9, keep=3),
    Field("median", 9),
    Field("p99", 9),
    Field("max", 9, keep=2),
    Field("mean slow", 9, keep=1),
    Field("p99 slow", 8, keep=1),
    _VERDICT,
)


# -- the verdict -----------------------------------------------------------------------------------------------------


def _show_verdict(console: Console, fabric: FabricSummary) -> None:
    console.print(Text.assemble((f"{fabric.name}: ", "bold"), level_text(fabric.verdict.level)), soft_wrap=True)
    for line in reason_lines(fabric.verdict.reasons):
        show_line(console, line, indent=2)
    if any(reason.rule in _BUSY for reason in fabric.verdict.reasons):
        show_line(console, "repeat it when the machine is quiet", "yellow", indent=2)
    for note in fabric.notes:
        show_line(console, f"note: {note}", "dim", indent=2)


def reason_lines(reasons: Sequence[Reason]) -> Iterator[str]:
    """The reasons in their order, of each rule no more than a few."""
    seen: dict[tuple[Level, str], int] = {}
    for reason in reasons:
        key = (reason.level, reason.rule)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= _LIKE:
            yield f"{reason.level}: {reason.place}: {reason.text}"
        elif seen[key] == _LIKE + 1:
            rest = sum((other.level, other.rule) == key for other in reasons) - _LIKE
            yield f"{reason.level}: and {rest} more like these, in manifest.json"
