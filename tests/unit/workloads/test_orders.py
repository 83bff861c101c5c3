"""Rank orders: permutations, the same for a seed in every process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.orders import derangement, rank_order


def test_sequence_is_the_identity() -> None:
    assert rank_order(5, "sequence", 3) == (0, 1, 2, 3, 4)


@given(st.integers(0, 200), st.integers())
def test_random_orders_are_permutations_fixed_by_the_seed(ranks: int, seed: int) -> None:
    order = rank_order(ranks, "random", seed)
    assert sorted(order) == list(range(ranks))
    assert order == rank_order(ranks, "random", seed)


@given(st.integers(2, 200), st.integers())
def test_derangements_have_no_fixed_point(ranks: int, seed: int) -> None:
    targets = derangement(ranks, seed)
    assert sorted(targets) == list(range(ranks))
    assert all(rank != target for rank, target in enumerate(targets))


def test_seeds_differ_and_every_derangement_of_four_occurs() -> None:
    assert len({rank_order(16, "random", seed) for seed in range(20)}) == 20
    assert len({derangement(4, seed) for seed in range(200)}) == 9


def test_orders_do_not_depend_on_the_hash_seed() -> None:
    code = "from workloads.orders import *; print(rank_order(16, 'random', 7), derangement(16, 7))"
    results = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert results == {f"{rank_order(16, 'random', 7)} {derangement(16, 7)}\n"}


def test_one_rank_has_no_derangement() -> None:
    with pytest.raises(ValueError, match="at least 2 ranks, not 1"):
        derangement(1, 0)
