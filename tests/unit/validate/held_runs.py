"""Run directories of packet runs that never happened: what was measured is the model with a transport that is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from emu.measurement import Health, Measurement, Repeat
from emu.model.ideal import Prediction, ideal
from emu.model.transport import IDEAL, Transport
from emu.outcome import FabricOutcome, Outcome
from emu.queues import decision_leads
from emu.results.directory import write_run
from emu.scale import Scale
from emu.scenario import Scenario, load_text
from emu.scenario.build import BuiltFabric, build_fabrics, cluster_of
from emu.scenario.traffic import build_orchestrator
from emu.verdict.levels import Verdict
from emu.wire import payload_efficiency

SCALE = Scale(1000.0, 20000.0)
TRUTH = Transport(
    efficiency=0.96, message=1.5e-4, round_trip=2e-4, initial_window=10 * 8948 * 1000, retransmission=0.004
)
"""Of the lab below: 3 ms of wall time for a message, 4 ms for a round trip."""
STEPS = """\
    - {name: ring, phase: training, collective: all-reduce, algorithm: ring, size: [512MiB, 4GiB]}
    - {name: all, phase: generation, collective: all-to-all, algorithm: pairwise, size: [1GiB, 8GiB]}
    - {name: chain, phase: weight-sync, collective: broadcast, algorithm: chain, size: 2GiB, chunks: 8}
"""
OTHER_STEPS = """\
    - {name: ring, phase: training, collective: all-reduce, algorithm: ring, ranks: 0-3, size: 3GiB}
    - {name: gather, phase: generation, collective: all-gather, ranks: 0-3, size: 2500MiB}
"""
LEAF_SPINE = "  - {kind: leaf-spine, leaves: 2, hosts_per_leaf: 2, rate: 400Gbps}\n"
FAT_TREE = "  - {kind: fat-tree, k: 4, rate: 400Gbps}\n"


def scenario(name: str, fabrics: str, steps: str, more: str = "") -> Scenario:
    """A scenario of collectives at the scale above."""
    scale = f"emulation: {{scale: {{sigma: {SCALE.sigma}, beta: {SCALE.beta}}}}}\n"
    workload = f"workload:\n  kind: collectives\n  model: Qwen3-8B\n  dtype: bf16\n  steps:\n{steps}"
    return load_text(f"name: {name}\n{scale}{more}fabrics:\n{fabrics}{workload}")


def write_held(
    out: Path, told: Scenario, transport: Transport, *, buckets: int | None = None, engine: str = "packet"
) -> Path:
    """The directory of a run in which that transport was measured."""
    out.mkdir(parents=True)
    fabrics = [_fabric(told, built, transport, buckets) for built in build_fabrics(told)]
    plan = [f"merged: gradients: 38 layer buckets into {buckets}"] if buckets else []
    write_run(Outcome(out, told.model_copy(update={"engine": engine}), SCALE, fabrics, plan))
    return out


def _fabric(told: Scenario, built: BuiltFabric, transport: Transport, buckets: int | None) -> FabricOutcome:
    measured = _predicted(told, built, transport, buckets)
    measurement = Measurement(built.fabric.name, SCALE.sigma, SCALE.beta)
    health = Health(1.0, 0.0, 0.0, 0.0, 0, 0, 0, 0)
    measurement.repeats = [Repeat(seed=1, trace=measured.trace, links=[], changes=[], health=health, wall=1.0)]
    return FabricOutcome(built, _predicted(told, built, IDEAL, buckets), measurement, Verdict("VALID"))


def _predicted(told: Scenario, built: BuiltFabric, transport: Transport, buckets: int | None) -> Prediction:
    leads = decision_leads(built.fabric, built.dark, told.emulation, SCALE)
    conditions = built.conditions(told.seed, payload_efficiency(told.emulation.mtu), *leads)
    cluster = cluster_of(built.fabric)
    orchestrator = build_orchestrator(told, cluster, seed=told.seed, buckets=buckets)
    return ideal(built.fabric, orchestrator, cluster, replace(conditions, transport=transport))
