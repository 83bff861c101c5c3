"""Phases side by side: each on every fabric, and what the model makes of fabrics as they are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.text import Text

from emu.cli.engines import for_engine
from emu.cli.grid import Field, Group, show_grid
from emu.cli.levels import level_text
from emu.results.phase_summary import CounterfactualSummary, ModelledPhase, PhaseSummary
from emu.results.summary import FabricSummary, RunSummary
from emu.units import format_duration, format_size

Cells = dict[str, Text]


def show_phases(console: Console, summary: RunSummary) -> None:
    """One group for each phase in the order of time, one row for each fabric in it."""
    groups: dict[str, list[tuple[str, Cells]]] = {}
    sizes: dict[str, int] = {}
    for fabric in summary.fabrics:
        for row in fabric.phases:
            groups.setdefault(row.phase, []).append((fabric.name, _cells(row, fabric)))
            sizes.setdefault(row.phase, row.between_pods)
    if groups:
        named = [Group(_heading(phase, sizes[phase]), rows) for phase, rows in groups.items()]
        whole = [(fabric.name, _whole(fabric)) for fabric in summary.fabrics if fabric.end is not None]
        groups_shown = [*named, *([Group("all phases", whole)] if whole else [])]
        show_grid(console, "fabric", *for_engine(summary.engine, _PHASE, groups_shown))
        console.print()


def show_counterfactuals(console: Console, summary: RunSummary) -> None:
    """For each fabric that has them, one group for each phase: the ideal of the fabric as it is, and as it is not."""
    for fabric in summary.fabrics:
        if not fabric.counterfactuals:
            continue
        console.print()
        console.print(Text(f"{fabric.name}, by the model alone (nothing here is measured):", style="bold"))
        show_grid(console, "circuits", _MODELLED, list(_counterfactual_groups(fabric)))
        for problem in _problems(fabric):
            console.print(Text(f"  {problem}"), soft_wrap=True)


def _heading(phase: str, between_pods: int) -> str:
    return f"{phase}: {format_size(between_pods)} between pods" if between_pods else phase


def _cells(row: PhaseSummary, fabric: FabricSummary) -> Cells:
    return {
        "measured": Text(format_duration(row.duration)),
        "ideal": _time(row.ideal),
        "ratio": Text("-" if row.ratio is None else f"{row.ratio:.3f}"),
        "dark": Text(f"{row.dark_share:.1%}" if fabric.circuits else "-"),
        # A phase that stays inside its pods meets the bytes of others that run at the same time.
        "circuits": Text(format_size(row.circuit_bytes) if fabric.circuits and row.between_pods else "-"),
        "exposed": Text(format_duration(row.exposed)),
        "hidden": Text(format_duration(row.hidden)),
        "verdict": level_text(fabric.verdict.level),
    }


def _whole(fabric: FabricSummary) -> Cells:
    """The run from time zero to its end."""
    ratio = fabric.end / fabric.ideal_end if fabric.end and fabric.ideal_end else None
    return {
        **{field.header: Text("") for field in _PHASE},
        "measured": _time(fabric.end),
        "ideal": _time(fabric.ideal_end),
        "ratio": Text("-" if ratio is None else f"{ratio:.3f}"),
        "verdict": level_text(fabric.verdict.level),
    }


def _counterfactual_groups(fabric: FabricSummary) -> Iterator[Group]:
    for row in fabric.phases:
        rows = [("as they are", _ideal_cells(row))]
        for other in fabric.counterfactuals:
            rows += [(other.kind, _modelled_cells(phase, row)) for phase in other.phases if phase.phase == row.phase]
        yield Group(row.phase, rows)


def _ideal_cells(row: PhaseSummary) -> Cells:
    return {
        "modelled": _time(row.ideal),
        "by ideal": Text("-"),
        "exposed": _time(row.ideal_exposed),
        "hidden": _time(row.ideal_hidden),
    }


def _modelled_cells(phase: ModelledPhase, row: PhaseSummary) -> Cells:
    known = phase.duration is not None and row.ideal
    return {
        "modelled": Text("no path") if phase.duration is None else _time(phase.duration),
        "by ideal": Text(f"{(phase.duration or 0) / row.ideal:.3f}" if known and row.ideal else "-"),
        "exposed": _time(phase.exposed),
        "hidden": _time(phase.hidden),
    }


def _problems(fabric: FabricSummary) -> Iterator[str]:
    """Each problem once, with the first phase that has it."""
    for other in fabric.counterfactuals:
        yield from (f"{other.kind}: {phase}: {text}" for text, phase in _first_phases(other).items())


def _first_phases(other: CounterfactualSummary) -> dict[str, str]:
    found: dict[str, str] = {}
    for phase in other.phases:
        if phase.problem:
            found.setdefault(phase.problem, phase.phase)
    return found


def _time(seconds: float | None) -> Text:
    return Text("-" if seconds is None else format_duration(seconds))


_PHASE: Final = (
    Field("measured", 9),
    Field("ideal", 9, keep=2),
    Field("ratio", 5),
    Field("dark", 5),
    Field("circuits", 9),
    Field("exposed", 9),
    Field("hidden", 9, keep=1),
    Field("verdict", 8, left=True),
)
_MODELLED: Final = (
    Field("modelled", 9),
    Field("by ideal", 8),
    Field("exposed", 9),
    Field("hidden", 9, keep=1),
)
