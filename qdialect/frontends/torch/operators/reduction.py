"""Sums, products, extremes and variances over dimensions, and normalizations and softmax by them, in float32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.arithmetic.choices import SoftmaxArithmetic
from qdialect.arithmetic.expressions import Input, Number
from qdialect.dialect import F32MaxOp, F32SumOp, SoftmaxOp
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, axes_in, axis_in, require
from qdialect.frontends.building.op_builder import reduced, reduced_numbers
from qdialect.frontends.planning import tensors
from qdialect.frontends.planning.elementwise import element_type, value_of_tensor
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.reduction import affine, centred, mean_of, normalized, reduced_shape, reduced_value
from qdialect.frontends.torch.operators.contraction import f32_weight
from qdialect.frontends.torch.operators.plain import as_element, element_of_result
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports
from qdialect.frontends.torch.operators.tensors import Quantized
from qdialect.ir._mlir import ir

_SCALE = Input().where_positive(Input(), Number(1.0))
"""The largest size; 1 of zeros, and of a row with NaN."""
_NARROW = ("i1", "i8", "ui8", "i16")
"""Reduced as i32, of which the low bits are the same; of booleans there are extremes alone."""


@imports(
    *("amax.default", "amin.default", "max.default", "min.default", "prod.default", "prod.dim_int", "sum.default"),
    "sum.dim_IntList",
)
def _reduce(call: Call) -> Result:
    """Over some dimensions or all; integers in the type of the result, as which they wrap around."""
    source, element = call.tensor("self"), element_of_result(call)
    axes, keeps = axes_of(call, len(source.shape)), bool(call.argument("keepdim"))
    return reduce_over(call, as_element(call, source, element), axes, keeps, call.node.kind.split(".")[1])


def reduce_over(call: Call, source: tensors.Tensor, axes: Shape, keeps: bool, kind: str) -> tensors.Tensor:
    """The reduction `kind` (``"amax"``) over `axes`, which stay as extents of 1 where `keeps`."""
    shape, kind = reduced_shape(source.shape, axes, keeps), kind.removeprefix("a")
    element = element_type(source)
    if element in _NARROW:
        wide = _integers(call, as_element(call, source, "i32"), axes, keeps, kind)
        return as_element(call, wide, element)
    if element != "f32":
        return _integers(call, source, axes, keeps, kind)

    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        return reduced_numbers(emitter, kind, operands[0], axes, keeps) if axes else operands[0]

    return tensors.Computation(shape, (as_f32("self", source),), build, name=call.name)


def _integers(call: Call, source: tensors.Tensor, axes: Shape, keeps: bool, kind: str) -> Value:
    value = value_of_tensor(call, source)
    require(value.element in ("i32", "i64"), f"integers must be i32 or i64, but got {value.element}")
    if not axes:
        return value
    return reduced_value(call, value, kind, axes, keeps)


@imports("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def _quantifier(call: Call) -> Result:
    """Whether some element is not zero, or each: the largest or the smallest of their truth values."""
    truth = as_element(call, as_element(call, call.tensor("self"), "i1"), "i32")
    axes, keeps = axes_of(call, len(truth.shape)), bool(call.argument("keepdim"))
    kind = "max" if ".any." in call.node.kind else "min"
    # PyTorch gives booleans, but for uint8 its type of old: uint8.
    return as_element(call, _integers(call, truth, axes, keeps, kind), element_of_result(call))


def axes_of(call: Call, rank: int) -> Shape:
    """The dimensions that an operator names in ``dim``, ascending; all of `rank` where it names none."""
    given = call.argument("dim")
    dims = tuple(range(rank)) if given is None or given == () else call.dimensions("dim")
    axes = tuple(sorted(axes_in(dims, rank, "dim")))
    require(len(set(axes)) == len(axes), f"dim must have no dimension twice, but got {list(dims)}")
    return axes


@imports("var.correction", "var_mean.correction", "std.correction", "std_mean.correction")
def _variance(call: Call) -> Result:
    """``(sum(d^2) - sum(d)^2 / n) / (n - correction)`` with d = x - mean, or the root, and the mean.

    PyTorch sums in float64.  What the mean has lost is in the sum of d, and no square of d overflows or is lost, since
    d is divided by the largest of its size.
    """
    source = call.f32("self")
    axes = axes_of(call, len(source.shape))
    require(len(axes) >= 1, "input must have at least 1 dimension, but got 0")
    keeps = bool(call.argument("keepdim"))
    shape = reduced_shape(source.shape, axes, keeps)
    correction = call.argument("correction")
    count = math.prod(source.shape[axis] for axis in axes) - (1 if correction is None else correction)
    require(count > 0, f"correction must be less than the {count + (correction or 1)} elements")

    elements, is_root = math.prod(source.shape[axis] for axis in axes), "std" in call.node.kind

    def variance(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        s = emitter.f32
        below = centred(emitter, operands[0], axes)
        size = reduced(emitter, F32MaxOp, s("absf", below), axes, keep_dims=True)
        scale = emitter.expression(_SCALE, size)
        share = s("divf", below, scale)
        total, lost = (
            reduced(emitter, F32SumOp, one, axes, keep_dims=True) for one in (s("mulf", share, share), share)
        )
        squares = s("subf", total, s("divf", s("mulf", lost, lost), float(elements)))
        found = s("divf", squares, float(count))
        found = s("mulf", s("sqrt", found), scale) if is_root else s("mulf", s("mulf", found, scale), scale)
        return emitter.reshape(found, shape)

    def mean(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        return emitter.reshape(mean_of(emitter, operands[0], axes), shape)

    result = tensors.Computation(shape, (source,), variance, name=call.name)
    if "_mean" not in call.node.kind:
        return result
    return result, tensors.Computation(shape, (source,), mean, name=call.name)


# All compute ``(x - mean) / sqrt(variance + epsilon) * weight + bias``, or leave out what they lack of it.
# A batch normalization has its means and variances from training, so that it is a product and a sum for each channel.

Norm = Callable[[Emitter, ir.Value], ir.Value]


@imports("layer_norm.default", "rms_norm.default")
def _layer_norm(call: Call) -> Result:
    """Over the last dimensions; their number is that of the shape."""
    source, extents = call.f32("input"), tuple(call.argument("normalized_shape"))
    rank, count = len(source.shape), len(extents)
    fits = 1 <= count <= rank and source.shape[rank - count :] == extents
    require(fits, f"normalized_shape must be the end of {list(source.shape)}, but is {list(extents)}")
    axes, is_centred = tuple(range(rank - count, rank)), "layer_norm" in call.node.kind
    epsilon = _epsilon(call)
    return _scaled(call, source, lambda emitter, value: normalized(emitter, value, axes, epsilon, is_centred), extents)


def _epsilon(call: Call) -> float:
    value = call.argument("eps")
    return float(np.finfo(np.float32).eps) if value is None else float(value)


@imports("group_norm.default")
def _group_norm(call: Call) -> Result:
    """Each group of channels of each example."""
    (groups,) = call.integers("num_groups", 1)
    return _by_groups(call, call.f32("input"), groups)


@imports("instance_norm.default")
def _instance_norm(call: Call) -> Result:
    """Each channel of each example."""
    require(bool(call.argument("use_input_stats")), "use_input_stats must be true")
    source = call.f32("input")
    return _by_groups(call, source, source.shape[1])


def _by_groups(call: Call, source: tensors.F32Tensor, groups: int) -> tensors.Computation:
    shape = source.shape
    require(len(shape) >= 2, f"input must have at least 2 dimensions, but got {len(shape)}")
    require(groups >= 1 and shape[1] % groups == 0, f"groups must divide {shape[1]} channels, but got {groups}")
    epsilon = _epsilon(call)

    def norm(emitter: Emitter, value: ir.Value) -> ir.Value:
        grouped = emitter.reshape(value, (shape[0], groups, shape[1] // groups, *shape[2:]))
        axes = tuple(range(2, len(shape) + 1))
        return emitter.reshape(normalized(emitter, grouped, axes, epsilon), shape)

    return _scaled(call, source, norm, (shape[1], *(1 for _ in shape[2:])))


def _scaled(call: Call, source: tensors.F32Tensor, norm: Norm, shape: Shape) -> tensors.Computation:
    """``norm(x) * weight + bias``; the two, where they are given, with `shape`."""
    given = [name for name in ("weight", "bias") if call.reads(name) is not None]
    parameters = [call.f32(name) for name in given]

    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        held = [emitter.reshape(one, shape) for one in operands[1:]]
        by_name = dict(zip(given, held, strict=True))
        return affine(emitter, norm(emitter, operands[0]), by_name.get("weight"), by_name.get("bias"))

    return tensors.Computation(source.shape, (source, *parameters), build, name=call.name)


@imports("batch_norm.default", "native_batch_norm.default", "_native_batch_norm_legit_no_training.default")
def _batch_norm(call: Call) -> Result:
    """``x * alpha + beta`` with ``alpha = weight / sqrt(variance + eps)`` and ``beta = bias - mean * alpha``."""
    require(not call.argument("training"), "batch norm must not train")
    source = call.f32("input")
    require(len(source.shape) >= 2, f"input must have at least 2 dimensions, but got {len(source.shape)}")
    deviation = np.sqrt(_channels(call, "running_var", 1, source) + np.float32(_epsilon(call)))
    alpha = (_channels(call, "weight", 1, source) / deviation).astype(np.float32)
    beta = (_channels(call, "bias", 0, source) - _channels(call, "running_mean", 0, source) * alpha).astype(np.float32)

    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        s = emitter.f32
        return s("addf", s("mulf", operands[0], emitter.constant(alpha)), emitter.constant(beta))

    result = tensors.Computation(source.shape, (source,), build, is_channels_last=True, name=call.name)
    return result if call.node.kind == "aten.batch_norm.default" else (result,)


def _channels(call: Call, name: str, default: float, source: tensors.F32Tensor) -> Array:
    """A number for each channel, known when the program is read."""
    channels = source.shape[1]
    if call.result(name) is None:
        return np.full(channels, default, np.float32)
    found = f32_weight(call, name)
    if found is None:
        raise UnsupportedError(f"argument '{name}' must be constant")
    require(found.shape == (channels,), f"argument '{name}' must have shape [{channels}], but got {list(found.shape)}")
    return found


# Softmax: of quantized numbers one op, of others float32 ops.

_LOWEST_SUM = float(np.finfo(np.float32).min)


@dataclass(frozen=True, eq=False)
class Shares(tensors.F32Tensor):
    """Exponentials over their sum along `axis`, in float32, or the logarithms of that."""

    source: tensors.F32Tensor
    axis: int
    is_logarithm: bool
    is_safe: bool = False
    """Whether a row of minus infinities, for which masks leave nothing, gives zeros."""

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        source = self.source
        is_integer = isinstance(source, Quantized) and source.is_eight_bit and to.element in tensors.EIGHT_BIT
        if self.is_logarithm or not is_integer or not isinstance(source, Quantized):
            return tensors.quantize(plan, name, self.f32(plan, name), to)

        def emit(emitter: Emitter) -> Emitted:
            values, is_channels_last = emitter.either(source.values)
            attributes = {
                "axis": tensors.stored_axis(self.axis, len(self.shape), is_channels_last),
                "input_scale": source.parameters.scale,
                "output_scale": to.scale,
                "output_zero_point": to.zero_point,
                "arithmetic": SoftmaxArithmetic.FLOAT,
            }
            return emitter.build(SoftmaxOp, values, element=to.element, **attributes), is_channels_last

        return tensors.limit(plan, name, plan.compute(name, self.shape, to.element, emit), to)

    def _f32(self, plan: tensors.Plan, name: str) -> Value:
        """Exponentials of what is below the largest number, over their sum."""
        source = self.source.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            f32, is_channels_last = emitter.either(source)
            axes = (tensors.stored_axis(self.axis, len(self.shape), is_channels_last),)

            s, largest = emitter.f32, reduced(emitter, F32MaxOp, f32, axes)
            if self.is_safe:
                largest = s("maximumf", largest, _LOWEST_SUM)
            below = s("subf", f32, largest)
            powers = s("exp", below)
            total = reduced(emitter, F32SumOp, powers, axes)
            if self.is_safe:
                # The largest power of any other row is 1.
                total = s("maximumf", total, 0.5)
            found = s("subf", below, s("log", total)) if self.is_logarithm else s("divf", powers, total)
            return found, is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


@imports("softmax.int", "_softmax.default", "log_softmax.int", "_log_softmax.default", "_safe_softmax.default")
def _softmax(call: Call) -> Result:
    source = call.f32("self")
    axis = axis_in(call.integers("dim", 1)[0], len(source.shape), "dim")
    is_safe = "safe" in call.node.kind
    return Shares(source.shape, source, axis, "log" in call.node.kind, is_safe, name=call.name)
