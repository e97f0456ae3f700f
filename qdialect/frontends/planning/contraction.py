"""Convolutions and matrix products of quantized numbers: weights, and sums before their result is quantized."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qdialect.arithmetic import Multiplier, real_multiplier
from qdialect.arithmetic.choices import I16Rounding
from qdialect.dialect import DequantizeOp, I16Conv2DOp, I16DenseOp, I16RequantizeOp, RequantizeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, NoAlternativeError, Shape, UnsupportedError, require, required
from qdialect.frontends.planning import tensors
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value, channels_last
from qdialect.ir._mlir import ir

# Weights of convolutions and matrix products, known or given at run time.

LARGEST_BIAS = 2**31 - 1
"""In units of the accumulator."""


def sums_fit(right: tensors.Quantized, axes: Sequence[int]) -> bool:
    """Whether 32 bits hold the sums over `axes` of all products of 8-bit data with `right` and a bias.

    Beyond them integers wrap around, where a framework computes in float32.
    """
    largest, most = 255, LARGEST_BIAS // 2
    if math.prod(right.shape[axis] for axis in axes) * largest * largest <= most:
        return True
    values = right.values.data
    if values is None:
        return False
    points = np.array(right.zero_points, np.int64)
    if len(points) > 1:
        points = points.reshape([-1 if axis == right.axis else 1 for axis in range(values.ndim)])
    return int(np.abs(values.astype(np.int64) - points).sum(axis=tuple(axes)).max()) * largest <= most


def check_sums(right: tensors.Quantized, axes: Sequence[int]) -> None:
    """Raise `NoAlternativeError` unless `sums_fit`: in a QDQ group ONNX Runtime wraps around, or adds in float32."""
    if not sums_fit(right, axes):
        raise NoAlternativeError("sums of products must fit into 32 bits")


@dataclass(frozen=True)
class Weight:
    """Constant weights with the output channels first, scales and zero points by tensor or by output channel."""

    values: Array
    scales: tensors.Floats
    zero_points: tensors.Integers

    @property
    def shape(self) -> Shape:
        """Its extents."""
        return self.values.shape

    def centered(self) -> Array:
        """Less their zero points, as i8; raises `UnsupportedError` where that does not hold them."""
        points = np.array(self.zero_points, np.int16).reshape(-1, *(1,) * (self.values.ndim - 1))
        centered = self.values - points
        low, high = int(centered.min()), int(centered.max())
        require(-128 <= low <= high <= 127, f"weight less its zero point must be i8, but is in [{low}, {high}]")
        return centered.astype(np.int8)

    def emit(self, emitter: Emitter, shape: Shape) -> ir.Value:
        """The weights with another shape of the same number of elements."""
        return emitter.constant(self.values.reshape(shape))


@dataclass(frozen=True)
class RunTimeWeight:
    """Weights that are computed or given at run time, in the model's order: output channels, input channels, window."""

    value: Value
    scales: tensors.Floats
    zero_points: tensors.Integers

    @property
    def shape(self) -> Shape:
        """Its extents as those of `Weight`, with the input channels last."""
        return tuple(self.value.shape[axis] for axis in channels_last(len(self.value.shape)))

    def emit(self, emitter: Emitter, shape: Shape) -> ir.Value:
        """As `Weight.emit`."""
        return emitter.reshape(emitter.last(self.value), shape)


def run_time_weight(source: tensors.Quantized, rank: int) -> RunTimeWeight:
    """Weights of `rank` dimensions, by one scale or one for each output channel; raises as `ordered_weight`."""
    _check(source, rank, 0)
    return RunTimeWeight(source.values, source.scales, source.zero_points)


def ordered_weight(source: tensors.Quantized, order: tuple[int, ...], channel_axis: int) -> Weight:
    """Constant weights with their dimensions in `order`; scales by channel lie along `channel_axis` of the model's.

    Raises `UnsupportedError` where no contraction can read them.
    """
    values = required(source.values.data, "weight must be constant")
    _check(source, len(order), channel_axis)
    return Weight(np.ascontiguousarray(values.transpose(order)), source.scales, source.zero_points)


def _check(source: tensors.Quantized, rank: int, channel_axis: int) -> None:
    shape = source.shape
    require(source.values.element in tensors.EIGHT_BIT, f"weight must be i8 or ui8, but got {source.values.element}")
    require(len(shape) == rank, f"weight must have {rank} dimensions, but got {len(shape)}")
    require(min(shape) >= 1, f"weight shape must not be empty, but got {list(shape)}")
    if len(source.scales) > 1:
        require(source.axis == channel_axis, f"weight scales must lie along axis {channel_axis}, but got {source.axis}")


# A convolution or matrix product of quantized numbers, before anyone asks how its result is quantized.

Accumulate = Callable[[Emitter, Array | None], ir.Value]
"""Builds i32 accumulators, their channels last, to which an i32 bias is added."""
Finish = Callable[[Emitter, ir.Value], Emitted]
"""Brings what has the accumulators' shape to the model's."""


@dataclass(frozen=True, eq=False)
class Contraction(tensors.F32Tensor):
    """f32 values ``accumulator * s_x * s_w + bias``.

    The sum of integers is exact.  A bias is either i32, in units of the accumulator, or f32: where it counts whole
    units it is a part of the sum; otherwise it is added to the f32 values.
    """

    data: tensors.Quantized
    scales: tensors.Floats
    """Of the weights."""
    bias: Array | None
    accumulate: Accumulate
    finish: Finish

    @property
    def _accumulator_scales(self) -> Array:
        return accumulator_scales(self.data, self.scales)

    def _whole_bias(self) -> Array | None:
        """The bias in units of the accumulator, None where it is not a whole number of them."""
        if self.bias is None or self.bias.dtype == np.int32:
            return self.bias
        with np.errstate(all="ignore"):
            counted = self.bias.astype(np.float64) / self._accumulator_scales.astype(np.float64)
        rounded = np.rint(counted)
        # The other half of the range is for the sums.
        holds = np.array_equal(counted, rounded) and bool(np.all(np.abs(rounded) <= LARGEST_BIAS // 2))
        return rounded.astype(np.int32) if holds else None

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        whole = self._whole_bias()
        if to.element not in tensors.EIGHT_BIT or (self.bias is not None and whole is None):
            return super()._quantized(plan, name, to)

        def emit(emitter: Emitter) -> Emitted:
            accumulators = self.accumulate(emitter, whole)
            how = {"output_scale": to.scale, "output_zero_point": to.zero_point, **to.profile.rescale}
            scales = {"input_scale": self.data.scales[0], "weight_scales": self.scales}
            axis = len(shape_of(accumulators.type)) - 1
            requantized = emitter.build(RequantizeOp, accumulators, element=to.element, axis=axis, **scales, **how)
            return self.finish(emitter, requantized)

        return tensors.limit(plan, name, plan.compute(name, self.shape, to.element, emit), to)

    def accumulators(self, plan: tensors.Plan, name: str) -> Value:
        """The i32 accumulators, an i32 bias among them."""
        bias = self._whole_bias()
        return plan.compute(
            name, self.shape, "i32", lambda emitter: self.finish(emitter, self.accumulate(emitter, bias))
        )

    def _f32(self, plan: tensors.Plan, name: str) -> Value:
        whole = self.bias if self.bias is not None and self.bias.dtype == np.int32 else None
        added = None if whole is not None else self.bias

        def emit(emitter: Emitter) -> Emitted:
            accumulators = self.accumulate(emitter, whole)
            shape, scales = shape_of(accumulators.type), tuple(map(float, self._accumulator_scales))
            parameters = {"scales": scales, "zero_points": (0,), "axis": len(shape) - 1}
            f32 = emitter.build(DequantizeOp, accumulators, element="f32", **parameters)
            if added is not None:
                f32 = emitter.f32("addf", f32, emitter.constant(added))
            return self.finish(emitter, f32)

        return plan.compute(name, self.shape, "f32", emit)


# Sums of 16-bit data and 8-bit weights.
#
# ``sum (x - z) w = sum x' w - z' sum w`` with the signed words x' = x - o and z' = z - o, where o is 2^15 for ui16 and
# else 0: the sum of words is exact, and the last term is a part of the bias.  It is scaled once, in float64; frameworks
# add up rounded float32 products instead, so that a quantized value may differ by one.

_LARGEST_FACTOR = 2.0**14


@dataclass(frozen=True, eq=False)
class _OfWords(Value):
    """ui16 values with the signed words that they are computed from."""

    words: Value = field(kw_only=True)


def signed_words(emitter: Emitter, value: Value, hold: Callable[[Value], ir.Value]) -> ir.Value:
    """The signed words of 16-bit values; `hold` gives a value with the order of dimensions that is wanted."""
    if isinstance(value, _OfWords):
        return hold(value.words)
    held = hold(value)
    return held if value.element == "i16" else _other_sign(emitter, emitter.convert("tensor.bitcast", held, "i16"))


_EXACT_TERMS = 256
"""Up to so many, float32 sums have the order of ONNX Runtime's, and so its bits; of more, sums of words are nearer."""


def check_terms_of_words(terms: int) -> None:
    """Raise `UnsupportedError` where sums of 16-bit data are better computed in float32."""
    require(terms > _EXACT_TERMS, f"16-bit data must be summed up over more than {_EXACT_TERMS} terms, but got {terms}")


def word_sums(
    emitter: Emitter,
    op_class: type[I16Conv2DOp | I16DenseOp],
    words: ir.Value,
    weight: Array,
    parameters: tuple[str, int],
    bias: Array | None,
    **attributes: Any,
) -> ir.Value:
    """``sum (x - z) w + bias`` of words and i8 weights [O, ...]; `parameters` are the data's element and zero point."""
    start = -signed_word(*parameters) * weight.reshape(len(weight), -1).sum(axis=1, dtype=np.int64)
    start = start if bias is None else start + bias
    magnitudes = np.abs(weight.astype(np.int64)).reshape(len(weight), -1).sum(axis=1)
    fits = bool(np.all((magnitudes << 15) + np.abs(start) < 2**31))
    element, dtype = ("i32", np.int32) if fits else ("i64", np.int64)
    constant = emitter.constant(start.astype(dtype)) if start.any() else None
    return emitter.build(op_class, words, emitter.constant(weight), constant, element=element, **attributes)


@dataclass(frozen=True, eq=False)
class WordContraction(Contraction):
    """A contraction of 16-bit data that a quantization reads: `accumulate` builds `word_sums`."""

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        whole = self._whole_bias()
        require(self.bias is None or whole is not None, "bias must be a whole number of the accumulators' units")
        largest = max(real_multiplier(self.data.scales[0], self.scales, to.scale, Multiplier.F64))
        require(largest < _LARGEST_FACTOR, f"scale of the sums must be below 2^14 output scales, but is {largest}")
        require(to.element in tensors.SIXTEEN_BIT, f"output of 16-bit data must be i16 or ui16, but is {to.element}")
        point, low, high = (signed_word(to.element, one) for one in (to.zero_point, to.minimum, to.maximum))
        how: dict[str, Any] = {
            "input_scale": self.data.scales[0],
            "weight_scales": self.scales,
            "output_scale": to.scale,
            "output_zero_point": point,
            "output_min": low,
            "output_max": high,
            "rounding": I16Rounding.F64_EVEN,
            "multiplier": Multiplier.F64,
        }

        def emit(emitter: Emitter) -> Emitted:
            words = emitter.build(I16RequantizeOp, self.accumulate(emitter, whole), element="i16", **how)
            return self.finish(emitter, words)

        words = plan.compute(name, self.shape, "i16", emit)
        if to.element == "i16":
            return words

        def emit_unsigned(emitter: Emitter) -> Emitted:
            held, is_channels_last = emitter.either(words)
            return emitter.convert("tensor.bitcast", _other_sign(emitter, held), "ui16"), is_channels_last

        return plan.add(_OfWords(name, self.shape, to.element, emission=emit_unsigned, words=words))

    def accumulators(self, plan: tensors.Plan, name: str) -> Value:
        raise UnsupportedError("sums of 16-bit data must be quantized")

    def _f32(self, plan: tensors.Plan, name: str) -> Value:
        raise UnsupportedError("sums of 16-bit data must be quantized")


def signed_word(element: str, number: int) -> int:
    """A 16-bit number as its word."""
    return number - (2**15 if element == "ui16" else 0)


def _other_sign(emitter: Emitter, words: ir.Value) -> ir.Value:
    highest = emitter.constant(np.broadcast_to(np.int16(-(2**15)), shape_of(words.type)))
    return emitter.upstream("arith.xori", words, highest)


# Shared by contractions.


def accumulator_scales(data: tensors.Quantized, scales: tensors.Floats) -> Array:
    """The scale of the accumulators of each output channel: s_x * s_w in float32; `scales` are those of the weights."""
    return np.float32(data.scales[0]) * np.array(scales, dtype=np.float32)


def accumulator_attributes(
    data: tensors.Quantized, weight: Weight | RunTimeWeight | tensors.Quantized
) -> Mapping[str, Any]:
    """The scales and zero points of an op that multiplies `data` and `weight`."""
    points = weight.zero_points
    return {
        "input_scale": data.scales[0],
        "input_zero_point": data.zero_points[0],
        "weight_scales": weight.scales,
        "weight_zero_points": points[:1] if len(set(points)) == 1 else points,
    }
