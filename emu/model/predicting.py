"""A scenario run by the model alone: its outcome has the shape of a measured one, in the units of the real system."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from controllers.epochs import CircuitError, EpochChange
from emu.counterfactual import counterfactuals
from emu.measurement import CircuitChange, Health, LinkCounters, Measurement, Repeat
from emu.model.ideal import Prediction, ideal
from emu.model.transport import IDEAL, Transport
from emu.outcome import FabricOutcome, Outcome
from emu.progress import Listener, Progress, silent
from emu.results.directory import create_directory, write_run
from emu.scale import Scale
from emu.scenario.build import BuiltFabric, build_fabrics, cluster_of
from emu.scenario.schema import Scenario
from emu.scenario.sweep_spec import check_single
from emu.scenario.traffic import build_orchestrator
from emu.verdict.levels import Verdict
from emu.verdict.link_rules import HEADERS
from emu.wire import payload_efficiency, payload_per_frame

_UNMEASURED = Health(1.0, 0.0, 0.0, 0.0, 0, 0, 0, 0)
"""Of a run in which no machine and no packet took part."""


def predict_scenario(
    scenario: Scenario,
    *,
    out: Path | None = None,
    write: bool = True,
    transport: Transport = IDEAL,
    counterfactual: bool = False,
    listener: Listener = silent,
) -> Outcome:
    """Run a scenario's workload on each of its fabrics in the model. Needs no root and builds nothing.

    out: the run directory (default: a new one under `runs/`). write: whether there is one.
    transport: what connections do beside sharing links fairly.
    counterfactual: also say what fabrics with circuits would do if those changed in no time, or never.

    The outcome has what the model predicts in the place of what a lab measures, at a scale of 1: every row of a run
    directory is in modelled units. Scales, budgets and repeats do not count: there is no lab, and one run is like any
    other. Links have the delays that the scenario gives them.
    Raises InputError for a scenario that cannot be run, and a directory that cannot be written.
    """
    began, started = time.time(), time.monotonic()
    check_single(scenario.sweep, scenario.error)
    scenario = scenario.model_copy(update={"engine": "model", "repeat": 1})
    built = build_fabrics(scenario)
    directory = create_directory(scenario, out) if write else Path()
    fabrics = []
    for place, one in enumerate(built):
        listener(Progress("traffic", "in the model", one.fabric.name))
        fabrics.append(_fabric(scenario, place, one, transport, counterfactual))
    wall = time.monotonic() - started
    outcome = Outcome(directory, scenario, Scale(1, 1), fabrics, _plan(transport), began=began, wall=wall)
    if write:
        listener(Progress("write", f"{directory}"))
        write_run(outcome)
    return outcome


def predict_fabric(scenario: Scenario, built: BuiltFabric, transport: Transport = IDEAL) -> Prediction:
    """The workload of a scenario on one of its fabrics, with its collectives carried out whole."""
    cluster = cluster_of(built.fabric)
    conditions = replace(
        built.conditions(scenario.seed, payload_efficiency(scenario.emulation.mtu)),
        delays=any(link.delay > 0 for link in built.fabric.links),
        transport=transport,
    )
    orchestrator = build_orchestrator(scenario, cluster, seed=scenario.seed)
    return ideal(built.fabric, orchestrator, cluster, conditions, whole=True)


def _fabric(
    scenario: Scenario, place: int, built: BuiltFabric, transport: Transport, counterfactual: bool
) -> FabricOutcome:
    predicting = partial(_predicted, scenario, place, transport)
    began = time.monotonic()
    prediction = predicting(built)
    for failure in prediction.trace.failures:
        raise scenario.error(
            ("fabrics", place),
            f"{failure.task} can never end: {failure.reason}",
            hint="lay circuits for it, or let it wait for a change that does",
        )
    measurement = Measurement(built.fabric.name, 1.0, 1.0)
    measurement.repeats = [_repeat(scenario, built, prediction, time.monotonic() - began)]
    others = counterfactuals(built, predicting) if counterfactual else ()
    return FabricOutcome(built, prediction, measurement, Verdict("VALID"), others)


def _predicted(scenario: Scenario, place: int, transport: Transport, built: BuiltFabric) -> Prediction:
    try:
        return predict_fabric(scenario, built, transport)
    except CircuitError as error:
        raise scenario.error(("fabrics", place), str(error)) from error


def _repeat(scenario: Scenario, built: BuiltFabric, prediction: Prediction, wall: float) -> Repeat:
    return Repeat(
        seed=scenario.seed,
        trace=prediction.trace,
        links=list(_links(built, prediction, payload_per_frame(scenario.emulation.mtu))),
        changes=[_change(change, built.dark.mode) for change in prediction.changes],
        health=_UNMEASURED,
        wall=wall,
        decisions=list(prediction.decisions),
    )


def _links(built: BuiltFabric, prediction: Prediction, frame: int) -> Iterator[LinkCounters]:
    """What each direction of a link carries, in full frames."""
    for port, size in prediction.link_bytes.items():
        packets = -(-size // frame)
        rate = built.fabric.link(port).rate
        yield LinkCounters(str(port), rate, size + HEADERS * packets, packets, size)


def _change(change: EpochChange, mode: str) -> CircuitChange:
    dark = change.reconfiguration
    return CircuitChange(change.epoch.number, change.at, dark, change.at, change.at + dark, 0.0, mode=mode)


def _plan(transport: Transport) -> list[str]:
    if transport.ideal:
        return ["transport: ideal, sharing links max-min fairly"]
    return [f"transport: fitted on {transport.date} ({transport.machine})"]
