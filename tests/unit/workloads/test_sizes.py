"""Sweeps and merged buckets."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.models import find, layer_gradients, weights_bytes
from workloads.sizes import merge_buckets, sweep


def test_sweep_goes_as_nccl_tests_does() -> None:
    assert sweep(8, 64) == (8, 16, 32, 64)
    assert sweep(1000, 30_000, 3) == (1000, 3000, 9000, 27_000)
    assert sweep(5, 9) == (5,)


@pytest.mark.parametrize("arguments", [(0, 8, 2), (8, 4, 2), (8, 16, 1)])
def test_sweep_refuses_sizes_that_do_not_grow(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="a sweep needs 1 <= first <= last and factor >= 2"):
        sweep(*arguments)


def test_buckets_are_as_even_as_neighbours_allow() -> None:
    assert merge_buckets([9, 1, 1, 1, 9], 3) == ((9, 1), (3, 3), (9, 1))
    assert merge_buckets([5, 5, 5, 5], 2) == ((10, 2), (10, 2))
    assert merge_buckets([1, 2, 3], 1) == ((6, 3),)
    assert merge_buckets([4, 7], 5) == ((4, 1), (7, 1))
    assert merge_buckets([], 2) == ()
    with pytest.raises(ValueError, match="must be at least 1, not 0"):
        merge_buckets([1], 0)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.integers(1, 8))
def test_no_other_cut_is_more_even(sizes: list[int], count: int) -> None:
    buckets = merge_buckets(sizes, count)
    parts = min(count, len(sizes))
    assert len(buckets) == parts
    assert sum(bucket.merged for bucket in buckets) == len(sizes)
    taken = iter(sizes)
    assert all(sum(itertools.islice(taken, bucket.merged)) == bucket.bytes for bucket in buckets)
    cuts = itertools.combinations(range(1, len(sizes)), parts - 1)
    best = min(sum(sum(sizes[a:b]) ** 2 for a, b in itertools.pairwise((0, *inner, len(sizes)))) for inner in cuts)
    assert sum(bucket.bytes**2 for bucket in buckets) == best


def test_a_models_gradients_merge_without_losing_a_byte() -> None:
    model = find("Qwen3-8B")
    buckets = merge_buckets(layer_gradients(model, "bf16"), 8)
    assert sum(bucket.bytes for bucket in buckets) == weights_bytes(model, "bf16")
    assert sum(bucket.merged for bucket in buckets) == 38
    assert max(bucket.bytes for bucket in buckets) < 1.25 * weights_bytes(model, "bf16") / 8
