"""Decoders of the package transformers, small and with drawn weights: their first tokens, and one token with caches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn

from tools.zoo.networks.language import eager, spread
from tools.zoo.networks.network import Array, Built, Draw, Network
from tools.zoo.packages import vision_package
from tools.zoo.tensors import seed

_LAYERS, _HEADS, _KEY_HEADS = 2, 8, 2
_POSITIONS = 256
_WINDOW = 16


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


def _llama(package: Any, **sizes: int) -> Any:
    return package.LlamaForCausalLM(eager(package.LlamaConfig(**sizes)))


def _qwen(package: Any, **sizes: int) -> Any:
    """Norms of queries and keys, and biases."""
    return package.Qwen3ForCausalLM(eager(package.Qwen3Config(**sizes, attention_bias=True)))


def _gemma(package: Any, **sizes: int) -> Any:
    """Scaled embeddings, GeGLU, softcaps, and a window in every other layer."""
    configuration = package.Gemma2Config(**sizes, sliding_window=_WINDOW, query_pre_attn_scalar=sizes["head_dim"])
    return package.Gemma2ForCausalLM(eager(configuration))


def _phi(package: Any, **sizes: int) -> Any:
    """One product for queries, keys and values, and another for both parts of the gate."""
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    positions = {"original_max_position_embeddings": sizes["max_position_embeddings"]}
    return package.Phi3ForCausalLM(eager(package.Phi3Config(**sizes, **tokens, **positions)))


def _mixtral(package: Any, **sizes: int) -> Any:
    """Two of four experts for each token; grouped products of PyTorch have no kernel in an exported program."""
    configuration = package.MixtralConfig(**sizes, num_local_experts=4, experts_implementation="batched_mm")
    return package.MixtralForCausalLM(eager(configuration))


def _gpt_oss(package: Any, **sizes: int) -> Any:
    """Two of four experts for each token, a sink of each head's softmax, and a window in every other layer."""
    configuration = package.GptOssConfig(**sizes, num_local_experts=4, num_experts_per_tok=2, sliding_window=_WINDOW)
    return package.GptOssForCausalLM(eager(configuration))


def _sizes(is_small: bool) -> tuple[int, int, int]:
    """Width, vocabulary and length."""
    return (64, 200, 16) if is_small else (512, 3000, 64)


def _model(family: Callable[..., Any], width: int, vocabulary: int) -> Any:
    seed()
    model = family(
        vision_package("transformers"),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=_LAYERS,
        num_attention_heads=_HEADS,
        num_key_value_heads=_KEY_HEADS,
        head_dim=width // _HEADS,
        vocab_size=vocabulary,
        max_position_embeddings=_POSITIONS,
    )
    return spread(model).eval()


def _built(family: Callable[..., Any], is_step: bool, is_small: bool) -> Built:
    width, vocabulary, length = _sizes(is_small)
    past = (_KEY_HEADS, length, width // _HEADS)
    draw = _draw(vocabulary, 1, past) if is_step else _draw(vocabulary, length)
    return Built(_Decoder(_model(family, width, vocabulary)).eval(), draw)


def _built_whole(family: Callable[..., Any], window: int, is_step: bool, is_small: bool) -> Built:
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


_FAMILIES: dict[str, Callable[..., Any]] = {
    "llama": _llama,
    "qwen": _qwen,
    "gemma": _gemma,
    "phi": _phi,
    "mixtral": _mixtral,
}

# onnxruntime-genai's builder has no Mixtral.
_BUILT_BY_GENAI: dict[str, tuple[Callable[..., Any], int]] = {
    **{name: (_FAMILIES[name], 0) for name in ("llama", "qwen", "phi")},
    "gemma": (_gemma, _WINDOW),
    "gpt_oss": (_gpt_oss, _WINDOW),
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
