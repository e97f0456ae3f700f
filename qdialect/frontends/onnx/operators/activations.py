"""Activations and other functions of one number, and Softmax: clamps, tables, and upstream ops elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect.arithmetic import activations, onnx_activations, torch_activations
from qdialect.arithmetic.choices import HardswishMode, LeakyMode, SoftmaxArithmetic
from qdialect.arithmetic.expressions import Expression
from qdialect.arithmetic.profiles import ORT
from qdialect.dialect import HardswishOp, LeakyReluOp, SigmoidOp, SoftmaxOp, TanhOp, UnaryOp
from qdialect.dialect.fields import LARGEST_SCALE, SMALLEST_SCALE
from qdialect.frontends.building.checks import axis_in, require
from qdialect.frontends.onnx.operators import registry
from qdialect.frontends.onnx.operators.elementwise import OFFSET, binary_tensor, clipped_integers, shifted
from qdialect.frontends.onnx.operators.quantization import dequantized, f32_values_of, parameters_of, quantized_by
from qdialect.frontends.onnx.qdq_groups import GroupKernel
from qdialect.frontends.planning import elementwise, tensors
from qdialect.frontends.planning.attention import softmax
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value

# Tables hold transcendental functions that are rounded from float64; between float32 tensors they are those of kernels,
# at most an ulp from the truth. ONNX Runtime's own are an ulp or two off; a quantized value differs where such an ulp
# takes a quotient over a tie.

_FORMULAS: dict[str, Expression] = {
    "Abs": activations.absolute,
    "Acos": activations.acos,
    "Acosh": torch_activations.acosh,
    "Asin": activations.asin,
    "Asinh": torch_activations.asinh,
    "Atan": activations.atan,
    "Atanh": torch_activations.atanh,
    "Ceil": activations.ceil,
    "Cos": activations.cos,
    "Cosh": torch_activations.cosh,
    "Erf": activations.erf,
    "Exp": activations.exp,
    "Floor": activations.floor,
    "Log": activations.log,
    "Mish": onnx_activations.mish,
    "Neg": activations.negate,
    "Reciprocal": activations.reciprocal,
    "Round": activations.round_even,
    "Sign": onnx_activations.sign,
    "Sin": activations.sin,
    "Sinh": torch_activations.sinh,
    "Softplus": onnx_activations.softplus,
    "Softsign": onnx_activations.softsign,
    "Sqrt": activations.sqrt,
    "Tan": torch_activations.tan,
    "com.microsoft.Gelu": activations.gelu,
}


@registry.imports(*_FORMULAS)
def _pointwise(call: registry.Call) -> tensors.Tensor:
    call.count(1)
    return applied(call, _FORMULAS[call.node.kind])


def applied(call: registry.Call, formula: Expression) -> elementwise.Pointwise:
    """`formula` of input 0."""
    source = call.f32(0)
    return elementwise.Pointwise(source.shape, (source,), formula)


_PARAMETRIC: dict[str, tuple[Callable[..., Expression], dict[str, float]]] = {
    "Celu": (onnx_activations.celu, {"alpha": 1.0}),
    "Elu": (onnx_activations.elu, {"alpha": 1.0}),
    "HardSigmoid": (onnx_activations.hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    "Selu": (onnx_activations.selu, {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "Shrink": (onnx_activations.shrink, {"lambd": 0.5, "bias": 0.0}),
    "Swish": (onnx_activations.swish, {"alpha": 1.0}),
    "ThresholdedRelu": (onnx_activations.thresholded, {"alpha": 1.0}),
    "com.microsoft.QuickGelu": (onnx_activations.swish, {"alpha": 1.702}),
}
"""Functions with attributes, in the order of their parameters, and the defaults of these."""


@registry.imports(*_PARAMETRIC)
def _parametric(call: registry.Call) -> tensors.Tensor:
    call.count(1)
    function, defaults = _PARAMETRIC[call.node.kind]
    numbers = [call.attribute(name, float(np.float32(default))) for name, default in defaults.items()]
    require(call.node.kind != "Celu" or numbers[0] != 0, "attribute 'alpha' must not be 0")
    return applied(call, function(*numbers))


@registry.imports("Gelu")
def _gelu(call: registry.Call) -> tensors.Tensor:
    kind: str = call.attribute("approximate", "none")
    require(kind in ("none", "tanh"), f"approximate must be none or tanh, but got {kind}")
    return applied(call, activations.gelu if kind == "none" else activations.gelu_tanh)


# Activations and other functions of one number: clamps, and tables with entries as ONNX Runtime rounds them.

_DEFAULT_LEAKY_ALPHA = float(np.float32(0.01))
_LARGEST = float(np.finfo(np.float32).max)
_OPS: dict[str, tuple[Expression, type[UnaryOp], Mapping[str, Any]]] = {
    "HardSwish": (onnx_activations.hard_swish, HardswishOp, {"mode": HardswishMode.LUT}),
    "Sigmoid": (activations.sigmoid, SigmoidOp, {}),
    "Tanh": (activations.tanh, TanhOp, {}),
}
"""Functions that have an op of their own, and its attributes."""


@dataclass(frozen=True, eq=False)
class Function(elementwise.Pointwise):
    """A function that of an 8-bit tensor has an op of its own."""

    op_class: type[UnaryOp]
    attributes: Mapping[str, Any]

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        (source,) = self.operands
        if to.element not in tensors.EIGHT_BIT or not isinstance(source, registry.Quantized) or not source.is_eight_bit:
            return super()._quantized(plan, name, to)
        how = {"element": to.element, **tensors.mapping(source.parameters, to), **ORT.table, **self.attributes}
        return plan.pointwise(
            name, source.values, to.element, lambda emitter, held: emitter.build(self.op_class, held, **how)
        )


def _unary(kind: str, call: registry.Call, source: tensors.F32Tensor) -> elementwise.Pointwise:
    if kind == "LeakyRelu":
        alpha: float = call.attribute("alpha", _DEFAULT_LEAKY_ALPHA)
        how = {"alpha": alpha, "mode": LeakyMode.LUT}
        return Function(source.shape, (source,), onnx_activations.leaky_relu(alpha), LeakyReluOp, how)
    return Function(source.shape, (source,), *_OPS[kind])


@registry.imports("LeakyRelu", *_OPS)
def _function(call: registry.Call) -> tensors.Tensor:
    return _unary(call.node.kind, call, call.f32(0))


@registry.imports("com.microsoft.QLinearSigmoid", "com.microsoft.QLinearLeakyRelu")
def _qlinear_function(call: registry.Call) -> tensors.Tensor:
    call.count(4, 5)
    qdq_group = _unary(call.node.kind.removeprefix("com.microsoft.QLinear"), call, f32_values_of(call, 0, 1))
    return quantized_by(call, qdq_group, 3, call.value(0).element)


@registry.imports("Relu")
def _relu(call: registry.Call) -> tensors.Tensor:
    return _clamped(call, 0.0, math.inf)


@registry.imports("Clip")
def _clip(call: registry.Call) -> tensors.Tensor:
    """Bounds are attributes in old operator sets and constant inputs in later ones; the upper one wins.

    Without them the largest float32 numbers bound infinities.
    """
    if _is_wide(call.tensor(0)):
        return clipped_integers(call)
    if any(tensor is not None and tensors.known_array(tensor) is None for tensor in map(call.optional, (1, 2))):
        # Bounds that are known at run time alone.
        found: tensors.Tensor = call.f32(0)
        for kind, index, largest in (("Less", 1, -_LARGEST), ("Greater", 2, _LARGEST)):
            bound = call.optional(index) or tensors.Constant(np.array(largest, np.float32))
            require(math.prod(bound.shape) == 1, f"input {index} must have 1 element, but got {list(bound.shape)}")
            # A bound that is NaN bounds nothing.
            found = registry.part_of(call, "Where", [registry.part_of(call, kind, [found, bound]), bound, found])
        return found
    minimum, maximum = _bound(call, 1, "min", -_LARGEST), _bound(call, 2, "max", _LARGEST)
    return _clamped(call, min(minimum, maximum), maximum)


def _is_wide(source: tensors.Tensor) -> bool:
    """Whether a tensor holds integers of more than 8 bits, or constant ones."""
    if isinstance(source, tensors.Constant):
        return source.array.dtype.kind in "iu"
    return isinstance(source, Value) and source.element not in tensors.EIGHT_BIT


def _clamped(call: registry.Call, minimum: float, maximum: float) -> tensors.Tensor:
    """Input 0 between two bounds; 8-bit integers that no DequantizeLinear turned into f32 values are clamped too."""
    source = call.tensor(0)
    if isinstance(source, Value):
        require(source.element in tensors.EIGHT_BIT, f"input 0 must be f32, i8 or ui8, but got {source.element}")
        return registry.clamp_integers(call.plan, call.name, source, minimum, maximum)
    f32 = call.f32(0)
    return elementwise.Clamped(f32.shape, f32, minimum, maximum)


def _bound(call: registry.Call, index: int, name: str, default: float) -> float:
    tensor = call.optional(index)
    if tensor is None:
        return call.attribute(name, default)
    bound = registry.number_of(tensor, name)
    return math.copysign(math.inf, default) if math.isnan(bound) else bound


# Gelu with a bias that is added before: BiasGelu and FastGelu of com.microsoft.


_BIASED = {"com.microsoft.BiasGelu": activations.gelu, "com.microsoft.FastGelu": activations.gelu_tanh}


@registry.imports(*_BIASED)
def _biased_gelu(call: registry.Call) -> tensors.Tensor:
    call.count(1 if call.node.kind == "com.microsoft.FastGelu" else 2, 2)
    source = call.f32(0) if call.optional(1) is None else binary_tensor("Add", call.f32(0), call.f32(1))
    return elementwise.Pointwise(source.shape, (source,), _BIASED[call.node.kind])


# Softmax and QLinearSoftmax, by ONNX Runtime's table of exponentials.

ALONG_AXIS = 13
"""From this operator set on rows run along the axis alone; before, along all dimensions from the axis on."""


@dataclass(frozen=True, eq=False)
class Shares(tensors.F32Tensor):
    """The softmax of rows: along `axis`, or along `axis` and all dimensions after it."""

    source: registry.Quantized
    axis: int
    is_flat: bool
    kernel: GroupKernel

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        before = self.source.parameters
        for what, element in (("input", before.element), ("output", to.element)):
            require(element in tensors.EIGHT_BIT, f"{what} must be i8 or ui8, but got {element}")
        is_shifted = self.kernel is GroupKernel.UNSIGNED and to.element == "i8"
        flat = (math.prod(self.shape[: self.axis]), math.prod(self.shape[self.axis :]))
        point = to.zero_point + (OFFSET if is_shifted else 0)
        how: dict[str, Any] = {"axis": 1 if self.is_flat else self.axis, "arithmetic": SoftmaxArithmetic.ORT_TABLE}
        how |= {"input_scale": before.scale, "output_scale": to.scale, "output_zero_point": point}

        def emit(emitter: Emitter) -> Emitted:
            data = emitter.to_channels_first(self.source.values)
            data = emitter.reshape(data, flat) if self.is_flat else data
            shares = emitter.build(SoftmaxOp, data, element="ui8" if is_shifted else to.element, **how)
            return emitter.reshape(shifted(emitter, shares, "i8") if is_shifted else shares, self.shape), False

        return plan.compute(name, self.shape, to.element, emit)


@dataclass(frozen=True, eq=False)
class NoShares(tensors.F32Tensor):
    """The softmax by an infinite scale: the table of ONNX Runtime holds NaN, which is -2^31 as an integer.

    To that the zero point is added, in 8 bits for ui8, and in 32 bits that wrap around and saturate for i8.
    """

    element: str
    kernel: GroupKernel

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        elements = (self.element, to.element)
        require(
            elements in (("i8", "i8"), ("ui8", "ui8")), f"types must be i8 or ui8, but got {' and '.join(elements)}"
        )
        saturated = to.maximum if to.zero_point < 0 else to.minimum
        is_unsigned = to.element == "ui8" or self.kernel is GroupKernel.UNSIGNED
        fill = to.zero_point if is_unsigned else saturated
        return tensors.filled(plan, name, self.shape, fill, to.element)


@registry.imports("Softmax")
def _softmax(call: registry.Call) -> tensors.Tensor:
    source = call.tensor(0)
    axis = _axis(call, len(source.shape), call.node.version)
    if isinstance(source, elementwise.PlainlyDequantized) and not math.isfinite(source.scale):
        return NoShares(source.shape, source.quantized_values.element, call.kernel)
    return _shares(call, _dequantized(call), axis, call.node.version)


@registry.imports("com.microsoft.QLinearSoftmax")
def _qlinear_softmax(call: registry.Call) -> tensors.Tensor:
    call.count(4, 5)
    scale, version = elementwise.unbounded_scale_of(call.tensor(1)), call.attribute("opset", ALONG_AXIS)
    axis = _axis(call, len(call.tensor(0).shape), version)
    if scale is not None and not math.isfinite(scale):
        value = call.value(0)
        shares = NoShares(value.shape, value.element, call.kernel)
        return shares.quantized(call.plan, call.name, parameters_of(call, 3, value.element))
    scale = elementwise.wide_scale_of(call.tensor(1))
    if scale is not None:
        call = call.with_input(1, tensors.Constant(np.array(_limited(scale), np.float32)))
    source = dequantized(call, 0, 1, 0)
    qdq_group = _shares(call, source, axis, version)
    return qdq_group.quantized(call.plan, call.name, parameters_of(call, 3, source.values.element))


def _dequantized(call: registry.Call) -> registry.Quantized:
    """The result of a DequantizeLinear, with a scale within the dialect's range."""
    source = call.tensor(0)
    if not isinstance(source, elementwise.PlainlyDequantized):
        return call.quantized(0)
    return registry.Quantized(source.shape, source.quantized_values, (_limited(source.scale),), (source.zero_point,))


def _limited(scale: float) -> float:
    """The nearest scale of the dialect to one beyond; shares are the same.

    ``exp(-scale * k)`` of whole k is 0 in float32 for k >= 1 from 2^30 on, and 1 for k <= 255 up to 2^-60.
    """
    return LARGEST_SCALE if scale > 1 else SMALLEST_SCALE


def _axis(call: registry.Call, rank: int, version: int) -> int:
    # ONNX Runtime's own operator has one default.
    axis: int = call.attribute("axis", 1 if version < ALONG_AXIS and call.node.kind == "Softmax" else -1)
    return axis_in(axis, rank)


def _shares(call: registry.Call, source: registry.Quantized, axis: int, version: int) -> Shares:
    return Shares(source.shape, source, axis, version < ALONG_AXIS and axis < len(source.shape) - 1, call.kernel)


@registry.imports_f32("Softmax", "LogSoftmax")
def _f32_softmax(call: registry.Call) -> tensors.Computed:
    """``e^d / sum(e^d)`` or ``d - log(sum(e^d))`` with the distance d from the row's largest number."""
    shape = call.f32(0).shape
    is_flat = call.node.version < ALONG_AXIS
    axis = axis_in(call.attribute("axis", 1 if is_flat else -1), len(shape))
    axes = tuple(range(axis, len(shape))) if is_flat else (axis,)
    is_logarithm = call.node.kind == "LogSoftmax"
    return registry.computed(
        call, shape, (0,), lambda emitter, values: softmax(emitter, values[0], axes, is_logarithm=is_logarithm)
    )
