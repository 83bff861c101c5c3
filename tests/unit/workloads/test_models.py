"""Models: parameter counts against published figures, buckets against their sum."""

from __future__ import annotations

import pytest

from workloads.models import (
    ModelError,
    active_parameters,
    dtype_bytes,
    find,
    kv_bytes_per_token,
    layer_gradients,
    layer_parameters,
    models,
    parameters,
    weights_bytes,
)

ALL = sorted(models())


@pytest.mark.parametrize(
    ("name", "billions", "gigabytes", "gibibytes"),
    [
        ("Qwen2.5-14B", 14.77, 29.54, 27.51),
        ("Qwen2.5-32B", 32.76, 65.53, 61.03),
        ("Qwen2.5-72B", 72.71, 145.41, 135.43),
        ("Qwen3-8B", 8.19, 16.38, 15.26),
        ("Qwen3-14B", 14.77, 29.54, 27.51),
        ("Qwen3-32B", 32.76, 65.52, 61.02),
        ("Llama3.3-70B", 70.55, 141.11, 131.42),
        ("Qwen3-30B-A3B", 30.53, 61.06, 56.87),
        ("Qwen3-235B-A22B", 235.09, 470.19, 437.90),
    ],
)
def test_sizes_match_the_published_ones(name: str, billions: float, gigabytes: float, gibibytes: float) -> None:
    model = find(name)
    assert round(parameters(model) / 1e9, 2) == billions
    assert round(weights_bytes(model, "bf16") / 1e9, 2) == gigabytes
    assert round(weights_bytes(model, "bf16") / 2**30, 2) == gibibytes


def test_qwen3_8b_by_hand() -> None:
    model = find("Qwen3-8B")
    layer = 4096 * 128 * (2 * 32 + 2 * 8) + 2 * 128 + 3 * 4096 * 12288 + 2 * 4096
    assert layer_parameters(model) == (layer,) * 36
    assert parameters(model) == 36 * layer + 2 * 151936 * 4096 + 4096 == 8_190_735_360


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("Qwen2.5-7B", 7_615_616_512),
        ("Qwen2.5-72B", 72_706_203_648),
        ("Qwen3-30B-A3B", 30_532_122_624),
        ("Llama3.3-70B", 70_553_706_496),
        ("Mixtral-8x7B", 46_702_792_704),
    ],
)
def test_counts_equal_those_of_the_published_checkpoints(name: str, count: int) -> None:
    assert parameters(find(name)) == count


def test_latent_attention_and_dense_layers_give_deepseeks_671_billion() -> None:
    model = find("DeepSeek-V3")
    assert round(parameters(model) / 1e9, 1) == 671.0
    assert round(active_parameters(model) / 1e9, 1) == 37.6
    layers = layer_parameters(model)
    assert layers[0] == layers[2] < layers[3] == layers[60]


def test_active_parameters() -> None:
    assert round(active_parameters(find("Qwen3-235B-A22B")) / 1e9, 1) == 22.2
    dense = find("Qwen3-14B")
    assert active_parameters(dense) == parameters(dense)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Qwen2.5-14B", 196608), ("Qwen3-8B", 147456), ("Qwen3-235B-A22B", 192512), ("DeepSeek-V3", 70272)],
)
def test_kv_cache_bytes_per_token(name: str, expected: int) -> None:
    assert kv_bytes_per_token(find(name), "bf16") == expected


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32", "fp8"])
def test_gradient_buckets_sum_to_the_weights(name: str, dtype: str) -> None:
    model = find(name)
    buckets = layer_gradients(model, dtype)
    assert len(buckets) == model.layers + 2
    assert sum(buckets) == weights_bytes(model, dtype)


def test_gradient_buckets_come_in_backward_order() -> None:
    model = find("DeepSeek-V3")
    head, *layers, embedding = layer_gradients(model, "fp32")
    assert embedding == 4 * 129280 * 7168
    assert head == embedding + 4 * 7168
    assert layers == [4 * count for count in reversed(layer_parameters(model))]
    assert layers[-1] < layers[0], "the dense layers come first in the forward pass, so last here"


def test_there_are_a_dozen_models() -> None:
    assert len(ALL) == 12


def test_find_ignores_case_and_names_the_nearest() -> None:
    assert find("qwen3-8b") is find(" QWEN3-8B")
    with pytest.raises(ModelError, match=r"no model 'Qwen3-9B'; did you mean 'Qwen3-8B'\?"):
        find("Qwen3-9B")
    with pytest.raises(ModelError, match=r"known models: .*Mixtral-8x7B"):
        find("zzz")


def test_unknown_dtype() -> None:
    with pytest.raises(ModelError, match="no data type 'int3'; known: bf16, fp16, fp32, fp8"):
        dtype_bytes("int3")
