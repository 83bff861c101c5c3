"""How many bytes each kind of parallelism moves: message sizes and volumes of training and generation.

Letters, as in the papers: b micro-batch (sequences), s tokens of a sequence, h hidden size, L layers, d bytes of an
element, P parameters, T tokens, k experts that a token visits. A message is what one collective or one pair of ranks
moves at once (the S of a collective's formulas); a volume is what a rank sends in all, with ring algorithms, as an
exact fraction of bytes. Parallelism degrees are checked: ValueError below 1.
"""

from __future__ import annotations

from fractions import Fraction

from workloads.models import Model, dtype_bytes, kv_bytes_per_token, weights_bytes

LAYER_ALL_REDUCES = 2
"""All-reduces of tensor parallelism in one pass through a layer: after attention and after the MLP."""
EXPERT_EXCHANGES = 4
"""All-to-alls of expert parallelism in one layer and iteration: dispatch and combine, forward and backward (MixNet,
SIGCOMM 2025)."""


# -- tensor parallelism -----------------------------------------------------------------------------------------------


def activation_bytes(model: Model, dtype: str, tokens: int) -> int:
    """The hidden states of `tokens` tokens: T h d."""
    _positive(tokens=tokens)
    return tokens * model.hidden * dtype_bytes(dtype)


def tp_training_message(model: Model, dtype: str, micro_batch: int, sequence: int) -> int:
    """S of one tensor-parallel all-reduce in training: b s h d.

    Megatron-LM (Shoeybi et al. 2019, section 3). With sequence parallelism a reduce-scatter and an all-gather of the
    same S stand for it (Korthikanti et al. 2022, section 4.2).
    """
    return activation_bytes(model, dtype, micro_batch * sequence)


def tp_training_messages(model: Model) -> int:
    """All-reduces of a micro-batch: two forward and two backward in every layer (Megatron-LM, section 3)."""
    return 2 * LAYER_ALL_REDUCES * model.layers


def tp_decode_message(model: Model, dtype: str, batch: int) -> int:
    """S of one tensor-parallel all-reduce of a decode step, in which each of B sequences grows by a token: B h d."""
    return activation_bytes(model, dtype, batch)


def tp_decode_messages(model: Model) -> int:
    """All-reduces of a decode step: two in every layer, forward only."""
    return LAYER_ALL_REDUCES * model.layers


def tp_volume(message: int, messages: int, tp: int) -> Fraction:
    """What a rank sends for `messages` ring all-reduces of `message` bytes: 2 (tp-1)/tp S each."""
    _positive(tp=tp)
    return Fraction(2 * (tp - 1), tp) * message * messages


# -- data parallelism -------------------------------------------------------------------------------------------------


def dp_volume(model: Model, dtype: str, dp: int, tp: int = 1, pp: int = 1) -> Fraction:
    """What a rank sends to all-reduce its gradients by ring, once an iteration: 2 (dp-1)/dp P d / (tp pp)."""
    return 2 * _shard_volume(model, dtype, dp, tp, pp)


def zero_volume(model: Model, dtype: str, stage: int, dp: int, tp: int = 1, pp: int = 1) -> Fraction:
    """What a rank sends with optimizer states (stage 1), gradients too (2) or weights too (3: FSDP) sharded.

    ZeRO (Rajbhandari et al. 2020, section 7): stages 1 and 2 reduce-scatter gradients and all-gather weights, as much
    as an all-reduce; stage 3 gathers the weights forward and again backward: 3 (dp-1)/dp P d / (tp pp).
    """
    if stage not in (1, 2, 3):
        raise ValueError(f"ZeRO has stages 1, 2 and 3, not {stage}")
    return (3 if stage == 3 else 2) * _shard_volume(model, dtype, dp, tp, pp)


def _shard_volume(model: Model, dtype: str, dp: int, tp: int, pp: int) -> Fraction:
    """One ring all-gather or reduce-scatter of a rank's part of the model."""
    _positive(dp=dp, tp=tp, pp=pp)
    return Fraction((dp - 1) * weights_bytes(model, dtype), dp * tp * pp)


# -- pipeline, context and expert parallelism -------------------------------------------------------------------------


def pp_message(model: Model, dtype: str, micro_batch: int, sequence: int, tp: int = 1) -> Fraction:
    """What crosses one pipeline boundary for a micro-batch, forward and again backward: b s h d.

    With tp > 1 each rank sends its part only, and the receivers gather them: /tp (Narayanan et al. 2021, section 4.1).
    """
    _positive(tp=tp)
    return Fraction(activation_bytes(model, dtype, micro_batch * sequence), tp)


def cp_message(model: Model, dtype: str, micro_batch: int, sequence: int, cp: int) -> Fraction:
    """Keys and values that a rank passes on in each of the cp-1 steps of ring attention: 2 b (s/cp) kv_heads hd d.

    Ring attention (Liu et al. 2023, section 3).
    """
    _positive(micro_batch=micro_batch, sequence=sequence, cp=cp)
    width = 2 * model.kv_heads * model.head_dim * dtype_bytes(dtype)
    return Fraction(micro_batch * sequence * width, cp)


def ep_dispatch(model: Model, dtype: str, tokens: int) -> int:
    """What `tokens` tokens send to their experts in one layer: T k h d, d of the type that is dispatched (fp8: 1)."""
    return _routed(model) * activation_bytes(model, dtype, tokens)


def ep_combine(model: Model, dtype: str, tokens: int) -> int:
    """What the experts send back in one layer: T k h d, as many values as were dispatched, usually in bf16.

    DeepEP (README) dispatches in fp8 and combines in bf16.
    """
    return _routed(model) * activation_bytes(model, dtype, tokens)


def _routed(model: Model) -> int:
    if not model.top_k:
        raise ValueError(f"{model.name} has no experts to dispatch to")
    return model.top_k


# -- disaggregation ---------------------------------------------------------------------------------------------------


def afd_to_ffn(model: Model, dtype: str, tokens: int) -> int:
    """What attention sends to feed-forward ranks in one layer: T h d, each token once, spread over the M x N pairs."""
    return activation_bytes(model, dtype, tokens)


def afd_to_attention(model: Model, dtype: str, tokens: int) -> int:
    """What feed-forward ranks send back in one layer: T h d."""
    return activation_bytes(model, dtype, tokens)


def kv_transfer(model: Model, dtype: str, tokens: int) -> int:
    """Keys and values of `tokens` tokens in all layers, as disaggregated prefill or migration moves them."""
    _positive(tokens=tokens)
    return tokens * kv_bytes_per_token(model, dtype)


# -- weight sync ------------------------------------------------------------------------------------------------------


def weight_sync_volume(model: Model, dtype: str, receivers: int) -> int:
    """All bytes that a weight sync delivers: every receiver gets the full tensors and keeps what it needs, P d each.

    That is how ROLL and checkpoint-engine broadcast buckets. A tree or chain delivers as much as unicast; what differs
    is who sends it: the training side sends all of it in unicast, once per branch of a tree, once in a chain.
    """
    _positive(receivers=receivers)
    return receivers * weights_bytes(model, dtype)


def sharded_sync_volume(model: Model, dtype: str, replicas: int, senders: int) -> Fraction:
    """What each of `senders` training ranks sends if every one sends just what `replicas` copies of the model lack.

    P d R / N (point-to-point writes by a static schedule, Perplexity 2025).
    """
    _positive(replicas=replicas, senders=senders)
    return Fraction(replicas * weights_bytes(model, dtype), senders)


def _positive(**numbers: int) -> None:
    for name, value in numbers.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
