"""Rules on changes of circuits: in time, dark as long as asked by the word of both planes, and lit afterwards."""

from __future__ import annotations

from collections.abc import Iterator

from emu.measurement import CircuitChange
from emu.units import format_duration
from emu.verdict.case import Case, graded
from emu.verdict.levels import Reason


def circuit_changes(case: Case) -> Iterator[Reason]:
    """Circuits changed at their instants, and were dark as long as asked."""
    for place, repeat in case.repeats():
        for change in repeat.changes:
            name = f"epoch {change.epoch}" if place == "run" else f"epoch {change.epoch}, {place}"
            if change.outcome != "committed":
                text = f"the change of circuits was {change.outcome}"
                yield Reason("INVALID", name, text, "circuit_changes")
                continue
            for plane in change.data_plane:
                if plane.problem:
                    yield Reason("INVALID", f"{plane.ocs}, {name}", plane.problem, "circuit_changes")
            if change.asked_dark > 0:
                yield from _timeliness(case, name, change)
                yield from _dark_times(case, name, change)


def _timeliness(case: Case, name: str, change: CircuitChange) -> Iterator[Reason]:
    dark = change.asked_dark * case.tdf
    text = f"circuits changed {format_duration(change.late_wall)} late, at {format_duration(dark)} of dark wall time"
    yield from graded("change_late", case.thresholds.change_late, change.late_wall / dark, name, text)


def _dark_times(case: Case, name: str, change: CircuitChange) -> Iterator[Reason]:
    asked = f"where {format_duration(change.asked_dark)} were asked for"
    error = abs(change.control_dark - change.asked_dark) / change.asked_dark
    text = f"circuits were dark for {format_duration(change.control_dark)} {asked}"
    yield from graded("dark_error", case.thresholds.dark_error, error, name, text)
    for plane in change.data_plane:
        if plane.dark is not None:
            off = abs(plane.dark - change.asked_dark) - plane.resolution_wall / case.tdf
            text = f"nothing passed for {format_duration(max(0.0, plane.dark))} {asked}, by probe frames"
            error = max(0.0, off) / change.asked_dark
            yield from graded("data_plane_error", case.thresholds.data_plane_error, error, f"{plane.ocs}, {name}", text)
