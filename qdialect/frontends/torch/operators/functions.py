"""Activations, sums, differences, products and quotients, computed in float32."""

from __future__ import annotations

import math
from collections.abc import Callable

from qdialect.arithmetic import activations, torch_activations
from qdialect.arithmetic import activations as inverse_trigonometric
from qdialect.arithmetic.expressions import Expression, Input, Number
from qdialect.frontends.building.checks import UnsupportedError, require
from qdialect.frontends.planning.elementwise import unary, whole_power
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.torch.operators.elementwise import clamped, pointwise
from qdialect.frontends.torch.operators.plain import arithmetic, element_of_result, value_as
from qdialect.frontends.torch.operators.registry import Call, imports, imports_plain

_SELF, _OTHER = Input(0), Input(1)
_FUNCTIONS = {
    "abs": activations.absolute,
    "acos": inverse_trigonometric.acos,
    "acosh": torch_activations.acosh,
    "asin": inverse_trigonometric.asin,
    "asinh": torch_activations.asinh,
    "atan": inverse_trigonometric.atan,
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
