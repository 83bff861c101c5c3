"""What an iteration consists of, and whether its parts fit together. Times are modelled seconds, ranks global."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from workloads.models import Model
from workloads.sharding import ShardingError, weight_tensors

Mode = Literal["one-step-async", "synchronous"]
SyncAlgorithm = Literal["two-level", "chain", "unicast"]
MAX_STEPS = 20_000
"""Of all iterations together."""


class IterationError(ValueError):
    """Parts of an iteration that do not fit together. `key`: which part, as a path of field names."""

    def __init__(self, key: tuple[str, ...], problem: str, hint: str = "") -> None:
        self.key, self.problem, self.hint = key, problem, hint
        super().__init__(f"{'.'.join(key)}: {problem}" + (f"; {hint}" if hint else ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Data-parallel training on `ranks`.

    forward, backward, optimizer: seconds of computation. Gradients are all-reduced while the backward pass goes on.
    buckets: layer gradients are merged into at most so many all-reduces; None: one for each layer.
    """

    ranks: tuple[int, ...]
    forward: float
    backward: float
    optimizer: float
    buckets: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """Decoding by tensor parallelism of degree `tp`.

    steps: how many tokens every sequence grows by.
    seconds: computation of one step.
    rounds: into how many the all-reduces of all steps are coalesced; bytes stay exact.
    """

    tp: int
    steps: int
    seconds: float
    rounds: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Afd:
    """Decoding with attention and feed-forward layers on different ranks.

    batch: sequences of each attention rank. steps, seconds, rounds: as in `Decoding`; half of a step's computation is
    attention. to_ffn: data type in which activations go to the feed-forward ranks; they come back in the model's.
    """

    attention: tuple[int, ...]
    ffn: tuple[int, ...]
    batch: int
    steps: int
    seconds: float
    to_ffn: str
    rounds: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSync:
    """How new weights get from the training ranks to every generation rank.

    chunks: into how many pieces they are cut on the way (unicast sends them whole).
    pod: how many generation ranks in a row make a pod of the two-level tree.
    """

    algorithm: SyncAlgorithm
    chunks: int = 1
    pod: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RlIteration:
    """All of it. Generation ranks that `afd` does not name decode by tensor parallelism, in groups of `tail.tp`.

    mode: `one-step-async`: training and generation side by side, on rollouts of different iterations; `synchronous`:
        generation, then training. Weight sync comes after both, and then the next iteration.
    decode: most of the rollout, in instances of `decode.tp` ranks of `batch` sequences each. tail: the rest, when only
        `live_requests` sequences of each instance go on, with `live_tokens` tokens each: the instances of a group have
        merged into one by then. After it they split again, for the next rollout.
    message_overhead: seconds that each tensor-parallel all-reduce of a decode step costs beside its bytes.
    """

    model: Model
    dtype: str
    iterations: int
    mode: Mode
    training: Training
    generation: tuple[int, ...]
    decode: Decoding
    tail: Decoding
    batch: int
    live_requests: int
    live_tokens: int
    message_overhead: float
    afd: Afd | None
    weight_sync: WeightSync

    @property
    def switching(self) -> tuple[tuple[int, ...], ...]:
        """Groups of ranks that decode together in the tail, in order."""
        taken = {*self.afd.attention, *self.afd.ffn} if self.afd else set()
        free = [rank for rank in self.generation if rank not in taken]
        width = self.tail.tp
        return tuple(tuple(free[start : start + width]) for start in range(0, len(free), width))

    @property
    def steps(self) -> int:
        """How many steps all iterations have at most (with unmerged layer gradients)."""
        buckets = min(self.model.layers + 2, self.training.buckets or self.model.layers + 2)
        instances = self.tail.tp // self.decode.tp
        group = (
            2 * (instances * min(self.decode.rounds, self.decode.steps) + min(self.tail.rounds, self.tail.steps)) + 2
        )
        apart = 4 * min(self.afd.rounds, self.afd.steps) if self.afd else 0
        return self.iterations * (2 * buckets + 3 + len(self.switching) * group + apart)

    def check(self, ranks: int) -> None:
        """Raise IterationError unless the parts fit together on a cluster of `ranks`."""
        for error in self._problems(ranks):
            raise error

    def _problems(self, ranks: int) -> Iterator[IterationError]:
        for key, group in (("training", self.training.ranks), ("generation", self.generation)):
            if max(group) >= ranks:
                problem = f"there is no rank {max(group)}: the fabric has ranks 0 to {ranks - 1}"
                yield IterationError((key,), problem)
        if both := set(self.training.ranks) & set(self.generation):
            yield IterationError(("generation",), f"rank {min(both)} trains already")
        yield from self._afd_problems(self.afd) if self.afd else ()
        yield from self._switching_problems()
        if self.steps > MAX_STEPS:
            problem = f"make {self.steps} collectives and computations; {MAX_STEPS} is the most"
            yield IterationError(("iterations",), problem, "use fewer, or fewer rounds")

    def _afd_problems(self, afd: Afd) -> Iterator[IterationError]:
        if both := set(afd.attention) & set(afd.ffn):
            yield IterationError(("afd", "ffn"), f"rank {min(both)} has attention already")
        for key, group in (("attention", afd.attention), ("ffn", afd.ffn)):
            if strangers := set(group) - set(self.generation):
                hint = "name generation ranks, or write afd: none"
                yield IterationError(("afd", key), f"rank {min(strangers)} is no generation rank", hint)

    def _switching_problems(self) -> Iterator[IterationError]:
        old, new = self.decode.tp, self.tail.tp
        if new % old:
            yield IterationError(("tail", "tp"), f"{new} is no multiple of the {old} of decode")
            return
        if odd := [len(group) for group in self.switching if len(group) < new]:
            problem = f"the generation ranks that decode do not make groups of {new}: {odd[0]} are left over"
            yield IterationError(("generation",), problem, "change generation, afd or tail.tp")
        if self.switching:
            try:
                weight_tensors(self.model, self.dtype, new)
            except ShardingError as error:
                yield IterationError(("tail", "tp"), str(error))
