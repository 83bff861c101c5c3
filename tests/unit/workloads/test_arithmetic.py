"""Message sizes and volumes against numbers worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from workloads import arithmetic
from workloads.models import find, weights_bytes

MIB = 1 << 20
QWEN3_8B = 16_381_470_720
"""Bytes of its weights in bf16: 8 190 735 360 parameters."""


@pytest.mark.parametrize(
    ("name", "kv_of_16384", "decode", "per_step", "training"),
    [
        # 2 L kv hd 2 B * 16384; 64 h 2 B; 2 L; 4096 h 2 B
        ("Qwen2.5-14B", 3_221_225_472, 655_360, 96, 40),
        ("Qwen2.5-32B", 4_294_967_296, 655_360, 128, 40),
        ("Qwen2.5-72B", 5_368_709_120, 1_048_576, 160, 64),
        ("Qwen3-8B", 2_415_919_104, 524_288, 72, 32),
        ("Qwen3-14B", 2_684_354_560, 655_360, 80, 40),
        ("Qwen3-32B", 4_294_967_296, 655_360, 128, 40),
        ("Llama3.3-70B", 5_368_709_120, 1_048_576, 160, 64),
        ("Qwen3-30B-A3B", 1_610_612_736, 262_144, 96, 16),
        ("Qwen3-235B-A22B", 3_154_116_608, 524_288, 188, 32),
        ("DeepSeek-V3", 1_151_336_448, 917_504, 122, 56),
    ],
)
def test_the_table_of_derived_sizes(name: str, kv_of_16384: int, decode: int, per_step: int, training: int) -> None:
    model = find(name)
    assert arithmetic.kv_transfer(model, "bf16", 16384) == kv_of_16384
    assert arithmetic.tp_decode_message(model, "bf16", 64) == decode
    assert arithmetic.tp_decode_messages(model) == per_step
    assert arithmetic.tp_training_message(model, "bf16", 1, 4096) == training * MIB
    assert arithmetic.tp_training_messages(model) == 2 * per_step


@pytest.mark.parametrize(
    ("name", "dispatch", "combine"),
    [("Qwen3-235B-A22B", 32_768, 65_536), ("DeepSeek-V3", 57_344, 114_688), ("Mixtral-8x7B", 8_192, 16_384)],
)
def test_expert_bytes_of_a_token(name: str, dispatch: int, combine: int) -> None:
    model = find(name)
    assert arithmetic.ep_dispatch(model, "fp8", 1) == dispatch
    assert arithmetic.ep_combine(model, "bf16", 1) == combine
    assert arithmetic.ep_dispatch(model, "fp8", 4096) == 4096 * dispatch


def test_decode_over_eight_ranks_takes_23_microseconds_at_400_gigabits() -> None:
    message = arithmetic.tp_decode_message(find("Qwen2.5-14B"), "bf16", 64)
    assert round(float(arithmetic.tp_volume(message, 1, 8)) / 50e9 * 1e6) == 23
    assert arithmetic.tp_volume(1000, 3, 4) == 4500
    assert arithmetic.tp_volume(1000, 3, 1) == 0


def test_gradients_of_72_billion_parameters_by_tp_8_and_pp_4() -> None:
    model = find("Qwen2.5-72B")
    assert weights_bytes(model, "bf16") == 145_412_407_296
    # 145 412 407 296 / 32 = 4 544 137 728 bytes a rank, times 2 * 15/16 around a ring of 16
    assert arithmetic.dp_volume(model, "bf16", dp=16, tp=8, pp=4) == 4_544_137_728 * 2 * 15 // 16 == 8_520_258_240


def test_sharded_data_parallelism() -> None:
    model, ring = find("Qwen3-8B"), QWEN3_8B * 3 // 4
    assert arithmetic.dp_volume(model, "bf16", 4) == 2 * ring == 24_572_206_080
    assert arithmetic.zero_volume(model, "bf16", 1, 4) == arithmetic.zero_volume(model, "bf16", 2, 4) == 2 * ring
    assert arithmetic.zero_volume(model, "bf16", 3, 4) == 3 * ring == 36_858_309_120
    with pytest.raises(ValueError, match="ZeRO has stages 1, 2 and 3, not 0"):
        arithmetic.zero_volume(model, "bf16", 0, 4)


def test_pipeline_and_context_messages() -> None:
    model = find("Qwen3-8B")
    assert arithmetic.pp_message(model, "bf16", 1, 4096) == 32 * MIB
    assert arithmetic.pp_message(model, "bf16", 1, 4096, tp=8) == 4 * MIB
    # 2 * 1 * (32768 / 8) * 8 heads * 128 * 2 B
    assert arithmetic.cp_message(model, "bf16", 1, 32768, 8) == 16 * MIB


def test_disaggregated_layers() -> None:
    model = find("DeepSeek-V3")
    assert arithmetic.afd_to_ffn(model, "fp8", 128) == 128 * 7168
    assert arithmetic.afd_to_attention(model, "bf16", 128) == 128 * 7168 * 2


def test_weight_sync() -> None:
    model = find("Qwen3-8B")
    assert arithmetic.weight_sync_volume(model, "bf16", 12) == 12 * QWEN3_8B == 196_577_648_640
    assert arithmetic.sharded_sync_volume(model, "bf16", replicas=6, senders=4) == Fraction(6 * QWEN3_8B, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: arithmetic.ep_dispatch(find("Qwen3-8B"), "fp8", 1), "Qwen3-8B has no experts"),
        (lambda: arithmetic.tp_decode_message(find("Qwen3-8B"), "bf16", 0), "tokens must be at least 1, not 0"),
        (lambda: arithmetic.dp_volume(find("Qwen3-8B"), "bf16", dp=0), "dp must be at least 1, not 0"),
        (lambda: arithmetic.weight_sync_volume(find("Qwen3-8B"), "bf16", -1), "receivers must be at least 1, not -1"),
    ],
)
def test_impossible_numbers_are_refused(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
