"""The generation phase: decoding with switched tensor parallelism, and with attention and feed-forward layers apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from workloads import arithmetic
from workloads.collectives.schedule import Piece, split
from workloads.rl_iteration.rounds import Maker, rounds_of
from workloads.rl_iteration.shape import Afd, RlIteration
from workloads.sharding import Resharding, Shards, Tensor, cache_tensors, reshard, shards_of, weight_tensors
from workloads.step_kinds import Step

MERGE, SPLIT = "merge", "split"
TO_FFN, TO_ATTENTION = "attention-to-ffn", "ffn-to-attention"


@dataclass
class SwitchingGroup:
    """Ranks that decode as several instances, merge into one for the tail of a rollout, and split again.

    number: which of the groups. ranks: those of all instances, one instance after the other, in the order of their
    tensor-parallel ranks: it changes when instances split, since those ranks take the roles that need least.
    """

    shape: RlIteration
    number: int
    ranks: tuple[int, ...]
    _weights: tuple[Tensor, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._weights = weight_tensors(self.shape.model, self.shape.dtype, self.shape.tail.tp)

    @property
    def instances(self) -> int:
        """How many there are before the tail."""
        return len(self.ranks) // self.shape.decode.tp

    def steps(self, maker: Maker, after: Sequence[str]) -> list[Step]:
        """One rollout; what comes after it waits for the last step."""
        rollouts = [self._rollout(maker, instance, after) for instance in range(self.instances)]
        ends = tuple(rollout[-1].name for rollout in rollouts)
        steps = [step for rollout in rollouts for step in rollout]
        return steps + (self._switched(maker, ends) if self.instances > 1 else self._tail(maker, self.ranks, ends))

    def _rollout(self, maker: Maker, instance: int, after: Sequence[str]) -> list[Step]:
        """One instance, until only its live requests are left."""
        tp, place = self.shape.decode.tp, self.number * self.instances + instance
        members = self.ranks[instance * tp : (instance + 1) * tp]
        return list(_decode(self.shape, maker, "decode", members, place, after))

    def _switched(self, maker: Maker, after: Sequence[str]) -> list[Step]:
        """The instances merge, decode what is left, and split; the ranks' order is that of their new roles."""
        ranks = sorted(self.ranks)
        merging, splitting = _reshardings(self.shape, tuple(ranks.index(rank) for rank in self.ranks))
        merge = maker.exchange(MERGE, self.number, pairs=_named(merging.pairs, ranks), after=after)
        tail = self._tail(maker, [ranks[place] for place in merging.placement], (merge.name,))
        self.ranks = tuple(ranks[place] for place in splitting.placement)
        pairs = _named(splitting.pairs, ranks)
        return [merge, *tail, maker.exchange(SPLIT, self.number, pairs=pairs, after=(tail[-1].name,))]

    def reshardings(self) -> tuple[Resharding, Resharding]:
        """How the instances merge, and how they split again."""
        merging = reshard(self._apart(with_cache=True), self._roles_together())
        return merging, reshard(self._together(merging.placement), self._roles_apart())

    def _tail(self, maker: Maker, ranks: Sequence[int], after: Sequence[str]) -> list[Step]:
        return list(_decode(self.shape, maker, "tail", ranks, self.number, after))

    # -- layouts ------------------------------------------------------------------------------------------------------

    def _apart(self, *, with_cache: bool) -> dict[int, Shards]:
        """What each rank holds as one of several instances; caches are those of each instance's live requests."""
        tp = self.shape.decode.tp
        return {
            rank: shards_of(self._weights + (self._cache(place // tp) if with_cache else ()), place % tp, tp)
            for place, rank in enumerate(self.ranks)
        }

    def _roles_apart(self) -> list[Shards]:
        """What each rank must hold for the next rollout: no requests yet."""
        return list(self._apart(with_cache=False).values())

    def _roles_together(self) -> list[Shards]:
        """What each rank must hold as one instance: its part of the weights and of all live requests."""
        tensors = [*self._weights]
        for instance in range(self.instances):
            tensors += self._cache(instance)
        return [shards_of(tensors, role, len(self.ranks)) for role in range(len(self.ranks))]

    def _together(self, placement: Sequence[int]) -> dict[int, Shards]:
        """The weights that each rank holds as one instance."""
        return {rank: shards_of(self._weights, role, len(placement)) for role, rank in enumerate(placement)}

    def _cache(self, instance: int) -> tuple[Tensor, ...]:
        tokens = self.shape.live_requests * self.shape.live_tokens
        owner = f"instance {instance}"
        return cache_tensors(self.shape.model, self.shape.dtype, owner, tokens, self.shape.tail.tp)


@lru_cache(maxsize=64)
def _reshardings(shape: RlIteration, order: tuple[int, ...]) -> tuple[Resharding, Resharding]:
    """Those of any group whose ranks, numbered from the lowest on, are in this order: groups are alike, and many."""
    return SwitchingGroup(shape, 0, order).reshardings()


def _named(pairs: Mapping[tuple[int, int], int], ranks: Sequence[int]) -> dict[tuple[int, int], int]:
    return {(ranks[src], ranks[dst]): size for (src, dst), size in pairs.items()}


def _decode(
    shape: RlIteration,
    maker: Maker,
    stage: Literal["decode", "tail"],
    ranks: Sequence[int],
    place: int,
    after: Sequence[str],
) -> Iterator[Step]:
    """Steps of one instance: in each round first all computation, then all of its all-reduces as one.

    The all-reduces are labelled by stage and degree, `decode-tp2` and `tail-tp4`. place: which instance, for names.
    """
    how = shape.decode if stage == "decode" else shape.tail
    batch = shape.batch if stage == "decode" else shape.live_requests * (shape.tail.tp // shape.decode.tp)
    messages = arithmetic.tp_decode_messages(shape.model) if how.tp > 1 else 0
    message = arithmetic.tp_decode_message(shape.model, shape.dtype, batch)
    label, last = f"{stage}-tp{how.tp}", tuple(after)
    for number, steps in rounds_of(how.steps, how.rounds):
        seconds = steps * (how.seconds + messages * shape.message_overhead)
        computation = maker.compute(f"compute-{label}", place, number, seconds=seconds, ranks=ranks, after=last)
        yield computation
        last = (computation.name,)
        if messages:
            count = steps * messages
            reduction = maker.collective(
                "all-reduce", label, place, number, size=count * message, ranks=ranks, after=last, merged=count
            )
            yield reduction
            last = (reduction.name,)


def afd_steps(shape: RlIteration, afd: Afd, maker: Maker, after: Sequence[str]) -> Iterator[Step]:
    """Decoding with attention and feed-forward layers apart: in each round there, and back."""
    layers = shape.model.layers - shape.model.dense_layers
    out = arithmetic.afd_to_ffn(shape.model, afd.to_ffn, afd.batch) * layers
    back = arithmetic.afd_to_attention(shape.model, shape.dtype, afd.batch) * layers
    last = tuple(after)
    for number, steps in rounds_of(afd.steps, afd.rounds):
        half, merged = steps * afd.seconds / 2, steps * layers
        pairs = _bipartite(afd, steps * out)
        attention = maker.compute("attention", number, seconds=half, ranks=afd.attention, after=last)
        there = maker.exchange(TO_FFN, number, pairs=pairs, after=(attention.name,), merged=merged)
        ffn = maker.compute("ffn", number, seconds=half, ranks=afd.ffn, after=(there.name,))
        pairs = {(dst, src): size for (src, dst), size in _bipartite(afd, steps * back).items()}
        yield from (attention, there, ffn)
        answer = maker.exchange(TO_ATTENTION, number, pairs=pairs, after=(ffn.name,), merged=merged)
        yield answer
        last = (answer.name,)


def _bipartite(afd: Afd, size: int) -> dict[tuple[int, int], int]:
    """`size` bytes between each attention rank and all feed-forward ranks, evenly."""
    shares = split(Piece(0, size), len(afd.ffn))
    return {(src, dst): share.bytes for src in afd.attention for dst, share in zip(afd.ffn, shares, strict=True)}
