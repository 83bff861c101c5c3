"""The training phase: forward, then backward with layer-wise all-reduces on its heels, then the optimizer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workloads.models import layer_gradients, weights_bytes
from workloads.rl_iteration.rounds import Maker
from workloads.rl_iteration.shape import RlIteration
from workloads.sizes import Bucket, merge_buckets
from workloads.step_kinds import Step

GRADIENTS = "gradients"
"""Label of the gradients' all-reduces."""
OPTIMIZER = "optimizer"


def training_steps(shape: RlIteration, maker: Maker, after: Sequence[str], most: int | None) -> Iterator[Step]:
    """One pass of data-parallel training; the last step is the optimizer's.

    The backward pass is cut at the gradient buckets (as PyTorch's DistributedDataParallel cuts it, Li et al. 2020): a
    bucket's all-reduce begins when the pass has made its gradients and the all-reduce before is over, while the pass
    goes on. Each bucket takes of the pass what its parameters are of the model's, since a backward pass makes two
    multiplications by every weight for every token. most: buckets are merged into at most so many.
    """
    train, total = shape.training, weights_bytes(shape.model, shape.dtype)
    forward = maker.compute("forward", seconds=train.forward, ranks=train.ranks, after=after)
    yield forward
    computed, reduced = forward.name, ""
    for number, bucket in enumerate(_buckets(shape, most)):
        seconds = train.backward * bucket.bytes / total
        piece = maker.compute("backward", number, seconds=seconds, ranks=train.ranks, after=(computed,))
        waits = (piece.name, reduced) if reduced else (piece.name,)
        gradients = maker.collective(
            "all-reduce",
            GRADIENTS,
            number,
            size=bucket.bytes,
            ranks=train.ranks,
            after=waits,
            merged=bucket.merged,
        )
        yield from (piece, gradients)
        computed, reduced = piece.name, gradients.name
    yield maker.compute(OPTIMIZER, seconds=train.optimizer, ranks=train.ranks, after=(reduced,))


def _buckets(shape: RlIteration, most: int | None) -> tuple[Bucket, ...]:
    gradients = layer_gradients(shape.model, shape.dtype)
    count = min(count for count in (shape.training.buckets, most, len(gradients)) if count is not None)
    return merge_buckets(gradients, count)
