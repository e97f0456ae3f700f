"""Decoders of the package transformers, small and with drawn weights: their first tokens, and one token with caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn

from tools.zoo.networks.language import SPECIAL, transformer
from tools.zoo.networks.network import Array, Built, Draw, Network
from tools.zoo.packages import vision_package

_LAYERS, _HEADS, _KEY_HEADS = 2, 8, 2
_POSITIONS = 256
_WINDOW = 16


@dataclass(frozen=True)
class _Family:
    """Decoders by the start of the names of their classes, and the fields of configurations that only these have."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    of_head: tuple[str, ...] = ()
    """Those that are the width of a head."""


class _Decoder(nn.Module):
    """Token ids, then keys and values of each layer where there are such; logits and grown caches."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = vision_package("transformers").DynamicCache()
        for layer, (keys, values) in enumerate(zip(past[::2], past[1::2], strict=True)):
            cache.update(keys, values, layer)
        found = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
        return (found.logits, *(one for layer in cache.layers for one in (layer.keys, layer.values)))


def _sizes(is_small: bool) -> tuple[int, int, int]:
    """Width, vocabulary and length."""
    return (64, 200, 16) if is_small else (512, 3000, 64)


def _model(family: _Family, width: int, vocabulary: int) -> nn.Module:
    fields = {
        "hidden_size": width,
        "intermediate_size": 3 * width,
        "num_hidden_layers": _LAYERS,
        "vocab_size": vocabulary,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _KEY_HEADS,
        "max_position_embeddings": _POSITIONS,
        **dict.fromkeys(("head_dim", *family.of_head), width // _HEADS),
        **family.fields,
    }
    return transformer(f"{family.kind}ForCausalLM", f"{family.kind}Config", fields).eval()


def _built(family: _Family, is_step: bool, is_small: bool) -> Built:
    width, vocabulary, length = _sizes(is_small)
    past = (_KEY_HEADS, length, width // _HEADS)
    draw = _draw(vocabulary, 1, past) if is_step else _draw(vocabulary, length)
    return Built(_Decoder(_model(family, width, vocabulary)).eval(), draw)


def _built_whole(family: _Family, window: int, is_step: bool, is_small: bool) -> Built:
    """The network as its package has it, and the inputs that onnxruntime-genai's builder gives it.

    ONNX Runtime's attention takes heads whose width is a multiple of 16, and caches of a window that hold all of it.
    """
    width, vocabulary, length = _sizes(is_small)
    width = max(width, 16 * _HEADS)
    count, past = (1, length) if is_step else (length, 0)
    # All keys, then all values; the windows are those of even layers.
    lengths = [window if window and layer % 2 == 0 else past for layer in range(_LAYERS)] * 2

    def draw(batch: int, seed: int) -> tuple[Array, ...]:
        (ids,) = _draw(vocabulary, count)(batch, seed)
        random = np.random.default_rng(seed)
        caches = [random.standard_normal((batch, _KEY_HEADS, n, width // _HEADS), np.float32) for n in lengths]
        return ids, np.ones((batch, past + count), np.int64), *caches

    return Built(_model(family, width, vocabulary), draw)


def _draw(vocabulary: int, length: int, past: tuple[int, ...] = ()) -> Draw:
    """Ids of shape (batch, `length`), and caches of shape (batch, *`past`)."""

    def draw(batch: int, seed: int) -> tuple[Array, ...]:
        random = np.random.default_rng(seed)
        ids = random.integers(0, vocabulary, (batch, length), np.int64)
        caches = [random.standard_normal((batch, *past), np.float32) for _ in range(2 * _LAYERS)] if past else []
        return ids, *caches

    return draw


_FAMILIES = {
    "llama": _Family("Llama"),
    # Norms of queries and keys, and biases.
    "qwen": _Family("Qwen3", {"attention_bias": True}),
    # Scaled embeddings, GeGLU, softcaps, and a window in every other layer.
    "gemma": _Family("Gemma2", {"sliding_window": _WINDOW}, ("query_pre_attn_scalar",)),
    # One product for queries, keys and values, and another for both parts of the gate.
    "phi": _Family("Phi3", {**SPECIAL, "original_max_position_embeddings": _POSITIONS}),
    # Two of four experts for each token; grouped products of PyTorch have no kernel in an exported program.
    "mixtral": _Family("Mixtral", {"num_local_experts": 4, "experts_implementation": "batched_mm"}),
}
# Two of four experts for each token, a sink of each head's softmax, and a window in every other layer.
_GPT_OSS = _Family("GptOss", {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": _WINDOW})

# onnxruntime-genai's builder has no Mixtral.
_BUILT_BY_GENAI = {
    **{name: (_FAMILIES[name], 0) for name in ("llama", "qwen", "phi")},
    "gemma": (_FAMILIES["gemma"], _WINDOW),
    "gpt_oss": (_GPT_OSS, _WINDOW),
}

_ENDS = {"": False, "_step": True}
NETWORKS = (
    *(
        Network(f"{name}{end}", partial(_built, family, is_step))
        for name, family in _FAMILIES.items()
        for end, is_step in _ENDS.items()
    ),
    *(
        Network(f"{name}_genai{end}", partial(_built_whole, family, window, is_step))
        for name, (family, window) in _BUILT_BY_GENAI.items()
        for end, is_step in _ENDS.items()
    ),
)
