"""Rules on times: measured against ideal."""

from __future__ import annotations

from collections.abc import Iterator

from emu.records import Trace
from emu.units import format_duration
from emu.verdict.case import Case, graded, median
from emu.verdict.levels import Reason


def completion(case: Case) -> Iterator[Reason]:
    """Every collective, phase of flows and run of flows took about as long as the ideal says."""
    yield from _collectives(case)
    yield from _phases(case)
    if not case.prediction.trace.collectives:
        ideal = last_byte(case.prediction.trace)
        ends = [last_byte(repeat.trace) for _, repeat in case.repeats() if repeat.trace.complete]
        yield from _compare(case, "run", median(ends), ideal)


def last_byte(trace: Trace) -> float:
    """When the last flow ended, in modelled seconds; 0 without flows."""
    return max((row.end for row in trace.flows), default=0.0)


def _collectives(case: Case) -> Iterator[Reason]:
    times: dict[str, list[float]] = {name: [] for name in case.prediction.cct}
    for _, repeat in case.repeats():
        for row in repeat.trace.collectives:
            times.setdefault(row.id, []).append(row.cct)
    whole = any(repeat.trace.complete for _, repeat in case.repeats())
    for name, measured in times.items():
        if name not in case.prediction.cct:
            yield Reason("INVALID", name, "was measured, but the model knows no such collective", "completion")
        elif not measured and whole:
            yield Reason("INVALID", name, "was not measured", "completion")
        else:
            yield from _compare(case, name, median(measured), case.prediction.cct[name])


def _phases(case: Case) -> Iterator[Reason]:
    """The phases that move bytes but no collectives, such as those of flow lists."""
    of_collectives = {row.phase for row in case.prediction.trace.collectives}
    for name, phase in case.prediction.trace.phases.items():
        if name in of_collectives or not phase.packet_bytes:
            continue
        rows = [repeat.trace.phases[name] for _, repeat in case.repeats() if name in repeat.trace.phases]
        yield from _compare(case, f"phase {name}", median(row.end - row.start for row in rows), phase.end - phase.start)


def _compare(case: Case, place: str, measured: float | None, ideal: float) -> Iterator[Reason]:
    """A reason if the two are too far apart; what takes no time (all inside hosts) has no ratio."""
    if measured is None or ideal <= 0:
        return
    band, ratio = case.thresholds.completion, measured / ideal
    text = (
        f"took {format_duration(measured)} where {format_duration(ideal)} are ideal: ratio {ratio:.3f}, "
        f"outside {band.good[0]:g} to {band.good[1]:g}"
    )
    yield from graded("completion", band, ratio, place, text)
