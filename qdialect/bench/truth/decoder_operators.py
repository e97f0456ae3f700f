"""Operators of decoders of `com.microsoft` in float64: normalization, attention with caches, experts."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from qdialect.bench.truth.contrib_operators import Array, Contributed, Result, unpacked


def _normed(data: Array, gamma: Array, epsilon: float) -> tuple[Array, Array]:
    """data / sqrt(mean(data^2) + epsilon) * gamma, and the reciprocal of the root."""
    factor = 1 / np.sqrt((data**2).mean(-1, keepdims=True) + epsilon)
    return data * factor * gamma, factor


class SimplifiedLayerNormalization(OpRun):
    """Of the last dimension."""

    def _run(self, data: Array, gamma: Array, **attributes: Any) -> Result:
        if attributes.get("axis", -1) not in (-1, data.ndim - 1):
            raise NotImplementedError("SimplifiedLayerNormalization of several dimensions")
        return _normed(data.astype(np.float64), gamma, attributes.get("epsilon", 1e-5))


class SkipSimplifiedLayerNormalization(Contributed):
    """The same of a sum, which is a result, too."""

    def _run(self, data: Array, skip: Array, gamma: Array, bias: Array | None = None, **attributes: Any) -> Result:
        total = data.astype(np.float64) + skip + (0 if bias is None else bias)
        normed, factor = _normed(total, gamma, attributes.get("epsilon", 1e-5))
        return normed, np.zeros_like(factor), factor, total


def _of_blocks(packed: Array, scales: Array, zeros: Array | None, bits: int) -> Array:
    """(quantized value - zero point) * scale of unsigned values, in blocks along the last dimension."""
    values = unpacked(packed, bits)
    size = values.shape[-1] // scales.shape[-1]
    middle = 1 << bits - 1 if zeros is None else unpacked(zeros, bits)[..., : scales.shape[-1]].repeat(size, -1)
    return (values - middle) * scales.repeat(size, -1)


class GatherBlockQuantized(Contributed):
    """Rows of a table of bytes."""

    def _run(self, data: Array, indices: Array, scales: Array, zeros: Array | None = None, **attributes: Any) -> Result:
        is_known = data.dtype == np.uint8 and attributes.get("gather_axis", 0) == 0
        if not is_known or attributes.get("quantize_axis", 1) % data.ndim != data.ndim - 1:
            raise NotImplementedError("GatherBlockQuantized of other elements or along other dimensions")
        return (_of_blocks(data, scales.reshape(*data.shape[:-1], -1), zeros, attributes["bits"])[indices],)


class GroupQueryAttention(Contributed):
    """Of one sequence, with float32 caches, which hold all tokens or those of a window."""

    def _run(self, *inputs: Any, **attributes: Any) -> Result:
        given: tuple[Any, ...] = (*inputs, *[None] * (16 - len(inputs)))
        query, key, value, past_key, past_value, _, total, cosine, sine, positions, bias, sink, *more = given
        others = (positions, bias, attributes.get("smooth_softmax") or None, *more)
        has_caches = all(one is not None for one in given[3:5])
        is_known = query.shape[0] == 1 and has_caches and attributes.get("causal", 1)
        if not is_known or any(one is not None for one in others):
            raise NotImplementedError("GroupQueryAttention of several sequences, without caches, or with a bias")
        heads, shared, steps = attributes["num_heads"], attributes["kv_num_heads"], query.shape[1]
        if key is None:
            width = query.shape[2] // (heads + 2 * shared)
            query, key, value = np.split(query, [heads * width, (heads + shared) * width], -1)
        q, k, v = (_split(one, count) for one, count in ((query, heads), (key, shared), (value, shared)))
        end, window = int(total), attributes.get("local_window_size", -1)
        at = np.arange(end - steps, end, dtype=np.int64)
        if attributes.get("do_rotary"):
            q, k = (_turned(one, cosine[at], sine[at], attributes.get("rotary_interleaved", 0)) for one in (q, k))
        capacity = past_key.shape[2] if attributes.get("sliding_window_cache") else end
        before = _held(end - steps, capacity, window)
        k, v = (np.concatenate([past[0, :, :before], own], 1) for past, own in ((past_key, k), (past_value, v)))
        distance = at[:, None] - np.arange(end - steps - before, end, dtype=np.int64)
        is_seen = (distance >= 0) & ((window < 0) | (distance < window))
        every_k, every_v = (one.repeat(heads // shared, 0) for one in (k, v))
        result = _attended(q, every_k, every_v, is_seen, sink, attributes)
        caches = [one[None, :, one.shape[1] - _held(end, capacity, window) :] for one in (k, v)]
        return result.transpose(1, 0, 2).reshape(1, steps, -1), *caches


def _split(rows: Array, heads: int) -> Array:
    """[1, steps, heads * width] as [heads, steps, width]."""
    return rows[0].reshape(rows.shape[1], heads, -1).transpose(1, 0, 2)


def _turned(rows: Array, cosine: Array, sine: Array, interleaved: int) -> Array:
    """Pairs of numbers turned by the angles of their positions; the numbers behind them stay."""
    turned, kept = np.split(rows, [2 * cosine.shape[-1]], -1)
    pairs = (turned[..., ::2], turned[..., 1::2]) if interleaved else np.split(turned, 2, -1)
    found = pairs[0] * cosine - pairs[1] * sine, pairs[0] * sine + pairs[1] * cosine
    joined = np.stack(found, -1).reshape(turned.shape) if interleaved else np.concatenate(found, -1)
    return np.concatenate([joined, kept], -1)


def _held(total: int, capacity: int, window: int) -> int:
    """How many of `total` tokens a cache holds; a full one drops as many as leave it a window."""
    dropped = capacity - window + 1
    return total if total <= capacity else total - -(-(total - capacity) // dropped) * dropped


def _attended(q: Array, k: Array, v: Array, is_seen: Array, sink: Array | None, attributes: Any) -> Array:
    scores = q @ k.transpose(0, 2, 1) * (attributes.get("scale") or q.shape[-1] ** -0.5)
    softcap = attributes.get("softcap", 0.0)
    scores = np.where(is_seen, np.tanh(scores / softcap) * softcap if softcap else scores, -np.inf)
    least = np.full((q.shape[0], 1, 1), -np.inf) if sink is None else sink.reshape(-1, 1, 1)
    largest = np.maximum(scores.max(-1, keepdims=True), least)
    powers = np.exp(scores - largest)
    return powers @ v / (powers.sum(-1, keepdims=True) + np.exp(least - largest))


class QMoE(Contributed):
    """Of experts with a SwiGLU whose gates and other numbers take turns."""

    def _run(self, rows: Array, router: Array, *inputs: Any, **attributes: Any) -> Result:
        packed, scales, bias, packed_down, scales_down, bias_down, *others = inputs
        is_known = attributes.get("activation_type") == "swiglu" and attributes.get("swiglu_fusion") == 1
        is_known = is_known and attributes.get("normalize_routing_weights") == 1
        is_known = is_known and not attributes.get("use_sparse_mixer") and scales.ndim == packed.ndim
        if not is_known or any(one is not None for one in others):
            raise NotImplementedError("QMoE of other experts")
        bits = attributes.get("expert_weight_bits", 4)
        up, down = (_of_blocks(*pair, None, bits) for pair in ((packed, scales), (packed_down, scales_down)))
        flat = rows.reshape(-1, rows.shape[-1])
        found = np.zeros_like(flat)
        for row, logits in enumerate(router):
            chosen = np.argsort(-logits, kind="stable")[: attributes["k"]]
            shares = np.exp(logits[chosen] - logits[chosen].max())
            for share, expert in zip(shares / shares.sum(), chosen, strict=True):
                inner = _swiglu(up[expert] @ flat[row] + _bias(bias, expert), attributes)
                found[row] += share * (down[expert] @ inner + _bias(bias_down, expert))
        return (found.reshape(rows.shape),)


def _bias(bias: Array | None, expert: int) -> Array | float:
    return 0.0 if bias is None else bias[expert]


def _swiglu(data: Array, attributes: Any) -> Array:
    limit = attributes.get("swiglu_limit", np.inf)
    gate, other = np.minimum(data[::2], limit), np.clip(data[1::2], -limit, limit)
    sigmoid = 1 / (1 + np.exp(-attributes.get("activation_alpha", 1.0) * gate))
    return gate * sigmoid * (other + attributes.get("activation_beta", 0.0))


DECODER_OPERATORS = (
    *(SimplifiedLayerNormalization, SkipSimplifiedLayerNormalization),
    *(GatherBlockQuantized, GroupQueryAttention, QMoE),
)
