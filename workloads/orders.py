"""Orders of ranks: as they come, shuffled, or deranged; the same for a seed on every machine and in every process."""

from __future__ import annotations

import random
from typing import Literal

RankOrder = Literal["sequence", "random"]


def rank_order(ranks: int, order: RankOrder, seed: int) -> tuple[int, ...]:
    """0 to ranks-1 in sequence or shuffled.

    As the group of a `permutation` collective a shuffled order makes a random cyclic permutation, in which no rank
    sends to itself.
    """
    result = list(range(ranks))
    if order == "random":
        random.Random(f"{seed}:rank-order").shuffle(result)
    return tuple(result)


def derangement(ranks: int, seed: int) -> tuple[int, ...]:
    """A random permutation without fixed points: rank i sends to the i-th of the result. Every one is equally likely.

    Raises ValueError for a single rank, which has none but itself to send to.
    """
    if ranks == 1:
        raise ValueError("a derangement needs at least 2 ranks, not 1")
    chance = random.Random(f"{seed}:derangement")
    targets = list(range(ranks))
    chance.shuffle(targets)
    while any(rank == target for rank, target in enumerate(targets)):  # e = 2.7 shuffles on average
        chance.shuffle(targets)
    return tuple(targets)
