"""Language models as far as traffic needs them: how many parameters sit where, and how many bytes they make.

The counts are those of the decoder-only transformer (Vaswani et al. 2017; gated MLP: Shazeer 2020; grouped-query
attention: Ainslie et al. 2023; latent attention: DeepSeek-V2 technical report, section 2.1), norms and biases
included. Embedding and output head are separate matrices, as in all models of the data file.
"""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

Dtype = Literal["bf16", "fp16", "fp32", "fp8"]
DTYPE_BYTES: Mapping[Dtype, int] = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}


class ModelError(ValueError):
    """A model or data type that is not known; the message names the nearest one that is."""


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention: ranks of the compressed queries and keys/values, width of the rotary part."""

    query_rank: int
    kv_rank: int
    rope_dim: int


@dataclass(frozen=True, slots=True)
class Model:
    """A model configuration; the fields are explained at the head of data/models.toml."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    experts: int = 0
    top_k: int = 0
    shared_experts: int = 0
    dense_layers: int = 0
    dense_ffn: int = 0
    qkv_bias: bool = False
    qk_norm: bool = False
    mla: LatentAttention | None = None


@functools.cache
def models() -> Mapping[str, Model]:
    """All known models by name, in the order of the data file."""
    text = resources.files("workloads").joinpath("data/models.toml").read_text(encoding="utf-8")
    return {name: _model(name, fields) for name, fields in tomllib.loads(text).items()}


def find(name: str) -> Model:
    """The model of that name, upper and lower case alike. Raises ModelError with the nearest known name."""
    by_folded = {known.casefold(): model for known, model in models().items()}
    try:
        return by_folded[name.strip().casefold()]
    except KeyError:
        near = difflib.get_close_matches(name.casefold(), by_folded, n=1)
        hint = f"did you mean {by_folded[near[0]].name!r}?" if near else f"known models: {', '.join(models())}"
        raise ModelError(f"no model {name!r}; {hint}") from None


def dtype_bytes(dtype: str) -> int:
    """Bytes of one element. Raises ModelError that lists the known types."""
    for known, size in DTYPE_BYTES.items():
        if known == dtype:
            return size
    raise ModelError(f"no data type {dtype!r}; known: {', '.join(DTYPE_BYTES)}")


def parameters(model: Model) -> int:
    """P: parameters of all layers, the embedding and the output head."""
    return sum(layer_parameters(model)) + embedding_parameters(model) + head_parameters(model)


def active_parameters(model: Model) -> int:
    """Parameters that one token meets: with experts, the `top_k` it is routed to and the shared ones."""
    layers = (_layer(model, index, model.top_k) for index in range(model.layers))
    return sum(layers) + embedding_parameters(model) + head_parameters(model)


def weights_bytes(model: Model, dtype: str) -> int:
    """P times the bytes of an element."""
    return parameters(model) * dtype_bytes(dtype)


def embedding_parameters(model: Model) -> int:
    """Parameters of the embedding: V h."""
    return model.vocab * model.hidden


def head_parameters(model: Model) -> int:
    """Parameters of the output head and of the norm before it: V h + h."""
    return model.vocab * model.hidden + model.hidden


def layer_parameters(model: Model) -> tuple[int, ...]:
    """Parameters of each layer in forward order, embedding and output head not included.

    A layer has 2 h (heads + kv_heads) head_dim for attention and 3 h ffn for each gated MLP, h E for the router, and
    two norms of h.
    """
    return tuple(_layer(model, index, model.experts) for index in range(model.layers))


def layer_gradients(model: Model, dtype: str) -> tuple[int, ...]:
    """Gradient buckets in bytes in the order in which a backward pass makes them: head, last layer, ..., embedding.

    L + 2 buckets, whose sum is `weights_bytes(model, dtype)` exactly.
    """
    counts = (head_parameters(model), *reversed(layer_parameters(model)), embedding_parameters(model))
    size = dtype_bytes(dtype)
    return tuple(count * size for count in counts)


def kv_bytes_per_token(model: Model, dtype: str) -> int:
    """Bytes that a token adds to the key/value cache: 2 L kv_heads head_dim d, with MLA L (kv_rank + rope_dim) d."""
    plain = 2 * model.kv_heads * model.head_dim
    width = model.mla.kv_rank + model.mla.rope_dim if model.mla else plain
    return model.layers * width * dtype_bytes(dtype)


def _model(name: str, fields: Mapping[str, Any]) -> Model:
    latent = fields.get("mla")
    return Model(name, **{**fields, "mla": LatentAttention(**latent) if latent else None})


def _layer(model: Model, index: int, routed: int) -> int:
    return _attention(model) + _mlp(model, index, routed) + 2 * model.hidden


def _attention(model: Model) -> int:
    if model.mla:
        return _latent_attention(model, model.mla)
    matrices = 2 * model.hidden * (model.heads + model.kv_heads) * model.head_dim
    biases = (model.heads + 2 * model.kv_heads) * model.head_dim if model.qkv_bias else 0
    return matrices + biases + (2 * model.head_dim if model.qk_norm else 0)


def _latent_attention(model: Model, mla: LatentAttention) -> int:
    """Down- and up-projection of queries and of keys/values, the output projection, and the norms between."""
    queries = mla.query_rank * (model.hidden + model.heads * (model.head_dim + mla.rope_dim))
    keys_values = model.hidden * (mla.kv_rank + mla.rope_dim) + mla.kv_rank * 2 * model.heads * model.head_dim
    output = model.heads * model.head_dim * model.hidden
    return queries + keys_values + output + mla.query_rank + mla.kv_rank


def _mlp(model: Model, layer: int, routed: int) -> int:
    """The MLP part of a layer, `routed` of its experts counted."""
    if not model.experts:
        return 3 * model.hidden * model.ffn
    if layer < model.dense_layers:
        return 3 * model.hidden * model.dense_ffn
    return 3 * model.hidden * model.ffn * (routed + model.shared_experts) + model.hidden * model.experts
