"""An iteration in the model: what overlaps is hidden, what does not is exposed, and circuits come in time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emu.model.conditions import Conditions
from emu.model.engine import Outcome, simulate
from emu.overlap import communication
from emu.scenario import build_fabrics, cluster_of, load
from emu.scenario.build import BuiltFabric
from emu.scenario.rl_spec import RlWorkload
from topologies.fat_tree import fat_tree
from workloads.rl_iteration import RlIteration, iteration_steps
from workloads.steps import StepsOrchestrator

SHIPPED = Path(__file__).resolve().parents[3] / "scenarios" / "quickstart.yaml"
WEIGHTS = 16_381_470_720
RATE = 50e9
"""Bytes a second of a NIC at 400 Gb/s."""
DEFAULT = RlWorkload(kind="rl-iteration", model="Qwen3-8B").shape()


def run(shape: RlIteration, buckets: int | None = None, built: BuiltFabric | None = None) -> Outcome:
    fabric = built.fabric if built else fat_tree(k=4, rate=400_000_000_000)
    conditions = built.conditions(seed=1, efficiency=1.0) if built else Conditions()
    cluster = cluster_of(fabric)
    return simulate(
        fabric, StepsOrchestrator(iteration_steps(shape, cluster, buckets=buckets), cluster), cluster, conditions
    )


def training_end(backward: float, buckets: int) -> float:
    shape = replace(DEFAULT, training=replace(DEFAULT.training, backward=backward, buckets=buckets))
    return run(shape).trace.phases["training"].end


def bucket_sizes(buckets: int) -> list[int]:
    steps = iteration_steps(DEFAULT, cluster_of(fat_tree(k=4)), buckets=buckets)
    return [step.sizes[0] for step in steps if step.name.startswith("gradients")]  # type: ignore[attr-defined]


def test_a_long_backward_pass_hides_all_gradients_but_the_last_bucket() -> None:
    exposed = bucket_sizes(8)[-1] * 1.5 / RATE  # around a ring of four every rank sends 2 * 3/4 of the bucket
    assert training_end(backward=2.0, buckets=8) == pytest.approx(0.3 + 2.0 + exposed + 0.2)


def test_a_short_backward_pass_hides_itself_but_for_its_first_bucket() -> None:
    sizes = bucket_sizes(8)
    first = 0.01 * sizes[0] / WEIGHTS
    assert training_end(backward=0.01, buckets=8) == pytest.approx(0.3 + first + WEIGHTS * 1.5 / RATE + 0.2)


def test_one_bucket_hides_nothing() -> None:
    assert training_end(backward=0.3, buckets=1) == pytest.approx(0.3 + 0.3 + WEIGHTS * 1.5 / RATE + 0.2)


def test_named_collectives_take_what_their_bytes_take() -> None:
    cct = {row.label: row.cct for row in run(DEFAULT, buckets=4).trace.collectives}
    assert cct["merge"] == pytest.approx(9_663_676_416 / 4 / RATE)  # every host sends and receives a quarter
    assert cct["split"] == pytest.approx(16_380_854_272 / 4 / RATE)
    assert cct["tail-tp4"] == pytest.approx(96 * 72 * 64 * 8192 * 1.5 / RATE)
    assert cct["decode-tp2"] == pytest.approx(32 * 72 * 128 * 8192 / RATE)  # one of two rounds; a pair sends S each way
    assert cct["attention-to-ffn"] == pytest.approx(9_663_676_416 / 4 / RATE)
    assert cct["weights"] == pytest.approx(WEIGHTS * (8 - 1 + 16) / 16 / RATE)  # eight hops, 16 chunks


@pytest.mark.parametrize(("algorithm", "times"), [("chain", (12 - 1 + 16) / 16), ("unicast", 12)])
def test_other_weight_syncs(algorithm: Any, times: float) -> None:  # noqa: ANN401 - a SyncAlgorithm
    shape = replace(DEFAULT, weight_sync=replace(DEFAULT.weight_sync, algorithm=algorithm))
    (weights,) = [row for row in run(shape, buckets=2).trace.collectives if row.label == "weights"]
    assert weights.cct == pytest.approx(WEIGHTS * times / RATE)


def test_the_mode_decides_whether_training_and_generation_overlap() -> None:
    side_by_side = run(DEFAULT, buckets=2).trace
    in_turn = run(replace(DEFAULT, mode="synchronous"), buckets=2).trace
    alone = {name: side_by_side.phases[name].end for name in ("training", "generation")}
    assert side_by_side.phases["weight-sync"].start == pytest.approx(max(alone.values()))
    assert in_turn.phases["weight-sync"].start == pytest.approx(sum(alone.values()))


# -- on circuits ------------------------------------------------------------------------------------------------------


def shipped() -> tuple[BuiltFabric, BuiltFabric]:
    fat, hybrid = build_fabrics(load(SHIPPED))
    return fat, hybrid


def between_pods(outcome: Outcome, built: BuiltFabric) -> tuple[int, int]:
    """Payload that left ToRs for the OCS, and for the electrical core."""
    carried = outcome.carried
    optical = sum(carried[built.fabric.peer(port)] for port in built.fabric.ports("o0"))
    electrical = sum(carried[built.fabric.peer(port)] for port in built.fabric.ports("c0"))
    return optical, electrical


def test_the_shipped_change_of_circuits_comes_in_time_and_carries_all_weights() -> None:
    fat, hybrid = shipped()
    on_tree, on_circuits = (run(DEFAULT, 8, built) for built in (fat, hybrid))
    (change,) = on_circuits.changes
    phases = on_circuits.trace.phases
    assert phases["generation"].end <= change.at, "nobody needs the old circuits any more"
    assert change.at + change.reconfiguration + 0.1 < phases["weight-sync"].start
    assert on_circuits.trace.end == pytest.approx(on_tree.trace.end), "and nobody waits for the change"
    assert between_pods(on_circuits, hybrid) == (3 * WEIGHTS + 2 * 9_663_676_416, 0)


def test_without_the_change_the_thin_core_is_in_the_way() -> None:
    _, hybrid = shipped()
    kept = BuiltFabric(hybrid.fabric, hybrid.epoch, (), hybrid.reconfiguration)  # static by default
    outcome = run(DEFAULT, 8, kept)
    assert outcome.trace.end > 1.5 * run(DEFAULT, 8, hybrid).trace.end
    optical, electrical = between_pods(outcome, hybrid)
    assert electrical > WEIGHTS
    assert optical + electrical >= 3 * WEIGHTS + 2 * 9_663_676_416


def test_what_an_iteration_exposes_is_what_no_computation_hides() -> None:
    """Training: its last bucket. Weight sync: all of it, for all its hosts wait."""
    shape = replace(DEFAULT, training=replace(DEFAULT.training, backward=2.0, buckets=8))
    found = communication(run(shape).trace)
    exposed = bucket_sizes(8)[-1] * 1.5 / RATE
    assert found["training"].exposed == pytest.approx(exposed)
    assert found["training"].total == pytest.approx(WEIGHTS * 1.5 / RATE)
    assert found["weight-sync"].hidden == pytest.approx(0, abs=1e-9)
    assert found["weight-sync"].total == pytest.approx(WEIGHTS * (8 - 1 + 16) / 16 / RATE)


def test_weights_cross_by_circuits_and_on_the_tree_by_its_core() -> None:
    fat, hybrid = shipped()
    on_tree, on_circuits = (run(DEFAULT, 8, built).trace.phases["weight-sync"] for built in (fat, hybrid))
    assert (on_circuits.circuit_bytes, on_circuits.core_bytes) == (3 * WEIGHTS, 0)
    assert (on_tree.circuit_bytes, on_tree.core_bytes) == (0, 3 * WEIGHTS)
