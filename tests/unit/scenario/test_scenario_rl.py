"""`workload: {kind: rl-iteration}`: defaults, mistakes by line and key, and what is built of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import InputError, dotted
from emu.scenario import Scenario, build_fabrics, build_orchestrator, cluster_of, collectives_of, json_schema, load
from emu.scenario.source import parse
from tests.unit.scenario.test_scenario_fuzz import CALM, MEAN_VALUES, as_yaml, check, places
from workloads.cluster import Cluster, HostSpec
from workloads.protocol import Announce, Start

Write = Callable[[str | bytes], Path]
HOSTS = Cluster(tuple(HostSpec(f"h{i}") for i in range(16)))
SHORT = "fabrics: [{kind: fat-tree}]\nworkload:\n  kind: rl-iteration\n  model: Qwen3-8B\n"
FULL = """\
fabrics: [{kind: fat-tree}]
workload:
  kind: rl-iteration
  model: Qwen3-8B
  dtype: bf16
  iterations: 2
  mode: synchronous
  training: 0-3
  generation: [4, 5, 6, 7, 8, 9, 10, 11]
  forward: 100ms
  backward: 200ms
  optimizer: 50ms
  buckets: 6
  decode: {tp: 2, batch: 32, steps: 10, step: 5ms, rounds: 5}
  tail: {tp: 4, requests: 3, tokens: 1000, steps: 20, step: 1ms, rounds: 2}
  message_overhead: 2us
  afd: {attention: "8,9", ffn: 10-11, batch: 8, steps: 4, step: 2ms, rounds: 1, dispatch: fp8}
  weight_sync: {algorithm: chain, chunks: 8, pod: 2}
"""


def test_a_model_is_enough(write: Write) -> None:
    scenario = load(write(SHORT))
    (built,) = build_fabrics(scenario)
    labels = {one.label for one in collectives_of(scenario, cluster_of(built.fabric), seed=1)}
    assert labels == {
        "gradients",
        "decode-tp2",
        "merge",
        "tail-tp4",
        "split",
        "attention-to-ffn",
        "ffn-to-attention",
        "weights",
    }


def test_everything_is_read(write: Write) -> None:
    shape = load(write(FULL)).workload.shape()  # type: ignore[union-attr]
    assert (shape.mode, shape.iterations, shape.training.ranks) == ("synchronous", 2, (0, 1, 2, 3))
    assert (shape.training.forward, shape.training.backward, shape.training.optimizer) == (0.1, 0.2, 0.05)
    assert (shape.decode.tp, shape.decode.steps, shape.decode.seconds, shape.decode.rounds) == (2, 10, 0.005, 5)
    assert (shape.tail.tp, shape.tail.steps, shape.tail.seconds, shape.tail.rounds) == (4, 20, 0.001, 2)
    assert (shape.batch, shape.live_requests, shape.live_tokens, shape.message_overhead) == (32, 3, 1000, 2e-6)
    assert shape.afd is not None
    assert (shape.afd.attention, shape.afd.ffn, shape.afd.to_ffn) == ((8, 9), (10, 11), "fp8")
    assert (shape.weight_sync.algorithm, shape.weight_sync.chunks, shape.weight_sync.pod) == ("chain", 8, 2)
    assert shape.switching == ((4, 5, 6, 7),)


@pytest.mark.parametrize("text", [SHORT, FULL, FULL.replace("afd: {", "afd: none\n  #")])
def test_json_round_trip_and_schema(write: Write, text: str) -> None:
    scenario = load(write(text))
    assert Scenario.from_json(scenario.to_json()) == scenario
    jsonschema.validate(parse(text, "")[0], json_schema())


def test_the_orchestrator_announces_training_and_generation_at_once(write: Write) -> None:
    actions = build_orchestrator(load(write(SHORT)), HOSTS, seed=1, buckets=2).on(Start(), 0.0)
    announced = {action.phase: action for action in actions if isinstance(action, Announce)}
    assert set(announced) == {"training", "generation"}
    assert announced["training"].slack == pytest.approx(0.3 + 0.6 * 0.504, rel=0.01), "half of the backward pass"
    assert announced["generation"].slack == pytest.approx(0.192), "half of 128 steps of 3 ms"
    assert announced["training"].demand == dict.fromkeys(
        [("h0", "h1"), ("h1", "h2"), ("h2", "h3"), ("h3", "h0")], 16_381_470_720 * 3 // 2
    )


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ("kind: rl-iteration", "kind: rl-iterations", "workload.kind", "did you mean 'rl-iteration'?"),
        ("  model: Qwen3-8B\n", "", "workload.model", "is required"),
        ("model: Qwen3-8B", "model: Qwen3-9B", "workload.model", "did you mean 'Qwen3-8B'?"),
        ("mode: synchronous", "mode: sync", "workload.mode", "not one of one-step-async, synchronous"),
        ("training: 0-3", "training: all", "workload.training", "'all' is not a group of ranks"),
        ("training: 0-3", "training: []", "workload.training", "names no rank"),
        ("training: 0-3", "training: 0-4", "workload.generation", "rank 4 trains already"),
        ("training: 0-3", "training: 0-3,16", "workload.training", "there is no rank 16: the fabric has ranks 0 to 15"),
        ("training: 0-3", "trainings: 0-3", "workload.trainings", "did you mean 'training'?"),
        ("backward: 200ms", "backward: 0s", "workload.backward", "must be greater than 0"),
        ("backward: 200ms", "backward: 200", "workload.backward", "200 needs a unit"),
        ("{tp: 2,", "{tp: 0,", "workload.decode.tp", "must be at least 1"),
        ("steps: 10,", "steps: 0,", "workload.decode.steps", "must be at least 1"),
        ("{tp: 4,", "{tp: 5,", "workload.tail.tp", "5 is no multiple of the 2 of decode"),
        ("ffn: 10-11", "ffn: 12-13", "workload.afd.ffn", "rank 12 is no generation rank"),
        ("ffn: 10-11", "ffn: 9-11", "workload.afd.ffn", "rank 9 has attention already"),
        ("ffn: 10-11", "ffn: 10", "workload.generation", "do not make groups of 4: 1 are left over"),
        ("afd: {", "afd: off\n  #", "workload.afd", "'off' names no ranks; write none or {attention:"),
        ("dispatch: fp8", "dispatch: fp7", "workload.afd.dispatch", "not one of bf16"),
        (
            "algorithm: chain",
            "algorithm: tree",
            "workload.weight_sync.algorithm",
            "not one of two-level, chain, unicast",
        ),
    ],
)
def test_mistakes_are_named(write: Write, old: str, new: str, key: str, says: str) -> None:
    assert FULL.count(old) == 1
    with pytest.raises(InputError) as caught:
        build_fabrics(load(write(FULL.replace(old, new))))
    assert dotted(caught.value.key) == key
    assert says in str(caught.value)
    assert caught.value.line is not None


@CALM
@given(st.data())
def test_spoilt_values_give_a_scenario_or_one_error(tmp_path: Path, data: st.DataObject) -> None:
    spoilt = parse(FULL, "")[0]
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(spoilt["workload"])))
        container[key] = data.draw(MEAN_VALUES)
    check(tmp_path / "scenario.yaml", as_yaml(spoilt))


def test_default_ranks_that_do_not_fit_are_named_without_a_line_of_their_own(write: Write) -> None:
    with pytest.raises(InputError, match=r"workload.*rank 15.*fabric has ranks 0 to 7"):
        build_fabrics(load(write(SHORT.replace("kind: fat-tree", "kind: hybrid, pods: 2, reconfiguration: 1ms"))))
