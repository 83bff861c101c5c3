"""Run directories to report on that no lab has made: small ones with everything in them, broken ones, and huge ones."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from controllers.decisions import Decision
from emu.measurement import CircuitUse, DataPlane, Measurement, Repeat, Service
from emu.model.predicting import predict_scenario
from emu.outcome import FabricOutcome, Outcome
from emu.records import FlowRecord, PhaseRecord, Trace
from emu.results import write_run
from emu.scenario import build_fabrics, load
from emu.scenario.build import BuiltFabric
from emu.verdict import Reason, Verdict
from tests.unit.results import synthetic
from workloads.steps import CollectiveStep, Step

LARGE = """\
name: large
emulation: {scale: {sigma: 100, beta: 2000}}
fabrics: [{kind: fat-tree, k: 8, rate: 100Gbps}]
workload: {kind: flow-list, flows: "Nodes 2\\nConnections 1\\n0->1 start 0 size 2000000\\n"}
"""


EVEN = tuple(range(0, 16, 2))
GIB = 1 << 30
STEPS: tuple[Step, ...] = (
    CollectiveStep(name="gradients", phase="training", kind="all-reduce", group=EVEN, sizes=(20 * GIB, 20 * GIB)),
    CollectiveStep(name="sweep", phase="sync", kind="all-gather", group=EVEN, sizes=(GIB, 2 * GIB, 4 * GIB, 8 * GIB)),
)
"""More than a second of two phases on 100 Gb/s, so that circuits change amid the first."""


def written(run: Outcome) -> Path:
    """Write a run; its directory."""
    run.directory.mkdir(parents=True)
    write_run(run)
    return run.directory


def optical(folder: Path, name: str = "optical") -> Path:
    """Two repeats on a fat-tree and on a hybrid whose circuits change at 1 s, all four dark times measured."""
    run = synthetic.outcome(folder, folder / name, STEPS)
    fabric = run.fabrics[1]
    for repeat in fabric.measurement.repeats:
        repeat.circuits = used(fabric.built, repeat)
        for change in repeat.changes:
            change.data_plane = [DataPlane("o0", 0.0101, 0.002, 0.0001, 0.001)]
            change.service = [Service("a", 0.014), Service("b", 0.018), Service("c", 0.030)]
    return written(run)


def used(built: BuiltFabric, repeat: Repeat) -> list[CircuitUse]:
    """Every circuit of every epoch, with some bytes."""
    end, changes = repeat.trace.end, repeat.changes
    starts, ends = [0.0, *(c.lit_at for c in changes)], [*(c.dark_at for c in changes), end]
    epochs = [built.epoch, *(change.epoch for change in built.schedule)]
    return [
        CircuitUse(epoch.number, ocs, entry, leaving, stop - start, (stop - start) / end, 10_000_000, 1200, 2)
        for epoch, start, stop in zip(epochs, starts, ends, strict=True)
        for ocs, (entry, leaving) in sorted(epoch.lit)
    ]


def flows_only(folder: Path) -> Path:
    """A flow list on both fabrics: no collective, and nothing is known of circuits but their changes."""
    return written(synthetic.outcome(folder, folder / "flows", synthetic.FLOWS))


def electrical(folder: Path) -> Path:
    """One fabric without an OCS."""
    run = synthetic.outcome(folder, folder / "electrical", STEPS)
    return written(replace(run, fabrics=run.fabrics[:1]))


def predicted(folder: Path, name: str = "predicted") -> Path:
    """What the model says of both fabrics, with counterfactuals; circuits change amid the first step."""
    (folder / "example.yaml").write_text(synthetic.SCENARIO.replace("at: 1s", "at: 10ms"))
    return predict_scenario(load(folder / "example.yaml"), out=folder / name, counterfactual=True).directory


def decided(folder: Path, count: int, name: str = "decided") -> Path:
    """One decision a millisecond on both fabrics and in both repeats, to keep the circuits."""
    run = synthetic.outcome(folder, folder / name, STEPS)
    for fabric in run.fabrics:
        for repeat in fabric.measurement.repeats:
            repeat.decisions = [
                Decision(number / 1000, "phase training", 0.2, "keep", 0, f"<{number}> is cheaper")
                for number in range(count)
            ]
    return written(run)


def nothing(folder: Path) -> Path:
    """Labs that could not be opened."""
    run = synthetic.outcome(folder, folder / "nothing", STEPS)
    for place, fabric in enumerate(run.fabrics):
        run.fabrics[place] = replace(fabric, measurement=_never(fabric), verdict=_invalid(1, "no namespaces here"))
    return written(run)


def doubtful(folder: Path, name: str = "doubtful") -> Path:
    """A run with many reasons, and text in them that a page must not take for its own."""
    run = synthetic.outcome(folder, folder / name, STEPS)
    run.fabrics[0] = replace(run.fabrics[0], verdict=_invalid(9, "is <b>slow</b> & </script> late"))
    return written(run)


def _never(fabric: FabricOutcome) -> Measurement:
    return Measurement(fabric.name, 100.0, 2000.0, partial=True, error="no namespaces here")


def _invalid(count: int, text: str) -> Verdict:
    return Verdict.of(Reason("INVALID", f"t{place}:1", text, "rate_ratio") for place in range(count))


def many(folder: Path, flows: int = 100_000) -> Path:
    """So many flows among the 128 hosts of a fat-tree, in two phases."""
    (folder / "large.yaml").write_text(LARGE)
    scenario = load(folder / "large.yaml")
    (built,) = build_fabrics(scenario)
    prediction = synthetic.predict(built, synthetic.FLOWS)
    trace = _traffic([host.name for host in built.fabric.hosts], flows)
    measured = synthetic.measurement(built, prediction, repeats=1)
    measured.repeats[0].trace = trace
    prediction.fct.update({row.id: row.bytes * 8 / 100e9 for row in trace.flows})
    fabric = FabricOutcome(built, prediction, measured, Verdict("VALID"))
    return written(Outcome(folder / "many", scenario, synthetic.SCALE, [fabric], [], False, 1.7e9, 40.0))


def _traffic(hosts: list[str], count: int) -> Trace:
    draw = random.Random(1)
    rows = []
    for number in range(count):
        src, dst = draw.sample(hosts, 2)
        size = round(2 ** draw.uniform(14, 26))
        start = draw.uniform(0, 2)
        end = start + size * 8 / 100e9 * draw.lognormvariate(0.5, 0.8)
        phase = "generation" if start < 1 else "weight-sync"
        rows.append(FlowRecord(f"f{number}", "", phase, f"{src}.0", f"{dst}.0", size, start, start + 1e-6, end))
    phases = {name: _phase(name, [row for row in rows if row.phase == name]) for name in ("generation", "weight-sync")}
    return Trace(rows, [], phases, [], end=max(row.end for row in rows), complete=True)


def _phase(name: str, rows: list[FlowRecord]) -> PhaseRecord:
    start, end = min(row.start for row in rows), max(row.end for row in rows)
    return PhaseRecord(name, start, end, sum(row.bytes for row in rows))
