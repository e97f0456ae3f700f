"""Functions element by element of one tensor or more: clamps, tables, activations, arithmetic computed in float32.

A function of one quantized tensor, however many operators it is made of, is a table that PyTorch itself fills in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qdialect.arithmetic import BinaryQuantization, activations, elementwise, quantized_range, torch_activations
from qdialect.arithmetic.expressions import Expression, Input, Number
from qdialect.arithmetic.profiles import PYTORCH
from qdialect.dialect import AddOp, MulOp
from qdialect.dialect.elementwise_ops import binary_attributes
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, require
from qdialect.frontends.planning import tensors
from qdialect.frontends.planning.elementwise import Clamped, Pointwise, unary, whole_power
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import EIGHT_BIT, Computed, Constant, F32Tensor, Plan, QuantizedTensorType
from qdialect.frontends.torch.operators.plain import arithmetic, as_element, element_of_result, value_as
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports, imports_plain
from qdialect.frontends.torch.operators.tensors import Quantized
from qdialect.frontends.torch.program.folding import evaluate
from qdialect.frontends.torch.program.model import Node
from qdialect.frontends.torch.program.pytorch_operators import widened

Leaf = tuple[Any, ...]
"""`Quantized.key`, by which quantized tensors are told apart."""

# Of the 65536 pairs of quantized values, how many an integer op may round otherwise than PyTorch: one in 10000.
_FEW = 6


@dataclass(frozen=True, eq=False)
class Evaluated(Pointwise):
    """The result of `node`, element by element; `parts` are the tensors that it reads, by name.

    `operands` are the same tensors in order with numbers among them.  Tables are filled in by PyTorch itself.
    """

    node: Node
    parts: Mapping[str, F32Tensor]
    leaves: Mapping[Leaf, Quantized] | None = field(init=False)
    """The only tensor, a quantized one, on which this depends, single numbers aside; None if it depends on others."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "leaves", _leaves(self.parts.values()))

    def nan_of(self, plan: Plan) -> bool | Sequence[F32Tensor]:
        """A function of quantized values is a table, and their sums and products are integers."""
        if self.leaves:
            (source,) = self.leaves.values()
            if not source.is_eight_bit:
                return False
            entries = tensors.evaluate(lambda f32_values: self.values(plan, {source.key: f32_values}), source)
            return bool(np.isnan(entries).any())
        return self.node.kind.split(".")[1] not in _JOINS or tuple(self.parts.values())

    def _table(self) -> None:
        """Not by the formula."""

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        source = self._single(to)
        if source is not None:
            key = source.key
            return tensors.look_up(plan, name, source, to, lambda f32_values: self.values(plan, {key: f32_values}))
        return self._joined(plan, name, to) or super()._quantized(plan, name, to)

    def _single(self, to: QuantizedTensorType) -> Quantized | None:
        """The one quantized tensor of which this is a function."""
        if self.leaves is None or len(self.leaves) != 1 or to.element not in EIGHT_BIT:
            return None
        source = next(iter(self.leaves.values()))
        return source if source.is_eight_bit and source.shape == self.shape else None

    def _joined(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value | None:
        """Quantized values of a sum or product of two quantized tensors."""
        pair = [operand for operand in self.operands if isinstance(operand, Quantized) and operand.is_eight_bit]
        joins = _JOINS.get(self.node.kind.split(".")[1])
        if joins is None or len(pair) != 2 or len(self.parts) != 2 or to.element not in EIGHT_BIT:
            return None
        joined = _Joined(joins, pair[0], pair[1], to)
        wanted = to.quantize(self.values(plan, {side.key: joined.grid(i) for i, side in enumerate(pair)}))
        if np.count_nonzero(joined.results() != wanted) > _FEW:
            return None
        return tensors.limit(plan, name, plan.compute(name, self.shape, to.element, joined.emit), to)

    def values(self, plan: Plan, numbers: Mapping[Leaf, Array]) -> Array:
        """PyTorch's result for f32 `numbers` in place of `leaves`."""
        return _Evaluation(plan, numbers).of(self)


@dataclass
class _Evaluation:
    """The elements of every tensor that others are computed of, each evaluated once for all its readers."""

    plan: Plan
    numbers: Mapping[Leaf, Array]
    found: dict[F32Tensor, Array] = field(default_factory=dict["F32Tensor", Array])

    def of(self, part: F32Tensor) -> Array:
        """The elements of `part`."""
        if part not in self.found:
            self.found[part] = self._evaluated(part)
        return self.found[part]

    def _evaluated(self, part: F32Tensor) -> Array:
        if isinstance(part, Quantized):
            return self.numbers[part.key]
        if isinstance(part, Clamped):
            return part.clamp(self.of(part.source))
        if isinstance(part, Evaluated):
            self.plan.count()
            return evaluate(part.node, {name: self.of(below) for name, below in part.parts.items()})
        assert isinstance(part, Computed)
        assert part.value.data is not None
        return part.value.data.reshape(())


def _leaves(parts: Iterable[F32Tensor]) -> Mapping[Leaf, Quantized] | None:
    """The one quantized tensor below `parts`, or none; None where there are several, or others than quantized ones."""
    found: dict[Leaf, Quantized] = {}
    for part in parts:
        below = _leaves_of(part)
        if below is None:
            return None
        found.update(below)
    return found if len(found) <= 1 else None


def _leaves_of(part: F32Tensor) -> Mapping[Leaf, Quantized] | None:
    while isinstance(part, Clamped):
        part = part.source
    if isinstance(part, Quantized):
        return {part.key: part}
    if isinstance(part, Evaluated):
        return part.leaves
    is_number = isinstance(part, Computed) and part.value.data is not None and part.value.data.size == 1
    return {} if is_number else None


@dataclass(frozen=True)
class _Joined:
    """A sum or product in integers; PyTorch's float region differs in few pairs of quantized values, if in any."""

    op_class: type[AddOp | MulOp]
    lhs: Quantized
    rhs: Quantized
    to: QuantizedTensorType

    def _all_values(self, side: int) -> Array:
        operand = (self.lhs, self.rhs)[side]
        minimum, maximum = quantized_range(NUMPY_DTYPES[operand.values.element])
        return np.arange(minimum, maximum + 1).reshape((256, 1) if side == 0 else (1, 256))

    def grid(self, side: int) -> Array:
        """The f32 values of all quantized values of one operand, along a dimension of their own."""
        return (self.lhs, self.rhs)[side].parameters.dequantize(self._all_values(side))

    @property
    def _quantization(self) -> BinaryQuantization:
        bounds = (self.to.minimum, self.to.maximum)
        return BinaryQuantization(self.lhs.parameters.params, self.rhs.parameters.params, self.to.params, bounds)

    def results(self) -> Array:
        """The results of the integer op for all pairs of quantized values."""
        quantization = self._quantization
        operands = (self._all_values(0), self._all_values(1), quantization)
        if self.op_class is AddOp:
            # Rounding and multiplier do not enter a sum of floats.
            return elementwise.add(*operands, PYTORCH.addition, PYTORCH.rounding, PYTORCH.multiplier)
        return elementwise.mul(*operands, PYTORCH.rounding, PYTORCH.multiplier)

    def emit(self, emitter: Emitter) -> Emitted:
        """Build the op."""
        operands, is_channels_last = emitter.alike((self.lhs.values, self.rhs.values))
        attributes, to = binary_attributes(self._quantization), self.to
        how = PYTORCH.rescale
        if self.op_class is AddOp:
            how = {"arithmetic": PYTORCH.addition}
        return emitter.build(self.op_class, *operands, element=to.element, **attributes, **how), is_channels_last


_JOINS: Mapping[str, type[AddOp | MulOp]] = {"add": AddOp, "mul": MulOp}


def pointwise(call: Call, names: Sequence[str], formula: Expression | None) -> Evaluated:
    """The node's function of the arguments `names`, tensors or numbers; integers become f32 first, as in PyTorch."""
    operands: list[F32Tensor] = []
    parts: dict[str, F32Tensor] = {}
    for name in names:
        tensor, read = call.tensor(name), call.reads(name)
        if isinstance(tensor, Constant) and tensor.array.ndim == 0:
            with np.errstate(over="ignore"):
                tensor = Constant(widened(tensor.array).astype(np.float32))
        elif element_of_result(call) == "f32":
            tensor = as_element(call, tensor, "f32")
        operands.append(as_f32(name, tensor))
        if read is not None:
            parts[read] = operands[-1]
    return Evaluated(_broadcast(operands), tuple(operands), formula, call.node, parts, name=call.name)


def _broadcast(operands: Sequence[F32Tensor]) -> Shape:
    shapes = [operand.shape for operand in operands]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise UnsupportedError(f"shapes must broadcast, but got {[list(shape) for shape in shapes]}") from error


def clamped(call: Call, minimum: float, maximum: float) -> Clamped:
    """The argument ``self`` between two bounds."""
    require(minimum <= maximum, f"bounds must be ordered, but got {minimum} and {maximum}")
    source = call.f32("self")
    return Clamped(source.shape, source, minimum, maximum, name=call.name)


# Activations, sums, differences, products and quotients, computed in float32.

_SELF, _OTHER = Input(0), Input(1)
_FUNCTIONS = {
    "abs": activations.absolute,
    "acos": activations.acos,
    "acosh": torch_activations.acosh,
    "asin": activations.asin,
    "asinh": torch_activations.asinh,
    "atan": activations.atan,
    "atanh": torch_activations.atanh,
    "ceil": activations.ceil,
    "cos": activations.cos,
    "cosh": torch_activations.cosh,
    "erf": activations.erf,
    "erfc": torch_activations.erfc,
    "exp": activations.exp,
    "exp2": torch_activations.exp2,
    "expm1": torch_activations.expm1,
    "floor": activations.floor,
    "frac": torch_activations.frac,
    "hardsigmoid": activations.hardsigmoid,
    "hardswish": activations.hardswish,
    "log": activations.log,
    "log10": torch_activations.log10,
    "log1p": torch_activations.log1p,
    "log2": torch_activations.log2,
    "log_sigmoid": torch_activations.log_sigmoid,
    "mish": torch_activations.mish,
    "neg": activations.negate,
    "reciprocal": activations.reciprocal,
    "round": activations.round_even,
    "rsqrt": activations.rsqrt,
    "sigmoid": activations.sigmoid,
    "sign": torch_activations.sign,
    "silu": activations.silu,
    "sin": activations.sin,
    "sinh": torch_activations.sinh,
    "sqrt": activations.sqrt,
    "square": activations.square,
    "tan": torch_activations.tan,
    "tanh": activations.tanh,
    "trunc": torch_activations.trunc,
}
_TABLES = ("digamma", "erfinv", "lgamma", "sinc", "i0")
"""Functions without a form for f32 values: of one quantized tensor they are tables that PyTorch fills in."""


def _gelu(call: Call) -> Expression:
    how = call.argument("approximate")
    require(how in ("none", "tanh"), f"approximate must be none or tanh, but got {how}")
    return activations.gelu if how == "none" else activations.gelu_tanh


def _elu(call: Call) -> Expression:
    alpha, scale, input_scale = (_number(call, name) for name in ("alpha", "scale", "input_scale"))
    return activations.elu(alpha) if scale == input_scale == 1 else torch_activations.elu(alpha, scale, input_scale)


_PARAMETRIC: dict[str, Callable[[Call], Expression]] = {
    "elu.default": _elu,
    "gelu.default": _gelu,
    "hardshrink.default": lambda call: torch_activations.hardshrink(_number(call, "lambd")),
    "leaky_relu.default": lambda call: activations.leaky_relu(_number(call, "negative_slope")),
    "pow.Tensor_Scalar": lambda call: torch_activations.power(_number(call, "exponent")),
    "softplus.default": lambda call: torch_activations.softplus(_number(call, "beta"), _number(call, "threshold")),
    "softshrink.default": lambda call: torch_activations.softshrink(_number(call, "lambd")),
}


@imports(*(f"{name}.default" for name in _FUNCTIONS), *_PARAMETRIC)
def _function(call: Call) -> Result:
    _, name, overload = call.node.kind.split(".")
    function = _FUNCTIONS.get(name)
    return pointwise(call, ("self",), function or _PARAMETRIC[f"{name}.{overload}"](call))


@imports(*(f"{name}.default" for name in _TABLES))
def _table(call: Call) -> Result:
    table = pointwise(call, ("self",), None)
    require(bool(table.leaves), "operator is not supported on f32 values")
    return table


@imports_plain("pow.Tensor_Scalar")
def _power_of_integers(call: Call) -> Result:
    """To a whole number in integers; with a fraction in the exponent PyTorch computes in float32."""
    element, exponent = element_of_result(call), call.argument("exponent")
    if element == "f32":
        return _function(call)
    is_whole = isinstance(exponent, int) and exponent >= 0
    require(is_whole, f"exponent of integers must be a whole number of at least 0, but got {exponent}")
    return unary(call, value_as(call, "self", element), element, lambda s, x: whole_power(s, x, exponent))


@imports("pow.Scalar")
def _power_of(call: Call) -> Result:
    base = _number(call, "self")
    require(base > 0, f"argument 'self' must be positive, but got {base}")
    return pointwise(call, ("exponent",), torch_activations.power_of(base))


@imports("pow.Tensor_Tensor")
def _power_of_tensors(call: Call) -> Result:
    return pointwise(call, ("self", "exponent"), _SELF.apply("math.powf", _OTHER))


def _number(call: Call, name: str, default: float | None = None) -> float:
    value = call.argument(name)
    value = default if value is None else value
    if not isinstance(value, int | float) or math.isnan(value):
        raise UnsupportedError(f"argument '{name}' must be a number, but got {value}")
    return float(value)


_BOUNDS: dict[str, Callable[[Call], tuple[float, float]]] = {
    "clamp": lambda call: (_number(call, "min", -math.inf), _number(call, "max", math.inf)),
    "clamp_max": lambda call: (-math.inf, _number(call, "max")),
    "clamp_min": lambda call: (_number(call, "min"), math.inf),
    "hardtanh": lambda call: (_number(call, "min_val"), _number(call, "max_val")),
    "relu": lambda _: (0, math.inf),
    "relu6": lambda _: (0, 6),
}


@imports(*(f"{name}.default" for name in _BOUNDS))
def _clamp(call: Call) -> Result:
    return clamped(call, *_BOUNDS[call.node.kind.split(".")[1]](call))


_PAIRS = {
    "div": _SELF / _OTHER,
    "floor_divide": torch_activations.floor_divide,
    "fmod": torch_activations.fmod,
    "hypot": torch_activations.hypot,
    "logaddexp": torch_activations.logaddexp,
    "logaddexp2": torch_activations.logaddexp2,
    "maximum": _SELF.apply("arith.maximumf", _OTHER),
    "minimum": _SELF.apply("arith.minimumf", _OTHER),
    "mul": _SELF * _OTHER,
    "remainder": torch_activations.remainder,
}


@imports(
    *(f"{name}.default" for name in ("floor_divide", "hypot", "logaddexp", "logaddexp2", "maximum", "minimum")),
    *(f"{name}.{overload}" for name in ("div", "fmod", "mul", "remainder") for overload in ("Tensor", "Scalar")),
    "floor_divide.Scalar",
)
def _pair(call: Call) -> Result:
    return pointwise(call, ("self", "other"), _PAIRS[call.node.kind.split(".")[1]])


@imports("lerp.Scalar", "lerp.Tensor")
def _lerp(call: Call) -> Result:
    return pointwise(call, ("self", "end", "weight"), torch_activations.lerp)


@imports("addcmul.default")
def _add_product(call: Call) -> Result:
    return pointwise(call, ("self", "tensor1", "tensor2"), torch_activations.add_product(_number(call, "value", 1)))


@imports("div.Tensor_mode", "div.Scalar_mode")
def _rounded_quotient(call: Call) -> Result:
    mode = call.argument("rounding_mode")
    require(mode in (None, "floor", "trunc"), f"rounding_mode must be floor or trunc, but got {mode}")
    functions = {"floor": torch_activations.floor_divide, "trunc": torch_activations.trunc_divide}
    return pointwise(call, ("self", "other"), functions.get(mode, _SELF / _OTHER))


@imports_plain(
    *("floor_divide.default", "floor_divide.Scalar", "div.Tensor_mode", "div.Scalar_mode"),
    *(f"{name}.{overload}" for name in ("fmod", "remainder") for overload in ("Tensor", "Scalar")),
)
def _rest_of_integers(call: Call) -> Result:
    """In integers, unless a float among the operands makes the result one."""
    if element_of_result(call) != "f32":
        return arithmetic(call)
    return _rounded_quotient(call) if ".div." in call.node.kind else _pair(call)


@imports(*(f"{name}.{overload}" for name in ("add", "sub", "rsub") for overload in ("Tensor", "Scalar")))
def _sum(call: Call) -> Result:
    """``self + alpha * other`` or their difference, in which product and sum are rounded once."""
    kind, alpha = call.node.kind.split(".")[1], _number(call, "alpha", 1)
    first, second = (_OTHER, _SELF) if kind == "rsub" else (_SELF, _OTHER)
    if alpha == 1:
        return pointwise(call, ("self", "other"), first + second if kind == "add" else first - second)
    factor = alpha if kind == "add" else -alpha
    return pointwise(call, ("self", "other"), second.apply("math.fma", Number(factor), first))
