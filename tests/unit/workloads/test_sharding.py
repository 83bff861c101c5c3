"""Resharding: every rank ends with what it needs, nothing moves in vain, and no other placement moves less."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.models import Model, find, kv_bytes_per_token, layer_parameters, models, weights_bytes
from workloads.sharding import (
    Resharding,
    Shard,
    ShardingError,
    Shards,
    Tensor,
    cache_tensors,
    reshard,
    shards_of,
    size_of,
    weight_tensors,
)

QWEN3_8B = find("Qwen3-8B")
WHOLE = (36 * (2 * 4096 + 2 * 128) + 4096) * 2
"""Bytes of Qwen3-8B that are never cut: in 36 layers two norms and those of queries and keys, and the last norm."""
CUT = 16_381_470_720 - WHOLE
REQUESTS, TOKENS = 8, 8192


def pair_of_instances(cache: int = REQUESTS * TOKENS) -> dict[int, Shards]:
    """Ranks 0 and 1, and 2 and 3, each hold the model under TP=2 and the cache of their own requests."""
    weights = weight_tensors(QWEN3_8B, "bf16", 4)
    held = {}
    for rank in range(4):
        own = cache_tensors(QWEN3_8B, "bf16", f"instance {rank // 2}", cache, 4) if cache else ()
        held[rank] = shards_of(weights + own, rank % 2, 2)
    return held


def merged_roles(cache: int = REQUESTS * TOKENS) -> list[Shards]:
    tensors = list(weight_tensors(QWEN3_8B, "bf16", 4))
    for instance in range(2):
        tensors += cache_tensors(QWEN3_8B, "bf16", f"instance {instance}", cache, 4)
    return [shards_of(tensors, rank, 4) for rank in range(4)]


def test_merging_two_instances_moves_no_weights_and_half_of_the_cache() -> None:
    plan = reshard(pair_of_instances(), merged_roles())
    cache = 2 * REQUESTS * TOKENS * kv_bytes_per_token(QWEN3_8B, "bf16")
    assert cache == 19_327_352_832  # 2 * 8 * 8192 * 147456
    assert plan.bytes == cache // 2 == 9_663_676_416
    assert {send.shard.tensor for send in plan.sends} == {"cache of instance 0", "cache of instance 1"}
    assert plan.placement == (0, 2, 1, 3), "each keeps the quarter that it can take from its half"
    assert plan.pairs == dict.fromkeys([(0, 2), (1, 3), (2, 0), (3, 1)], cache // 8)
    assert len(plan.sends) == 4 * 36, "a shard for each rank and layer"


def test_splitting_moves_a_quarter_of_the_weights_to_each_rank_and_so_all_of_them() -> None:
    weights = weight_tensors(QWEN3_8B, "bf16", 4)
    held = {rank: shards_of(weights, role, 4) for role, rank in enumerate((0, 2, 1, 3))}
    plan = reshard(held, [shards_of(weights, rank % 2, 2) for rank in range(4)])
    assert CUT == 16_380_854_272
    assert plan.bytes == CUT
    received = Counter[int]()
    for (_, dst), size in plan.pairs.items():
        received[dst] += size
    assert received == dict.fromkeys(range(4), CUT // 4)
    assert all(send.shard.tensor != "whole" for send in plan.sends)


def test_splitting_and_merging_bring_back_the_first_layout() -> None:
    weights = weight_tensors(QWEN3_8B, "bf16", 4)
    merged = reshard(pair_of_instances(0), [shards_of(weights, rank, 4) for rank in range(4)])
    assert merged.sends == ()
    held = {rank: shards_of(weights, role, 4) for role, rank in enumerate(merged.placement)}
    split = reshard(held, [shards_of(weights, rank % 2, 2) for rank in range(4)])
    again = {rank: shards_of(weights, role % 2, 2) for role, rank in enumerate(split.placement)}
    assert reshard(again, [shards_of(weights, rank, 4) for rank in range(4)]).sends == ()


@pytest.mark.parametrize("name", sorted(models()))
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_tensors_are_the_whole_model(name: str, parts: int) -> None:
    model = find(name)
    tensors = weight_tensors(model, "bf16", parts)
    assert sum(tensor.bytes for tensor in tensors) == weights_bytes(model, "bf16")
    for layer, count in enumerate(layer_parameters(model)):
        assert sum(tensor.bytes for tensor in tensors if tensor.layer == layer) == 2 * count
    whole = sum(tensor.bytes for tensor in tensors if tensor.parts == 1)
    for tp in (tp for tp in (1, 2, 4) if parts % tp == 0):
        everywhere = [shards_of(tensors, rank, tp) for rank in range(tp)]
        assert sum(map(size_of, everywhere)) == weights_bytes(model, "bf16") + (tp - 1) * (whole if parts > 1 else 0)
        assert frozenset().union(*everywhere) == shards_of(tensors, 0, 1)


def test_more_ranks_than_key_value_heads_hold_the_same_ones() -> None:
    model = find("Qwen3-30B-A3B")  # 4 key/value heads
    tensors = cache_tensors(model, "bf16", "a", 100, 8)
    assert {tensor.parts for tensor in tensors} == {4}
    held = [shards_of(tensors, rank, 8) for rank in range(8)]
    assert held[0] == held[1] != held[2] == held[3]
    assert size_of(held[0]) == 100 * kv_bytes_per_token(model, "bf16") // 4


def test_latent_caches_are_whole_on_every_rank() -> None:
    model = find("DeepSeek-V3")
    tensors = cache_tensors(model, "bf16", "a", 10, 4)
    assert all(size_of(shards_of(tensors, rank, 4)) == 10 * 70272 for rank in range(4))


def test_what_latent_attention_leaves_whole() -> None:
    tensors = weight_tensors(find("DeepSeek-V3"), "bf16", 4)
    norms_and_downs = 2 * 7168 + 7168 * (1536 + 512 + 64) + 1536 + 512
    whole = {tensor.layer: tensor.bytes for tensor in tensors if tensor.parts == 1}
    assert whole[0] == 2 * norms_and_downs
    assert whole[3] == 2 * (norms_and_downs + 7168 * 256), "the router too"


@pytest.mark.parametrize(
    ("name", "parts", "message"),
    [
        ("Qwen2.5-7B", 8, "Qwen2.5-7B: 28 heads do not divide by a tensor parallelism of 8"),
        ("Qwen3-8B", 3, "32 heads do not divide by a tensor parallelism of 3"),
        ("Qwen3-8B", 0, "do not divide by a tensor parallelism of 0"),
    ],
)
def test_models_that_cannot_be_cut_so(name: str, parts: int, message: str) -> None:
    with pytest.raises(ShardingError, match=message):
        weight_tensors(find(name), "bf16", parts)


def test_layouts_that_cannot_be_reached() -> None:
    shard = Shard("columns", 3, 1, 10)
    with pytest.raises(ShardingError, match="nobody holds part 1 of columns in layer 3"):
        reshard({0: frozenset()}, [frozenset({shard})])
    with pytest.raises(ShardingError, match="1 roles cannot be given to 2 ranks"):
        reshard({0: frozenset(), 1: frozenset()}, [frozenset()])
    with pytest.raises(ShardingError, match="6 parts cannot be held by 4 ranks evenly"):
        list(Tensor("columns", 0, 12, 6).shards(0, 4))


# -- properties of any resharding -------------------------------------------------------------------------------------


@st.composite
def layouts(draw: st.DrawFn) -> tuple[dict[int, Shards], list[Shards]]:
    """Up to five ranks with any shards, and as many roles that need any of those."""
    count = draw(st.integers(1, 5))
    pool = [Shard(f"t{i}", 0, 0, draw(st.integers(1, 50))) for i in range(draw(st.integers(1, 8)))]
    some = st.frozensets(st.sampled_from(pool))
    held = {rank: draw(some) for rank in draw(st.permutations(range(10, 10 + count)))}
    known = sorted(frozenset().union(*held.values()))
    needs = st.frozensets(st.sampled_from(known)) if known else st.just(frozenset[Shard]())
    return held, [draw(needs) for _ in range(count)]


def least_bytes(held: dict[int, Shards], roles: list[Shards]) -> int:
    """By trying every placement."""
    return min(
        sum(size_of(role - held[rank]) for rank, role in zip(order, roles, strict=True))
        for order in itertools.permutations(held)
    )


@settings(max_examples=200, deadline=None)
@given(layouts())
def test_every_rank_gets_exactly_what_it_lacks_and_the_least_moves(
    layout: tuple[dict[int, Shards], list[Shards]],
) -> None:
    held, roles = layout
    plan = reshard(held, roles)
    assert sorted(plan.placement) == sorted(held)
    assert_exact(plan, held, roles)
    assert plan.bytes == sum(plan.pairs.values()) == least_bytes(held, roles)


def assert_exact(plan: Resharding, held: dict[int, Shards], roles: list[Shards]) -> None:
    got: dict[int, list[Shard]] = {rank: [] for rank in held}
    for send in plan.sends:
        assert send.shard in held[send.src], "only what one has can be sent"
        assert send.shard not in held[send.dst], "nobody gets what it had"
        got[send.dst].append(send.shard)
    for rank, role in zip(plan.placement, roles, strict=True):
        assert len(set(got[rank])) == len(got[rank]), "nobody gets anything twice"
        assert set(got[rank]) == role - held[rank]


DEGREES = st.sampled_from([(1, 2), (1, 4), (2, 1), (2, 4), (4, 1), (4, 2), (2, 2)])


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(models())), DEGREES, st.integers(0, 3), st.integers(0, 4))
def test_switching_any_model_between_any_degrees(name: str, degrees: tuple[int, int], tokens: int, seed: int) -> None:
    old, new = degrees
    model: Model = find(name)
    weights = weight_tensors(model, "bf16", 4)
    caches = [cache_tensors(model, "bf16", str(instance), tokens, 4) for instance in range(4 // old)]
    ranks = [(rank + seed) % 4 for rank in range(4)]
    held = {rank: shards_of(weights + caches[role // old], role % old, old) for role, rank in enumerate(ranks)}
    owned = [tuple(t for c in caches[i :: 4 // new] for t in c) for i in range(4 // new)]
    roles = [shards_of(weights + owned[role // new], role % new, new) for role in range(4)]
    plan = reshard(held, roles)
    assert_exact(plan, held, roles)
    assert plan.bytes == least_bytes(held, roles)
