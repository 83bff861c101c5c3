"""Outcomes of runs that never happened: built from the ideal of a real workload, a little slower, and then spoiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from emu.measurement import (
    CircuitChange,
    CrossCheck,
    Health,
    LabFacts,
    LinkCalibration,
    LinkCounters,
    Measurement,
    Repeat,
)
from emu.model.conditions import Conditions
from emu.model.ideal import Prediction, ideal
from emu.outcome import FabricOutcome, Outcome
from emu.records import Trace
from emu.scale import Scale
from emu.scenario import Scenario, load
from emu.scenario.build import BuiltFabric, build_fabrics, cluster_of
from emu.verdict import judge
from emu.verdict.link_rules import HEADERS
from emu.wire import payload_efficiency, payload_per_frame
from workloads.protocol import Endpoint, Transfer
from workloads.steps import CollectiveStep, Step, StepsOrchestrator, TransferStep

MTU = 9000
SCALE = Scale(sigma=100.0, beta=2000.0)
SLOWER = 1.03
MIB = 1 << 20

SCENARIO = """\
name: example
seed: 7
repeat: 2
emulation: {scale: {sigma: 100, beta: 2000}}
fabrics:
  - {kind: fat-tree, k: 4, rate: 100Gbps}
  - name: optical
    kind: hybrid
    pods: 4
    uplinks: 2
    reconfiguration: 10ms
    circuits: {o0: [t0-t1, t1-t2, t2-t3, t3-t0]}
    schedule: [{at: 1s, circuits: {o0: [t0-t1, t0-t2, t1-t3]}}]
workload:
  kind: collectives
  steps:
    - {name: gradients, collective: all-reduce, size: [512MiB, 512MiB]}
    - {name: sweep, collective: all-gather, sweep: {from: 128MiB, to: 256MiB}}
"""

ALL = tuple(range(16))
COLLECTIVES: tuple[Step, ...] = (
    CollectiveStep(name="gradients", kind="all-reduce", group=ALL, sizes=(512 * MIB, 512 * MIB)),
    CollectiveStep(name="sweep", kind="all-gather", group=ALL, sizes=(128 * MIB, 256 * MIB)),
)
FLOWS: tuple[Step, ...] = (
    TransferStep(
        name="flows",
        transfers=tuple(
            Transfer(f"f{i}", Endpoint(f"h{i}"), Endpoint(f"h{(i + 5) % 16}"), (i + 1) * 16 * MIB) for i in range(16)
        ),
    ),
)


@cache
def scenario(folder: Path) -> Scenario:
    """The scenario above, written to a folder and loaded."""
    path = folder / "example.yaml"
    path.write_text(SCENARIO)
    return load(path)


def predict(built: BuiltFabric, steps: Sequence[Step]) -> Prediction:
    """The ideal of some steps on a fabric."""
    cluster = cluster_of(built.fabric)
    conditions = Conditions(built.epoch, built.schedule, efficiency=payload_efficiency(MTU))
    return ideal(built.fabric, StepsOrchestrator(steps, cluster), cluster, conditions)


def slower(trace: Trace, factor: float) -> Trace:
    """The same rows, all times stretched."""
    return Trace(
        [
            replace(row, start=row.start * factor, first_byte=row.first_byte * factor, end=row.end * factor)
            for row in trace.flows
        ],
        [replace(row, start=row.start * factor, end=row.end * factor) for row in trace.collectives],
        {name: replace(row, start=row.start * factor, end=row.end * factor) for name, row in trace.phases.items()},
        [replace(row, start=row.start * factor, end=row.end * factor) for row in trace.computations],
        end=trace.end * factor,
        complete=True,
    )


def counters(built: BuiltFabric, prediction: Prediction) -> list[LinkCounters]:
    """What links count that carried what was predicted, with the acknowledgements of half as many packets."""
    out = []
    for port, modelled in prediction.link_bytes.items():
        sent = modelled / SCALE.sigma
        data = round(sent / payload_per_frame(MTU))
        packets = data + data // 2
        rate = round(built.fabric.link(port).rate / SCALE.beta)
        out.append(LinkCounters(str(port), rate, round(sent) + HEADERS * packets, packets, sent))
    return out


def healthy() -> Health:
    """A machine with time to spare."""
    return Health(0.45, 0.0003, 0.0012, 0.004, retransmits=3, receive_drops=0, dark_drops=0, smallest_buffer=128 << 20)


def measurement(built: BuiltFabric, prediction: Prediction, repeats: int = 2, factor: float = SLOWER) -> Measurement:
    """A good measurement."""
    rates = {port: round(built.fabric.link(port).rate / SCALE.beta) for port in built.fabric.transmitters()}
    return Measurement(
        fabric=built.fabric.name,
        sigma=SCALE.sigma,
        beta=SCALE.beta,
        facts=LabFacts(
            "host",
            "user",
            "6.1.0",
            {"openvswitch": "3.1.0", "mininet": "2.3.0"},
            MTU,
            180_000,
            False,
            "raised",
            0.9,
            {"build": 1.2, "traffic": 12.5},
        ),
        calibration=[LinkCalibration(str(port), rate, rate, 0.995 * rate) for port, rate in rates.items()],
        cross_check=CrossCheck("h0", "h15", 49.1e6, 49.4e6),
        repeats=[
            Repeat(
                seed=7 + number,
                trace=slower(prediction.trace, factor + 0.01 * number),
                links=counters(built, prediction),
                changes=[
                    CircuitChange(c.epoch.number, c.at, c.reconfiguration, c.at, c.at + 1.02 * c.reconfiguration, 0.001)
                    for c in built.schedule
                ],
                health=healthy(),
                wall=12.5,
            )
            for number in range(repeats)
        ],
    )


@cache
def _parts(folder: Path, steps: tuple[Step, ...]) -> tuple[tuple[BuiltFabric, Prediction], ...]:
    return tuple((built, predict(built, steps)) for built in build_fabrics(scenario(folder)))


def fabric_outcome(folder: Path, steps: tuple[Step, ...] = COLLECTIVES, number: int = 0) -> FabricOutcome:
    """One fabric of a good run; its measurement may be spoiled at will."""
    built, prediction = _parts(folder, steps)[number]
    measured = measurement(built, prediction)
    return FabricOutcome(built, prediction, measured, judge(measured, prediction))


def outcome(folder: Path, directory: Path, steps: tuple[Step, ...] = COLLECTIVES) -> Outcome:
    """A good run on two fabrics."""
    fabrics = [fabric_outcome(folder, steps, number) for number in (0, 1)]
    return Outcome(directory, scenario(folder), SCALE, fabrics, ["scale: sigma 100, beta 2000"], False, 1.7e9, 40.0)
