"""What each rank holds of a model and of its requests' keys and values, and what must move when that changes.

Tensor parallelism cuts the matrices of a layer by heads or columns (Megatron-LM, Shoeybi et al. 2019), embedding and
head by the vocabulary; norms, routers and the down-projections of latent attention are whole on every rank. Keys and
values are cut by their heads, and where there are fewer heads than ranks, some ranks hold the same ones; latent ones
are whole on every rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from workloads.models import (
    Model,
    dtype_bytes,
    embedding_parameters,
    head_parameters,
    kv_bytes_per_token,
    layer_parameters,
)


class ShardingError(ValueError):
    """A model that cannot be cut so, or a layout that lacks something; the message says what."""


class Shard(NamedTuple):
    """The smallest part that is held or sent: one of the equal parts of a tensor of one layer."""

    tensor: str
    layer: int
    part: int
    bytes: int


Shards = frozenset[Shard]


class Tensor(NamedTuple):
    """All that is cut alike in one layer: `bytes` in `parts` equal parts; one part means that it is never cut."""

    name: str
    layer: int
    bytes: int
    parts: int

    def shards(self, rank: int, tp: int) -> Iterator[Shard]:
        """What rank `rank` of `tp` holds. Raises ShardingError if the parts cannot be dealt out evenly."""
        if self.parts > 1 and self.parts % tp and tp % self.parts:
            raise ShardingError(f"{self.name}: {self.parts} parts cannot be held by {tp} ranks evenly")
        first = rank * self.parts // tp
        for part in range(first, first + max(1, self.parts // tp)):
            yield Shard(self.name, self.layer, part, self.bytes // self.parts)


def weight_tensors(model: Model, dtype: str, parts: int) -> tuple[Tensor, ...]:
    """The weights, cut into `parts`; layer -1 is the embedding, layer L the head.

    parts: a multiple of every tensor parallelism in question. Raises ShardingError if heads, columns or vocabulary do
    not divide by it.
    """
    _check_divisible(model, parts)
    size = dtype_bytes(dtype)
    found = [Tensor("columns", -1, embedding_parameters(model) * size, parts)]
    for layer, count in enumerate(layer_parameters(model)):
        whole, kv = _whole_parameters(model, layer), _kv_parameters(model)
        found += [
            Tensor("columns", layer, (count - whole - kv) * size, parts),
            Tensor("key-values", layer, kv * size, _kv_parts(model, parts)),
            Tensor("whole", layer, whole * size, 1),
        ]
    found += [
        Tensor("columns", model.layers, (head_parameters(model) - model.hidden) * size, parts),
        Tensor("whole", model.layers, model.hidden * size, 1),
    ]
    return tuple(tensor for tensor in found if tensor.bytes)


def cache_tensors(model: Model, dtype: str, owner: str, tokens: int, parts: int) -> tuple[Tensor, ...]:
    """The keys and values of `tokens` tokens of the requests of `owner` (an instance), layer by layer."""
    layer_bytes = tokens * kv_bytes_per_token(model, dtype) // model.layers
    cuts = 1 if model.mla else _kv_parts(model, parts)
    return tuple(Tensor(f"cache of {owner}", layer, layer_bytes, cuts) for layer in range(model.layers))


def shards_of(tensors: Sequence[Tensor], rank: int, tp: int) -> Shards:
    """All that rank `rank` of `tp` holds of these tensors. Raises ShardingError as `Tensor.shards` does."""
    return frozenset(shard for tensor in tensors for shard in tensor.shards(rank, tp))


def size_of(shards: Shards) -> int:
    """Bytes of all of them."""
    return sum(shard.bytes for shard in shards)


# -- resharding -------------------------------------------------------------------------------------------------------


class Send(NamedTuple):
    """One shard from one rank to another."""

    src: int
    dst: int
    shard: Shard


@dataclass(frozen=True)
class Resharding:
    """How ranks come to hold something else.

    placement: by role, the rank that takes it. sends: each role's rank gets every shard that it lacks once.
    """

    placement: tuple[int, ...]
    sends: tuple[Send, ...]

    @property
    def bytes(self) -> int:
        """All bytes that move."""
        return sum(send.shard.bytes for send in self.sends)

    @cached_property
    def pairs(self) -> Mapping[tuple[int, int], int]:
        """Bytes by (sending rank, receiving rank)."""
        total: Counter[tuple[int, int]] = Counter()
        for send in self.sends:
            total[send.src, send.dst] += send.shard.bytes
        return dict(sorted(total.items()))


def reshard(held: Mapping[int, Shards], roles: Sequence[Shards]) -> Resharding:
    """Give each role to a rank so that the least bytes move, and send exactly what each rank then lacks.

    held: by rank, what it has. roles: what the ranks must have, one role for each rank. Among placements that move
    equally little, the one that changes the order of the ranks least is taken. A shard that several ranks hold comes
    from the one that sends least until then.

    Raises ShardingError if there are not as many roles as ranks, or a role needs what nobody holds.
    """
    ranks = list(held)
    if len(roles) != len(ranks):
        raise ShardingError(f"{len(roles)} roles cannot be given to {len(ranks)} ranks")
    lacking = [[roles[role] - held[rank] for role in range(len(roles))] for rank in ranks]
    taken = _assign([[size_of(lack) for lack in row] for row in lacking])
    placement = tuple(ranks[place] for place in taken)
    lacks = {rank: lacking[place][role] for role, (rank, place) in enumerate(zip(placement, taken, strict=True))}
    return Resharding(placement, tuple(_sends(held, lacks)))


def _assign(costs: Sequence[Sequence[int]]) -> list[int]:
    """By column, the row that takes it, so that the sum is the least; then the sum of |row - column| is."""
    import numpy as np  # noqa: PLC0415 - the two take most of a second, and most programs assign nothing
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    count = len(costs)
    distances = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    rows, columns = linear_sum_assignment(np.array(costs, dtype=np.float64) * (count * count + 1) + distances)
    taken = dict(zip(columns.tolist(), rows.tolist(), strict=True))
    return [taken[column] for column in range(count)]


def _sends(held: Mapping[int, Shards], lacks: Mapping[int, Shards]) -> Iterator[Send]:
    """The largest shards first, so that senders share the rest evenly."""
    sent: Counter[int] = Counter()
    missing = [(-shard.bytes, shard, rank) for rank, lack in lacks.items() for shard in lack]
    for _, shard, rank in sorted(missing):
        holders = [holder for holder, shards in held.items() if shard in shards]
        if not holders:
            raise ShardingError(f"nobody holds part {shard.part} of {shard.tensor} in layer {shard.layer}")
        source = min(holders, key=lambda holder: (sent[holder], holder))
        sent[source] += shard.bytes
        yield Send(source, rank, shard)


# -- how a layer is cut -----------------------------------------------------------------------------------------------


def _whole_parameters(model: Model, layer: int) -> int:
    """Parameters of a layer that every rank holds: norms, router, down-projections of latent attention."""
    norms = 2 * model.hidden + (2 * model.head_dim if model.qk_norm and not model.mla else 0)
    router = model.hidden * model.experts if layer >= model.dense_layers else 0
    if not model.mla:
        return norms + router
    ranks = model.mla.query_rank + model.mla.kv_rank
    return norms + router + model.hidden * (ranks + model.mla.rope_dim) + ranks


def _kv_parameters(model: Model) -> int:
    """Key and value projections of a layer, biases included; those of latent attention are cut by columns."""
    if model.mla:
        return 0
    return 2 * model.kv_heads * model.head_dim * (model.hidden + (1 if model.qkv_bias else 0))


def _kv_parts(model: Model, parts: int) -> int:
    """Into how many parts keys and values can be cut: one for each head at most."""
    return parts if model.kv_heads % parts == 0 else model.kv_heads


def _check_divisible(model: Model, parts: int) -> None:
    counts = {"heads": model.heads, "columns of an MLP": model.ffn, "words of the vocabulary": model.vocab}
    if model.dense_layers:
        counts["columns of a dense MLP"] = model.dense_ffn
    for what, count in counts.items():
        if parts < 1 or count % parts:
            raise ShardingError(f"{model.name}: {count} {what} do not divide by a tensor parallelism of {parts}")
    if model.kv_heads % parts and parts % model.kv_heads:
        raise ShardingError(f"{model.name}: {model.kv_heads} key/value heads do not fit a parallelism of {parts}")
