"""Operators of `com.microsoft` in float64, by the formulas of ONNX Runtime's contrib operators."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from qdialect.bench.truth import traced
from qdialect.support.interface import Array

Result = tuple[Array, ...]


# Quantization of arrays in float64.


def along(values: Array, data: Array, axis: int) -> Array:
    """`values` of a quantization parameter, shaped to meet `data` along `axis`."""
    if values.size == 1:
        return values.reshape(())
    return values.reshape([-1 if index == axis % data.ndim else 1 for index in range(data.ndim)])


def dequantized(data: Array, scale: Array, zero_point: Array | None, axis: int = 1) -> Array:
    """scale * (quantized value - zero point)."""
    zero = np.zeros(()) if zero_point is None else along(zero_point.astype(np.float64), data, axis)
    return (data.astype(np.float64) - zero) * along(np.asarray(scale, np.float64), data, axis)


def positions(data: Array, scale: Array, zero_point: Array, axis: int = 1) -> Array:
    """data / scale + zero point: where data lies among the quantized values."""
    quotients = data / along(np.asarray(scale, np.float64), data, axis)
    return quotients + along(zero_point.astype(np.float64), data, axis)


def quantized(data: Array, scale: Array, zero_point: Array, axis: int = 1) -> Array:
    """clamp(round half to even(data / scale) + zero point)."""
    rounded = np.rint(data / along(np.asarray(scale, np.float64), data, axis))
    bounds = np.iinfo(zero_point.dtype)
    shifted = rounded + along(zero_point.astype(np.float64), data, axis)
    return np.clip(shifted, bounds.min, bounds.max).astype(zero_point.dtype)


class Quantizing(OpRun):
    """An operator of ONNX whose result is quantized."""

    def quantize(self, data: Array, scale: Array, zero_point: Array, axis: int = 1) -> Array:
        """As `quantized`; the tensor is noted under the name of the node's first output."""
        name: str = self.onnx_node.output[0]
        return traced(name, positions(data, scale, zero_point, axis), quantized(data, scale, zero_point, axis))


class Contributed(OpRun):
    op_domain = "com.microsoft"


def _filled(inputs: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """With None for those at the end that a node leaves out."""
    return (*inputs, *[None] * (count - len(inputs)))


# The operators.


class _OfOne(Contributed, Quantizing):
    """A function of one quantized tensor; without a zero point the result has the type of the tensor."""

    def _run(self, *inputs: Any, **attributes: Any) -> Result:
        x, x_scale, x_zero, y_scale, y_zero = inputs if len(inputs) == 5 else (*inputs, None)
        zero_point = np.zeros((), x.dtype) if y_zero is None else y_zero
        return (self.quantize(self.exact(dequantized(x, x_scale, x_zero), attributes), y_scale, zero_point),)

    @abstractmethod
    def exact(self, x: Array, attributes: dict[str, Any]) -> Array:
        """The function."""


class QLinearAdd(Contributed, Quantizing):
    def _run(self, *inputs: Array) -> Result:
        a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero = inputs
        return (self.quantize(dequantized(a, a_scale, a_zero) + dequantized(b, b_scale, b_zero), c_scale, c_zero),)


class QLinearMul(Contributed, Quantizing):
    def _run(self, *inputs: Array) -> Result:
        a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero = inputs
        return (self.quantize(dequantized(a, a_scale, a_zero) * dequantized(b, b_scale, b_zero), c_scale, c_zero),)


class QLinearSigmoid(_OfOne):
    def exact(self, x: Array, attributes: dict[str, Any]) -> Array:
        del attributes
        return 1 / (1 + np.exp(-x))


class QLinearLeakyRelu(_OfOne):
    def exact(self, x: Array, attributes: dict[str, Any]) -> Array:
        return np.where(x < 0, x * attributes.get("alpha", 0.01), x)


class QLinearSoftmax(_OfOne):
    def exact(self, x: Array, attributes: dict[str, Any]) -> Array:
        axis = attributes.get("axis", -1)
        # Before operator set 13 the softmax is that of all dimensions from the axis on.
        axes = (axis,) if attributes["opset"] >= 13 else tuple(range(axis % x.ndim, x.ndim))
        powers = np.exp(x - x.max(axes, keepdims=True))
        return powers / powers.sum(axes, keepdims=True)


class MatMulNBits(Contributed):
    """Rows are taken as they are, at every level."""

    def _run(self, rows: Array, packed: Array, scales: Array, *rest: Array | None, **attributes: Any) -> Result:
        zeros, groups, bias = (*rest, None, None, None)[:3]
        if groups is not None:
            raise NotImplementedError("MatMulNBits with g_idx")
        packed, scales = (one.reshape(attributes["N"], -1) for one in (packed, scales))
        middle = None if zeros is None else zeros.reshape(len(packed), -1)
        product = rows @ _of_blocks(packed, scales, middle, attributes["bits"])[:, : attributes["K"]].T
        return (product if bias is None else product + bias,)


def unpacked(packed: Array, bits: int) -> Array:
    """Unsigned values of 2, 4 or 8 bits, the first in the lowest bits of a byte, in float64."""
    parts = packed[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & ((1 << bits) - 1)
    unpacked: Array = parts.reshape(*packed.shape[:-1], -1).astype(np.float64)
    return unpacked


def _of_blocks(packed: Array, scales: Array, zeros: Array | None, bits: int) -> Array:
    """(quantized value - zero point) * scale of unsigned values, in blocks along the last dimension."""
    values = unpacked(packed, bits)
    size = values.shape[-1] // scales.shape[-1]
    middle = 1 << bits - 1 if zeros is None else unpacked(zeros, bits)[..., : scales.shape[-1]].repeat(size, -1)
    return (values - middle) * scales.repeat(size, -1)


class QLinearWhere(Contributed, Quantizing):
    def _run(self, *inputs: Array) -> Result:
        condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero = inputs
        chosen = np.where(condition, dequantized(x, x_scale, x_zero), dequantized(y, y_scale, y_zero))
        return (self.quantize(chosen, z_scale, z_zero),)


class QLinearAveragePool(_OfOne):
    def exact(self, x: Array, attributes: dict[str, Any]) -> Array:
        from onnx import helper
        from onnx.reference import ReferenceEvaluator

        is_channels_last = bool(attributes.get("channels_last", 0))
        names = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
        given = {name: attributes[name] for name in names if attributes.get(name) is not None}
        node = helper.make_node("AveragePool", ["x"], ["y"], **given)
        evaluator: Any = ReferenceEvaluator(node)
        (found,) = evaluator.run(None, {"x": np.moveaxis(x, -1, 1) if is_channels_last else x})
        return np.moveaxis(found, 1, -1) if is_channels_last else found


class QLinearGlobalAveragePool(_OfOne):
    def exact(self, x: Array, attributes: dict[str, Any]) -> Array:
        axes = tuple(range(1, x.ndim - 1)) if attributes.get("channels_last") else tuple(range(2, x.ndim))
        return x.mean(axes, keepdims=True)


class QLinearConcat(Contributed, Quantizing):
    def _run(self, y_scale: Array, y_zero: Array, *inputs: Array, **attributes: Any) -> Result:
        triples = (inputs[index : index + 3] for index in range(0, len(inputs), 3))
        parts = [dequantized(data, scale, zero_point) for data, scale, zero_point in triples]
        return (self.quantize(np.concatenate(parts, attributes["axis"]), y_scale, y_zero),)


class QGemm(Contributed, Quantizing):
    def _run(self, *inputs: Any, **attributes: Any) -> Result:
        a, a_scale, a_zero, b, b_scale, b_zero, c, scale, zero_point = _filled(inputs, 9)
        columns = 0 if attributes.get("transB") else 1
        left, right = dequantized(a, a_scale, a_zero), dequantized(b, b_scale, b_zero, columns)
        left = left.T if attributes.get("transA") else left
        found = left @ (right.T if attributes.get("transB") else right) * attributes.get("alpha", 1.0)
        if c is not None:
            found = found + c * attributes.get("alpha", 1.0) * np.asarray(a_scale, np.float64) * b_scale
        return (found if scale is None else self.quantize(found, scale, zero_point),)


class MatMulIntegerToFloat(Contributed):
    def _run(self, *inputs: Any) -> Result:
        a, b, a_scale, b_scale, a_zero, b_zero, bias = _filled(inputs, 7)
        product = dequantized(a, a_scale, a_zero) @ dequantized(b, b_scale, b_zero, -1)
        return (product if bias is None else product + bias,)


class DynamicQuantizeMatMul(Contributed):
    def _run(self, *inputs: Any) -> Result:
        a, b, b_scale, b_zero, bias = _filled(inputs, 5)
        product = rounded(a) @ dequantized(b, b_scale, b_zero, -1)
        return (product if bias is None else product + bias,)


class SkipLayerNormalization(Contributed):
    def _run(self, *inputs: Any, **attributes: Any) -> Result:
        data, skip, gamma, beta, bias = _filled(inputs, 5)
        total = data.astype(np.float64) + skip + (0 if bias is None else bias)
        centered = total - total.mean(-1, keepdims=True)
        variance = (centered**2).mean(-1, keepdims=True)
        normed = centered / np.sqrt(variance + attributes.get("epsilon", 1e-5)) * gamma + (0 if beta is None else beta)
        return normed, total.mean(-1, keepdims=True), 1 / np.sqrt(variance + attributes.get("epsilon", 1e-5)), total


class DynamicQuantizeLSTM(Contributed):
    """Data and hidden states are quantized dynamically: those of all time steps together, these for each one."""

    def _run(self, *inputs: Any, **attributes: Any) -> Result:
        x, w, r, bias, lengths, hidden, cell, _, w_scale, w_zero, r_scale, r_zero = inputs
        supported = lengths is None and not attributes.get("clip") and not attributes.get("activations")
        if not supported:
            raise NotImplementedError("DynamicQuantizeLSTM with lengths, a clip or activations of its own")
        batch, width = x.shape[1], r.shape[1]
        count = r.shape[0]
        states = [np.zeros((count, batch, width)) if one is None else one.astype(np.float64) for one in (hidden, cell)]
        total = np.zeros((count, 8 * width)) if bias is None else bias.astype(np.float64)
        found: list[tuple[Array, Array, Array]] = []
        for d in range(count):
            weights = dequantized(w[d], _of(w_scale, d), _of(w_zero, d), -1)
            recurrence = dequantized(r[d], _of(r_scale, d), _of(r_zero, d), -1)
            backwards = d == 1 or attributes.get("direction") == "reverse"
            gates = rounded(x) @ weights + total[d, : 4 * width] + total[d, 4 * width :]
            found.append(_lstm(gates, recurrence, states[0][d], states[1][d], backwards=backwards))
        sequence, last, cells = (np.stack(parts) for parts in zip(*found, strict=True))
        return sequence.transpose(1, 0, 2, 3), last, cells


def rounded(data: Array) -> Array:
    """Data after it was quantized dynamically and dequantized."""
    return dequantized(*of_range(data))


def of_range(data: Array) -> tuple[Array, Array, Array]:
    """Data quantized by the range of all of it, the scale and the zero point."""
    wide = data.astype(np.float64)
    low, high = min(0.0, float(wide.min())), max(0.0, float(wide.max()))
    scale = np.asarray((high - low) / 255 or 1.0)
    zero_point = np.clip(np.rint(-low / scale), 0, 255).astype(np.uint8)
    return quantized(wide, scale, zero_point), scale, zero_point


def _of(parameters: Array, direction: int) -> Array:
    return np.atleast_1d(parameters[direction])


def _lstm(
    gates: Array, recurrence: Array, hidden: Array, cell: Array, *, backwards: bool
) -> tuple[Array, Array, Array]:
    """The hidden states [T, B, H] and the last states [B, H]; gates i, o, f and c lie side by side."""
    states = np.zeros((*gates.shape[:2], hidden.shape[1]))
    steps = range(len(gates))
    for step in reversed(steps) if backwards else steps:
        parts = np.split(gates[step] + rounded(hidden) @ recurrence, 4, -1)
        inner, outer, kept = (1 / (1 + np.exp(-part)) for part in parts[:3])
        cell = kept * cell + inner * np.tanh(parts[3])
        hidden = states[step] = outer * np.tanh(cell)
    return states, hidden, cell


# Operators of decoders: normalization, attention with caches, experts.


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
        given = _filled(inputs, 16)
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


CONTRIB_OPERATORS = (
    *(QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax, QLinearWhere, QLinearConcat, QGemm),
    *(QLinearAveragePool, QLinearGlobalAveragePool, MatMulIntegerToFloat, DynamicQuantizeMatMul, DynamicQuantizeLSTM),
    *(SkipLayerNormalization, SimplifiedLayerNormalization, SkipSimplifiedLayerNormalization, MatMulNBits),
    *(GatherBlockQuantized, GroupQueryAttention, QMoE),
)
