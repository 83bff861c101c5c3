"""Phases in a few rows: measured ones, and those that the model makes of fabrics as they are not."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from emu.counterfactual import MEANINGS, Counterfactual
from emu.outcome import FabricOutcome
from emu.results.phases import PhaseFigures, measured_dark, modelled_dark, phase_figures
from emu.results.rows import ratio


@dataclass(frozen=True, slots=True)
class PhaseSummary:
    """One phase on one fabric. Medians over the repeats; times in modelled seconds, sizes in modelled bytes.

    start: from time zero. ideal, ratio: None if the model has no such phase. dark_share: share of its time in which
    some circuit was dark. communication = exposed + hidden, see `emu.overlap`. between_pods: bytes of its transfers
    from pod to pod; circuit_bytes, core_bytes: payload that circuits and core carried meanwhile, by port counters.
    """

    phase: str
    start: float
    duration: float
    duration_min: float
    duration_max: float
    ideal: float | None
    ratio: float | None
    dark_share: float
    communication: float
    exposed: float
    hidden: float
    ideal_exposed: float | None
    ideal_hidden: float | None
    between_pods: int
    circuit_bytes: int
    core_bytes: int


@dataclass(frozen=True, slots=True)
class ModelledPhase:
    """One phase of a counterfactual, by the model. duration: None if it was not finished, `problem` says why."""

    phase: str
    duration: float | None
    exposed: float | None
    hidden: float | None
    circuit_bytes: int
    core_bytes: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CounterfactualSummary:
    """What the model says of a fabric as it is not; nothing of it is measured.

    end: modelled seconds of the whole workload, None if it could not be finished.
    """

    kind: str
    meaning: str
    end: float | None
    phases: list[ModelledPhase]


def summarise_phases(outcome: FabricOutcome) -> Iterator[PhaseSummary]:
    """The phases of a fabric in the order in which they began."""
    fabric, prediction = outcome.built.fabric, outcome.prediction
    ideals = phase_figures(fabric, prediction.trace, modelled_dark(prediction.changes))
    found: dict[str, list[PhaseFigures]] = {}
    for repeat in outcome.measurement.repeats:
        for name, figures in phase_figures(fabric, repeat.trace, measured_dark(repeat.changes)).items():
            found.setdefault(name, []).append(figures)
    summaries = (_summary(name, repeats, ideals.get(name)) for name, repeats in found.items())
    return iter(sorted(summaries, key=lambda summary: summary.start))


def summarise_counterfactual(outcome: FabricOutcome, other: Counterfactual) -> CounterfactualSummary:
    """A counterfactual, with the phases that the fabric as it is has in the model."""
    prediction = other.prediction
    found = phase_figures(outcome.built.fabric, prediction.trace, modelled_dark(prediction.changes))
    whole = sorted(outcome.prediction.trace.phases.values(), key=lambda record: record.start)
    phases = [_modelled(record.name, found, other.problem(record.name, outcome.prediction)) for record in whole]
    finished = not any(phase.problem for phase in phases)
    return CounterfactualSummary(other.kind, MEANINGS[other.kind], prediction.trace.end if finished else None, phases)


def _summary(name: str, repeats: list[PhaseFigures], ideal: PhaseFigures | None) -> PhaseSummary:
    def median(of: Callable[[PhaseFigures], float]) -> float:
        return statistics.median(of(figures) for figures in repeats)

    duration, expected = median(lambda it: it.duration), None if ideal is None else ideal.duration
    return PhaseSummary(
        phase=name,
        start=median(lambda it: it.record.start),
        duration=duration,
        duration_min=min(figures.duration for figures in repeats),
        duration_max=max(figures.duration for figures in repeats),
        ideal=expected,
        ratio=ratio(duration, expected),
        dark_share=median(lambda it: it.dark_share),
        communication=median(lambda it: it.communication.total),
        exposed=median(lambda it: it.communication.exposed),
        hidden=median(lambda it: it.communication.hidden),
        ideal_exposed=None if ideal is None else ideal.communication.exposed,
        ideal_hidden=None if ideal is None else ideal.communication.hidden,
        between_pods=round(median(lambda it: it.between_pods)),
        circuit_bytes=round(median(lambda it: it.record.circuit_bytes)),
        core_bytes=round(median(lambda it: it.record.core_bytes)),
    )


def _modelled(name: str, found: dict[str, PhaseFigures], problem: str) -> ModelledPhase:
    figures = found.get(name)
    if figures is None:
        return ModelledPhase(name, None, None, None, 0, 0, problem)
    carried = figures.record.circuit_bytes, figures.record.core_bytes
    if problem:
        return ModelledPhase(name, None, None, None, *carried, problem)
    talking = figures.communication
    return ModelledPhase(name, figures.duration, talking.exposed, talking.hidden, *carried)
