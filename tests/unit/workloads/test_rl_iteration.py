"""An iteration's phases: every named collective's bytes against a hand calculation, and what waits for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.cluster import Cluster, HostSpec
from workloads.models import find
from workloads.rl_iteration import (
    Afd,
    Decoding,
    IterationError,
    RlIteration,
    Training,
    WeightSync,
    iteration_steps,
)
from workloads.steps import CollectiveStep, ComputationStep, Step, StepsOrchestrator

CLUSTER = Cluster(tuple(HostSpec(f"h{i}") for i in range(16)))
WEIGHTS = 16_381_470_720
"""8 190 735 360 parameters of Qwen3-8B, 2 bytes each."""
ROLLOUT = 64 * 72 * 64 * 4096 * 2
"""64 decode steps, two all-reduces in each of 36 layers, 64 sequences of 4096 values of 2 bytes."""
TAIL = 128 * 72 * 32 * 4096 * 2
"""128 steps of the 32 sequences that are live in two instances."""
CACHE = 2 * 16 * 4096 * 147_456
"""Two instances with 16 live requests each of 4096 tokens, whose keys and values are 147 456 bytes a token."""
CUT = 16_380_854_272
"""The weights without the norms, which every rank holds: 36 (2 * 4096 + 2 * 128) + 4096 values of 2 bytes less."""
ACTIVATIONS = 4 * 64 * 4096 * 2 * 36 * 128
"""Four attention ranks, 64 sequences each, 4096 values of 2 bytes, 36 layers, 128 steps."""

AFD = Afd(attention=(8, 9, 10, 11), ffn=(12, 13, 14, 15), batch=64, steps=128, seconds=0.003, to_ffn="bf16")
SHAPE = RlIteration(
    model=find("Qwen3-8B"),
    dtype="bf16",
    iterations=1,
    mode="one-step-async",
    training=Training(ranks=(0, 1, 2, 3), forward=0.15, backward=0.3, optimizer=0.2),
    generation=tuple(range(4, 16)),
    decode=Decoding(tp=2, steps=64, seconds=0.006, rounds=2),
    tail=Decoding(tp=4, steps=128, seconds=0.0005),
    batch=64,
    live_requests=16,
    live_tokens=4096,
    message_overhead=3e-6,
    afd=AFD,
    weight_sync=WeightSync(algorithm="two-level", chunks=16, pod=4),
)


def steps(shape: RlIteration = SHAPE, **rest: Any) -> dict[str, Step]:  # noqa: ANN401 - parts of a shape
    """By name."""
    return {step.name: step for step in iteration_steps(replace(shape, **rest), CLUSTER)}


def labelled(found: Mapping[str, Step], label: str) -> list[CollectiveStep]:
    return [step for step in found.values() if isinstance(step, CollectiveStep) and step.label == label]


def total(found: Mapping[str, Step], label: str) -> int:
    """The S of all collectives of a label."""
    return sum(sum(step.sizes) for step in labelled(found, label))


def wire(found: Mapping[str, Step], label: str) -> Counter[tuple[int, int]]:
    """Bytes on the fabric by (sending host, receiving host)."""
    pairs: Counter[tuple[int, int]] = Counter()
    for step in labelled(found, label):
        for (src, dst), size in step.demand(CLUSTER).items():
            pairs[int(src[1:]), int(dst[1:])] += size
    return pairs


# -- bytes ------------------------------------------------------------------------------------------------------------


def test_gradients_are_all_reduced_layer_by_layer_among_the_training_hosts() -> None:
    found = steps()
    assert len(labelled(found, "gradients")) == 38
    assert total(found, "gradients") == WEIGHTS
    assert wire(found, "gradients") == dict.fromkeys([(0, 1), (1, 2), (2, 3), (3, 0)], WEIGHTS * 2 * 3 // 4)


def test_each_instance_all_reduces_its_rollout_under_tp_2() -> None:
    found = steps()
    assert ROLLOUT == 2_415_919_104
    assert total(found, "decode-tp2") == 2 * ROLLOUT
    assert sum(sum(step.merged) for step in labelled(found, "decode-tp2")) == 2 * 64 * 72
    assert wire(found, "decode-tp2") == dict.fromkeys([(4, 5), (5, 4), (6, 7), (7, 6)], ROLLOUT)


def test_merging_moves_half_of_the_live_requests_cache_and_no_weights() -> None:
    found = steps()
    assert CACHE == 19_327_352_832
    assert total(found, "merge") == CACHE // 2 == 9_663_676_416
    # each instance's cache is in halves on two hosts, and a host keeps one of its two quarters
    assert wire(found, "merge") == dict.fromkeys([(4, 6), (6, 4), (5, 7), (7, 5)], CACHE // 8)


def test_the_tail_all_reduces_under_tp_4_in_the_order_of_the_new_ranks() -> None:
    found = steps()
    assert TAIL == 2_415_919_104
    assert total(found, "tail-tp4") == TAIL
    assert [step.merged for step in labelled(found, "tail-tp4")] == [(128 * 72,)]
    assert wire(found, "tail-tp4") == dict.fromkeys([(4, 6), (6, 5), (5, 7), (7, 4)], TAIL * 2 * 3 // 4)


def test_splitting_moves_a_quarter_of_the_cut_weights_to_each_host() -> None:
    found = steps()
    assert total(found, "split") == CUT == WEIGHTS - 2 * (36 * (2 * 4096 + 2 * 128) + 4096)
    assert wire(found, "split") == dict.fromkeys([(4, 6), (6, 4), (5, 7), (7, 5)], CUT // 4)


def test_attention_and_feed_forward_ranks_exchange_activations_both_ways() -> None:
    found = steps()
    pairs = [(attention, ffn) for attention in range(8, 12) for ffn in range(12, 16)]
    assert ACTIVATIONS == 9_663_676_416
    assert total(found, "attention-to-ffn") == total(found, "ffn-to-attention") == ACTIVATIONS
    assert wire(found, "attention-to-ffn") == dict.fromkeys(pairs, ACTIVATIONS // 16)
    assert wire(found, "ffn-to-attention") == {(ffn, attention): ACTIVATIONS // 16 for attention, ffn in pairs}


def test_activations_may_go_out_in_a_smaller_type_and_skip_dense_layers() -> None:
    afd = replace(AFD, to_ffn="fp8", attention=(8, 9, 10), batch=5, steps=7, rounds=3)
    found = steps(afd=afd, model=find("DeepSeek-V3"), generation=(*range(8, 16), 4, 5, 6))
    out = 3 * 5 * 7168 * 58 * 7  # three ranks, five sequences, 7168 bytes, 61 - 3 layers, seven steps
    assert total(found, "attention-to-ffn") == out
    assert total(found, "ffn-to-attention") == 2 * out
    assert [sum(step.merged) for step in labelled(found, "attention-to-ffn")] == [2 * 58, 2 * 58, 3 * 58]


@pytest.mark.parametrize(
    ("algorithm", "from_training", "between_pods"),
    [
        ("two-level", {(0, 4): WEIGHTS, (2, 9): WEIGHTS}, 3 * WEIGHTS),
        ("chain", {(0, 4): WEIGHTS}, 3 * WEIGHTS),
        ("unicast", {(0, rank): WEIGHTS for rank in range(4, 16)}, 12 * WEIGHTS),
    ],
)
def test_weights_reach_every_generation_host_once(
    algorithm: Any,  # noqa: ANN401 - a SyncAlgorithm
    from_training: Mapping[tuple[int, int], int],
    between_pods: int,
) -> None:
    pairs = wire(steps(weight_sync=WeightSync(algorithm=algorithm, chunks=16)), "weights")
    received: Counter[int] = Counter()
    for (_, dst), size in pairs.items():
        received[dst] += size
    assert received == dict.fromkeys(range(4, 16), WEIGHTS)
    assert {pair: size for pair, size in pairs.items() if pair[0] < 4} == from_training
    assert sum(size for (src, dst), size in pairs.items() if src // 4 != dst // 4) == between_pods


# -- order and times --------------------------------------------------------------------------------------------------


def test_a_bucket_waits_for_its_part_of_the_backward_pass_and_for_the_bucket_before() -> None:
    found = steps(training=replace(SHAPE.training, buckets=4))
    assert [found[f"gradients.{i}"].after for i in range(3)] == [
        ("backward.0",),
        ("backward.1", "gradients.0"),
        ("backward.2", "gradients.1"),
    ]
    assert found["backward.0"].after == ("forward",)
    assert found["backward.3"].after == ("backward.2",)
    assert found["optimizer"].after == ("gradients.3",)
    backward = [step.duration for name, step in found.items() if name.startswith("backward")]
    shares = [sum(step.sizes) / WEIGHTS for step in labelled(found, "gradients")]
    assert backward == pytest.approx([0.3 * share for share in shares])
    assert sum(backward) == pytest.approx(0.3)


def test_buckets_are_merged_as_far_as_asked_for() -> None:
    assert len([s for s in iteration_steps(SHAPE, CLUSTER, buckets=3) if s.name.startswith("gradients")]) == 3
    few = replace(SHAPE, training=replace(SHAPE.training, buckets=2))
    assert len([s for s in iteration_steps(few, CLUSTER, buckets=3) if s.name.startswith("gradients")]) == 2


def test_decoding_computes_its_steps_and_pays_for_every_message() -> None:
    found = steps()
    assert found["compute-decode-tp2.1.0"].duration == pytest.approx(32 * (0.006 + 72 * 3e-6))
    assert found["compute-tail-tp4.0.0"].duration == pytest.approx(128 * (0.0005 + 72 * 3e-6))
    assert isinstance(found["compute-decode-tp2.1.0"], ComputationStep)
    assert found["compute-decode-tp2.1.0"].hosts == ("h6", "h7")
    assert found["attention.0"].duration == found["ffn.0"].duration == pytest.approx(128 * 0.003 / 2)


def test_instances_run_side_by_side_merge_and_split() -> None:
    found = steps()
    assert (
        found["compute-decode-tp2.0.0"].after
        == found["compute-decode-tp2.1.0"].after
        == found["attention.0"].after
        == ()
    )
    assert found["decode-tp2.0.1"].after == ("compute-decode-tp2.0.1",)
    assert found["merge.0"].after == ("decode-tp2.0.1", "decode-tp2.1.1")
    assert found["compute-tail-tp4.0.0"].after == ("merge.0",)
    assert found["split.0"].after == ("tail-tp4.0.0",)


def test_asynchronous_training_runs_beside_generation_and_weight_sync_waits_for_both() -> None:
    found = steps()
    assert found["forward"].after == ()
    assert found["weights"].after == ("optimizer", "split.0", "ffn-to-attention.0")
    assert [step.phase for step in found.values()] == (
        ["training"] * 78 + ["generation"] * (8 + 4 + 4) + ["weight-sync"]
    )


def test_synchronous_training_waits_for_generation() -> None:
    found = steps(mode="synchronous")
    assert found["forward"].after == ("split.0", "ffn-to-attention.0")
    assert found["weights"].after == ("optimizer",)
    assert next(iter(found)) == "compute-decode-tp2.0.0"


def test_iterations_follow_each_other_with_names_and_phases_of_their_own() -> None:
    found = steps(iterations=2)
    assert (
        found["2.forward"].after
        == found["2.compute-decode-tp2.0.0"].after
        == found["2.attention.0"].after
        == ("1.weights",)
    )
    assert {step.phase for step in found.values()} == {
        f"{phase}.{number}" for phase in ("training", "generation", "weight-sync") for number in (1, 2)
    }
    assert total(found, "split") == 2 * CUT
    assert total(found, "merge") == CACHE, "after the split, too, instances are where merging lacks no weights"
    StepsOrchestrator(tuple(found.values()), CLUSTER)


def test_without_disaggregated_layers_all_generation_ranks_switch() -> None:
    found = steps(afd=None)
    assert {step.name for step in found.values() if step.name.startswith(("merge", "split"))} == {
        f"{name}.{group}" for name in ("merge", "split") for group in range(3)
    }
    assert total(found, "decode-tp2") == 6 * ROLLOUT
    assert total(found, "split") == 3 * CUT


def test_a_group_that_is_one_instance_anyway_never_switches() -> None:
    found = steps(decode=replace(SHAPE.decode, tp=4))
    assert not labelled(found, "merge")
    assert found["compute-decode-tp4.0.0"].after == ()
    assert found["compute-tail-tp4.0.0"].after == ("decode-tp4.0.1",)
    assert found["weights"].after == ("optimizer", "tail-tp4.0.0", "ffn-to-attention.0")


def test_four_instances_of_one_rank_merge_too() -> None:
    found = steps(decode=replace(SHAPE.decode, tp=1))
    assert not labelled(found, "decode-tp1"), "one rank has nobody to reduce with"
    # each of four instances keeps a quarter of its requests' cache and sends three
    assert total(found, "merge") == 4 * 16 * 4096 * 147_456 * 3 // 4
    assert total(found, "split") == 3 * CUT, "every rank lacks three quarters of the cut weights"


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 300), st.integers(1, 20), st.integers(1, 300), st.integers(1, 20), st.integers(1, 20))
def test_coalescing_changes_neither_bytes_nor_computation(
    steps_apart: int, rounds_apart: int, steps_together: int, rounds_together: int, batch: int
) -> None:
    decode = Decoding(tp=2, steps=steps_apart, seconds=0.01, rounds=rounds_apart)
    tail = Decoding(tp=4, steps=steps_together, seconds=0.02, rounds=rounds_together)
    afd = replace(AFD, steps=steps_apart, rounds=rounds_together, batch=batch)
    found = steps(decode=decode, tail=tail, batch=batch, live_requests=batch, message_overhead=0.0, afd=afd)
    for label, count, size in (
        ("decode-tp2", 2 * 72 * steps_apart, batch * 8192),
        ("tail-tp4", 72 * steps_together, 2 * batch * 8192),
        ("attention-to-ffn", 36 * steps_apart, 4 * batch * 8192),
        ("ffn-to-attention", 36 * steps_apart, 4 * batch * 8192),
    ):
        assert total(found, label) == count * size
        assert sum(sum(step.merged) for step in labelled(found, label)) == count
    computed = {"decode": 2 * 0.01 * steps_apart, "tail": 0.02 * steps_together}
    for stage, seconds in computed.items():
        parts = [step.duration for name, step in found.items() if name.startswith(f"compute-{stage}")]
        assert sum(parts) == pytest.approx(seconds)
    assert len(found) == replace(SHAPE, decode=decode, tail=tail, afd=afd).steps


def test_tensor_parallel_ranks_of_one_host_send_nothing_over_the_fabric() -> None:
    four = Cluster(tuple(HostSpec(f"h{i}", nics=4, gpus=4) for i in range(4)))
    found = {step.name: step for step in iteration_steps(SHAPE, four)}
    demands = {
        label: [step.demand(four) for step in labelled(found, label)] for label in ("decode-tp2", "merge", "split")
    }
    assert all(demand == {} for of_label in demands.values() for demand in of_label)
    (weights,) = labelled(found, "weights")
    assert weights.demand(four) == {("h0", "h1"): WEIGHTS, ("h0", "h2"): WEIGHTS, ("h1", "h3"): WEIGHTS}


# -- what does not fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"training": replace(SHAPE.training, ranks=(0, 16))},
            "training: there is no rank 16: the fabric has ranks 0 to",
        ),
        ({"generation": (3, 4, 5, 6)}, "generation: rank 3 trains already"),
        ({"generation": tuple(range(4, 14))}, r"afd.ffn: rank 14 is no generation rank; name .* or write afd: none"),
        ({"afd": replace(AFD, ffn=(11, 12))}, "afd.ffn: rank 11 has attention already"),
        ({"afd": None, "generation": tuple(range(4, 14))}, "do not make groups of 4: 2 are left over"),
        ({"iterations": 215}, "iterations: make 20425 collectives and computations; 20000 is the most; use fewer"),
        ({"tail": replace(SHAPE.tail, tp=3)}, "tail.tp: 3 is no multiple of the 2 of decode"),
        (
            {
                "model": find("Qwen2.5-7B"),
                "afd": None,
                "generation": tuple(range(4, 12)),
                "tail": Decoding(tp=8, steps=1, seconds=0.0),
            },
            "tail.tp: Qwen2.5-7B: 28 heads do not divide by a tensor parallelism of 8",
        ),
    ],
)
def test_parts_that_do_not_fit_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(IterationError, match=message):
        steps(**changes)
