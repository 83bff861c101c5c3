"""A run in a few rows: what the command line shows. Modelled seconds and bytes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from emu.outcome import FabricOutcome, Outcome
from emu.records import CollectiveRecord
from emu.results.phase_summary import (
    CounterfactualSummary,
    PhaseSummary,
    summarise_counterfactual,
    summarise_phases,
)
from emu.results.rows import busbw, ratio
from emu.scenario.rl_spec import RlWorkload
from emu.scenario.schema import Scenario
from emu.scenario.workload_spec import CollectiveStep, FlowList, OwnWorkload
from emu.verdict.levels import Level, Verdict
from workloads.rl_iteration.training import GRADIENTS

Key = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class CollectiveSummary:
    """Collectives of one step of the scenario and, unless they are layer buckets, of one size.

    start: of the first, modelled seconds from time zero. count: how many of them one repeat has.
    summed: their times and bytes are added up (layer buckets of one gradient); otherwise times are of one collective.
    bytes: S. merged: how many of the workload's messages they stand for.
    cct, cct_min, cct_max: median and spread over the repeats (and over the `count`, unless summed).
    ideal, ratio: None if the model has no time for them. busbw: byte/s, as nccl-tests defines it.
    """

    label: str
    phase: str
    start: float
    kind: str
    algorithm: str
    ranks: int
    count: int
    summed: bool
    bytes: int
    merged: int
    cct: float
    cct_min: float
    cct_max: float
    ideal: float | None
    ratio: float | None
    busbw: float | None


@dataclass(frozen=True, slots=True)
class FlowSummary:
    """Flow completion times of one phase, those inside a host left out, all repeats together.

    p99: the smallest time that 99 % of the flows do not exceed. mean_slowdown, p99_slowdown: FCT by what the flow
    would take alone; None where the model has no time for any.
    """

    phase: str
    count: int
    min: float
    median: float
    p99: float
    max: float
    mean_slowdown: float | None
    p99_slowdown: float | None


@dataclass(frozen=True, slots=True)
class FabricSummary:
    """One fabric. end: modelled seconds of the whole workload, median over the repeats; ideal_end: in the model.

    circuits: whether it has any. phases, collectives: in the order in which they began, collectives by phase.
    counterfactuals: modelled, on request.
    """

    name: str
    verdict: Verdict
    repeats: int
    circuits: bool
    end: float | None
    ideal_end: float
    phases: list[PhaseSummary]
    collectives: list[CollectiveSummary]
    flows: list[FlowSummary]
    notes: list[str]
    counterfactuals: list[CounterfactualSummary]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A whole run; see Outcome. engine: `packet`, or `model`, of which nothing was measured."""

    name: str
    directory: str
    verdict: Level
    interrupted: bool
    wall: float
    sigma: float
    beta: float
    tdf: float
    plan: list[str]
    fabrics: list[FabricSummary]
    engine: str = "packet"


def summarise(outcome: Outcome) -> RunSummary:
    """The summary of a run."""
    summed = _layered(outcome.scenario)
    return RunSummary(
        name=outcome.scenario.name,
        directory=str(outcome.directory),
        verdict=outcome.verdict,
        interrupted=outcome.interrupted,
        wall=outcome.wall,
        sigma=outcome.scale.sigma,
        beta=outcome.scale.beta,
        tdf=outcome.scale.tdf,
        plan=outcome.plan,
        engine=outcome.scenario.engine,
        fabrics=[_fabric(fabric, summed) for fabric in outcome.fabrics],
    )


def _layered(scenario: Scenario) -> set[str]:
    """The steps whose collectives are parts of one tensor."""
    workload = scenario.workload
    if isinstance(workload, RlWorkload):
        return {GRADIENTS}
    if isinstance(workload, FlowList | OwnWorkload):
        return set()
    steps = (step for step in workload.steps if isinstance(step, CollectiveStep))
    return {step.name for step in steps if step.size == "layer-gradients"}


def _fabric(outcome: FabricOutcome, summed: set[str]) -> FabricSummary:
    measured, phases = outcome.measurement, list(summarise_phases(outcome))
    ends = [repeat.trace.end for repeat in measured.repeats if repeat.trace.complete]
    return FabricSummary(
        name=outcome.name,
        verdict=outcome.verdict,
        repeats=len(measured.repeats),
        circuits=bool(outcome.built.fabric.ocses),
        end=statistics.median(ends) if ends else None,
        ideal_end=outcome.prediction.trace.end,
        phases=phases,
        collectives=_in_time(_collectives(outcome, summed), phases),
        flows=list(_flows(outcome)),
        notes=list(_notes(outcome)),
        counterfactuals=[summarise_counterfactual(outcome, other) for other in outcome.counterfactuals],
    )


def _in_time(rows: Iterator[CollectiveSummary], phases: list[PhaseSummary]) -> list[CollectiveSummary]:
    """By phase in the order of the phases, then by start."""
    begun = {phase.phase: place for place, phase in enumerate(phases)}
    return sorted(rows, key=lambda row: (begun.get(row.phase, -1), row.start))


def _notes(outcome: FabricOutcome) -> Iterator[str]:
    facts = outcome.measurement.facts
    if facts is not None:
        yield from facts.notes
        if facts.queue_floored:
            yield f"queues were kept at {facts.queue_bytes} bytes, more than the scenario's queue scales to"


# -- collectives -----------------------------------------------------------------------------------------------------


def _collectives(outcome: FabricOutcome, summed: set[str]) -> Iterator[CollectiveSummary]:
    groups: dict[Key, list[list[CollectiveRecord]]] = {}
    for repeat in outcome.measurement.repeats:
        for key, rows in _grouped(repeat.trace.collectives, summed).items():
            groups.setdefault(key, []).append(rows)
    ideals = outcome.prediction.cct
    for key, repeats in groups.items():
        yield _collective(key, repeats, ideals)


def _grouped(rows: list[CollectiveRecord], summed: set[str]) -> dict[Key, list[CollectiveRecord]]:
    groups: dict[Key, list[CollectiveRecord]] = {}
    for row in rows:
        groups.setdefault((row.label, None if row.label in summed else row.bytes), []).append(row)
    return groups


def _collective(key: Key, repeats: list[list[CollectiveRecord]], ideals: dict[str, float]) -> CollectiveSummary:
    rows = max(repeats, key=len)  # an interrupted repeat has fewer
    first, summed = rows[0], key[1] is None
    whole = [repeat for repeat in repeats if len(repeat) == len(rows)]
    times = [sum(row.cct for row in repeat) for repeat in whole] if summed else [r.cct for rs in repeats for r in rs]
    expected = [ideals[row.id] for row in rows if row.id in ideals]
    ideal = (sum(expected) if summed else statistics.median(expected)) if expected else None
    cct, size = statistics.median(times), sum(row.bytes for row in rows) if summed else first.bytes
    return CollectiveSummary(
        label=first.label,
        phase=first.phase,
        start=min(row.start for row in rows),
        kind=first.kind,
        algorithm=first.algorithm,
        ranks=first.ranks,
        count=len(rows),
        summed=summed,
        bytes=size,
        merged=sum(row.merged for row in rows) if summed else first.merged,
        cct=cct,
        cct_min=min(times),
        cct_max=max(times),
        ideal=ideal,
        ratio=ratio(cct, ideal),
        busbw=busbw(first.kind, first.ranks, size, cct),
    )


# -- flows -----------------------------------------------------------------------------------------------------------


def _flows(outcome: FabricOutcome) -> Iterator[FlowSummary]:
    """By phase, the flows that are no part of a collective."""
    phases: dict[str, list[tuple[float, float | None]]] = {}
    for repeat in outcome.measurement.repeats:
        for row in repeat.trace.flows:
            if not row.collective and row.how != "local":
                slowdown = ratio(row.fct, outcome.prediction.fct.get(row.id))
                phases.setdefault(row.phase, []).append((row.fct, slowdown))
    for phase, found in phases.items():
        times = [fct for fct, _ in found]
        slowdowns = [slowdown for _, slowdown in found if slowdown is not None]
        yield FlowSummary(
            phase=phase,
            count=len(times),
            min=min(times),
            median=statistics.median(times),
            p99=_p99(times),
            max=max(times),
            mean_slowdown=statistics.fmean(slowdowns) if slowdowns else None,
            p99_slowdown=_p99(slowdowns) if slowdowns else None,
        )


def _p99(values: list[float]) -> float:
    return float(np.percentile(values, 99, method="inverted_cdf"))
