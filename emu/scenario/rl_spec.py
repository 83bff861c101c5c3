"""`workload: {kind: rl-iteration}` - training, generation with switched parallelism, and weight sync.

The defaults are an iteration of Qwen3-8B on 16 hosts with a GPU each, of H100's class: short enough to be emulated,
with every kind of traffic that a longer one has.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from emu.scenario.fields import Duration, PositiveDuration, Refusal, Strict, Whole, fault, refuse_at
from emu.scenario.shorthand import RankList
from workloads import models
from workloads.models import Dtype, ModelError
from workloads.rl_iteration import Afd, Decoding, Mode, RlIteration, SyncAlgorithm, Training, WeightSync

Degree = Annotated[Whole, Field(ge=1, le=64)]
Steps = Annotated[Whole, Field(ge=1, le=1_000_000)]
Sequences = Annotated[Whole, Field(ge=1, le=1_000_000)]
Rounds = Annotated[Whole, Field(ge=1, le=1000)]


class DecodeSpec(Strict):
    """Most of the rollout.

    tp: ranks of an instance. batch: its sequences. steps: tokens that each grows by. step: computation of one step.
    rounds: into how many collectives the all-reduces of all steps are coalesced.
    """

    tp: Degree = 2
    batch: Sequences = 128
    steps: Steps = 64
    step: Duration = 0.006
    rounds: Rounds = 2


class TailSpec(Strict):
    """The rest of the rollout, in one instance where several were.

    tp: its ranks, a multiple of those of `decode`. requests: of each of the instances that merged, those still live.
    tokens: that each of them has by then. steps, step, rounds: as in `decode`.
    """

    tp: Degree = 4
    requests: Sequences = 32
    tokens: Steps = 2048
    steps: Steps = 96
    step: Duration = 0.003
    rounds: Rounds = 1


class AfdSpec(Strict):
    """Generation ranks that decode with attention and feed-forward layers apart.

    attention: ranks with the attention layers. ffn: ranks with the feed-forward layers.
    batch: sequences of each attention rank. steps, step, rounds: as in `decode`.
    dispatch: data type of activations on their way to the feed-forward ranks; default: the workload's.
    """

    attention: RankList = (8, 9, 10, 11)
    ffn: RankList = (12, 13, 14, 15)
    batch: Sequences = 64
    steps: Steps = 128
    step: Duration = 0.003
    rounds: Rounds = 1
    dispatch: Dtype | None = None


class WeightSyncSpec(Strict):
    """How the new weights reach the generation ranks.

    algorithm: which way they go. chunks: into how many pieces a tree or chain cuts them.
    pod: generation ranks in a row that a tree takes as a pod.
    """

    algorithm: SyncAlgorithm = "two-level"
    chunks: Annotated[Whole, Field(ge=1, le=65_536)] = 16
    pod: Annotated[Whole, Field(ge=1, le=65_536)] = 4


def _read_afd(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """One clear message instead of one for each form."""
    if value == "none" or isinstance(value, AfdSpec):
        return value
    if not isinstance(value, dict):
        raise Refusal(f"{value!r:.60} names no ranks", "write none or {attention: 8-11, ffn: 12-15}")
    return AfdSpec.model_validate(value)


class RlWorkload(Strict):
    """Iterations of disaggregated RL training, sized from a model.

    model, dtype: what is trained, and the type of weights, gradients, activations and caches.
    iterations: how many, one after the other.
    mode: `one-step-async` trains and generates side by side, `synchronous` generates first.
    training: ranks with a replica each. generation: the others; those that `afd` does not name switch parallelism.
    forward, backward, optimizer: computation of one training pass.
    buckets: layer gradients are merged into at most so many all-reduces.
    decode: most of the rollout. tail: the rest of it.
    message_overhead: time of each tensor-parallel all-reduce in decoding, beside its bytes.
    afd: ranks that decode with attention and feed-forward layers apart, or `none`.
    weight_sync: how the new weights reach the generation ranks.
    """

    kind: Literal["rl-iteration"]
    model: str
    dtype: Dtype = "bf16"
    iterations: Annotated[Whole, Field(ge=1, le=100)] = 1
    mode: Mode = "one-step-async"
    training: RankList = (0, 1, 2, 3)
    generation: RankList = tuple(range(4, 16))
    forward: Duration = 0.3
    backward: PositiveDuration = 0.6
    optimizer: Duration = 0.2
    buckets: Annotated[Whole, Field(ge=1, le=10_000)] | None = None
    decode: DecodeSpec = DecodeSpec()
    tail: TailSpec = TailSpec()
    message_overhead: Duration = 3e-6
    afd: Annotated[Literal["none"] | AfdSpec, BeforeValidator(_read_afd)] = AfdSpec()
    weight_sync: WeightSyncSpec = WeightSyncSpec()

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            models.find(self.model)
        except ModelError as error:
            problem, _, hint = str(error).partition("; ")
            refuse_at({("model",): fault(problem, hint)})
        return self

    def shape(self) -> RlIteration:
        """The iteration as the workload knows it; whether its parts fit a cluster is checked there."""
        train, decode, tail, sync = self.training, self.decode, self.tail, self.weight_sync
        return RlIteration(
            model=models.find(self.model),
            dtype=self.dtype,
            iterations=self.iterations,
            mode=self.mode,
            training=Training(
                ranks=train,
                forward=self.forward,
                backward=self.backward,
                optimizer=self.optimizer,
                buckets=self.buckets,
            ),
            generation=self.generation,
            decode=Decoding(tp=decode.tp, steps=decode.steps, seconds=decode.step, rounds=decode.rounds),
            tail=Decoding(tp=tail.tp, steps=tail.steps, seconds=tail.step, rounds=tail.rounds),
            batch=decode.batch,
            live_requests=tail.requests,
            live_tokens=tail.tokens,
            message_overhead=self.message_overhead,
            afd=self._afd(),
            weight_sync=WeightSync(algorithm=sync.algorithm, chunks=sync.chunks, pod=sync.pod),
        )

    def _afd(self) -> Afd | None:
        if self.afd == "none":
            return None
        return Afd(
            attention=self.afd.attention,
            ffn=self.afd.ffn,
            batch=self.afd.batch,
            steps=self.afd.steps,
            seconds=self.afd.step,
            rounds=self.afd.rounds,
            to_ffn=self.afd.dispatch or self.dtype,
        )
