"""The element-wise part of the TOSA 1.0 specification, RESCALE and TABLE included; see `tosa_spec`."""

from collections.abc import Callable

import numpy as np
from tosa_spec import Array, Node, computes

# math.erf and the like round correctly enough for float64, whatever NumPy does.


def _double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: function(x.astype(np.float64))


def _erf(x: Array) -> Array:
    from math import erf

    return np.vectorize(erf, otypes=[np.float64])(x)


_UNARY: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs,
    "bitwise_not": np.invert,
    "ceil": np.ceil,
    "cos": _double(np.cos),
    "erf": _double(_erf),
    "exp": _double(np.exp),
    "floor": np.floor,
    "log": _double(np.log),
    "logical_not": np.logical_not,
    "reciprocal": _double(lambda x: 1 / x),
    "rsqrt": _double(lambda x: 1 / np.sqrt(x)),
    "sigmoid": _double(lambda x: 1 / (1 + np.exp(-x))),
    "sin": _double(np.sin),
    "tanh": _double(np.tanh),
    "clz": lambda x: np.array([32 - int(one).bit_length() for one in x.view(np.uint32).ravel()]).reshape(x.shape),
}


@computes(*_UNARY)
def _unary(node: Node, values: list[Array]) -> Array:
    return _UNARY[node.op.name.removeprefix("tosa.")](values[0])


def _truncated(lhs: Array, rhs: Array) -> Array:
    return np.trunc(lhs.astype(np.float64) / rhs).astype(np.int64)


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "equal": np.equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "intdiv": _truncated,
    "logical_and": np.logical_and,
    "logical_left_shift": np.left_shift,
    "logical_or": np.logical_or,
    "logical_right_shift": lambda x, s: x.view(f"u{x.itemsize}") >> s.view(f"u{s.itemsize}"),
    "logical_xor": np.logical_xor,
    "pow": lambda x, y: np.power(x.astype(np.float64), y),
    "sub": np.subtract,
}


@computes(*_BINARY)
def _binary(node: Node, values: list[Array]) -> Array:
    return _BINARY[node.op.name.removeprefix("tosa.")](*values)


@computes("maximum", "minimum")
def _extreme(node: Node, values: list[Array]) -> Array:
    ignores = node.mode("nan_mode", "PROPAGATE") == "IGNORE"
    if node.op.name == "tosa.maximum":
        return (np.fmax if ignores else np.maximum)(*values)
    return (np.fmin if ignores else np.minimum)(*values)


@computes("arithmetic_right_shift")
def _arithmetic_right_shift(node: Node, values: list[Array]) -> Array:
    x, shift = (value.astype(np.int64) for value in values)
    result = x >> shift
    rounds = node.flag("round") & (shift > 0)
    return result + (rounds & ((x >> np.maximum(shift - 1, 0)) & 1))


@computes("mul")
def _mul(node: Node, values: list[Array]) -> Array:
    if values[0].dtype == np.float32:
        return values[0] * values[1]
    product, shift = values[0].astype(np.int64) * values[1], int(values[2].item())
    return product if shift == 0 else (product + (1 << (shift - 1))) >> shift


@computes("negate")
def _negate(node: Node, values: list[Array]) -> Array:
    if values[0].dtype == np.float32:
        return -values[0]
    value = values[2].item() - (values[0].astype(np.int64) - values[1].item())
    bounds = np.iinfo(node.dtype)
    return value.clip(bounds.min, bounds.max)


@computes("clamp")
def _clamp(node: Node, values: list[Array]) -> Array:
    low, high = node.number("min_val"), node.number("max_val")
    value = values[0].clip(low, high)
    ignores = node.mode("nan_mode", "PROPAGATE") == "IGNORE"
    return np.where(np.isnan(values[0]), np.float32(low), value) if ignores else value


@computes("select")
def _select(_: Node, values: list[Array]) -> Array:
    return np.where(*values)


@computes("cast")
def _cast(node: Node, values: list[Array]) -> Array:
    x, dtype = values[0], node.dtype
    if dtype == np.bool_:
        return x != 0
    if x.dtype != np.float32 or dtype == np.float32:
        return x.astype(dtype)
    bounds = np.iinfo(dtype)
    return np.rint(x.astype(np.float64)).clip(bounds.min, bounds.max).astype(np.int64)


@computes("table")
def _table(_: Node, values: list[Array]) -> Array:
    x, table = values
    if table.size == 256:
        return table[x.astype(np.int64) + 128]
    position = x.astype(np.int64) + 32768
    base, following = table[position >> 7].astype(np.int64), table[(position >> 7) + 1].astype(np.int64)
    return (base << 7) + (following - base) * (position & 127)


@computes("rescale")
def _rescale(node: Node, values: list[Array]) -> Array:
    data, multiplier, shift, input_zp, output_zp = values
    wide = _bits(data, node.flag("input_unsigned")) - _bits(input_zp, node.flag("input_unsigned"))
    q, s = multiplier.astype(np.int64), shift.astype(np.int64)
    assert ((q >= 0) & (s >= 2) & (s <= 62)).all()
    assert ((wide >= -(1 << (s - 1))) & (wide < (1 << (s - 1)))).all(), "a value that the multiplier cannot take"
    nudge = np.left_shift(1, s - 1)
    if node.mode("rounding_mode") == "DOUBLE_ROUND":
        nudge = nudge + np.where(s > 31, np.where(wide >= 0, 1 << 30, -(1 << 30)), 0)
    result = (wide * q + nudge) >> s
    assert (result == result.astype(np.int32)).all(), "a result beyond 32 bits"
    unsigned, bits = node.flag("output_unsigned"), node.dtype.itemsize * 8
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return (result + _bits(output_zp, unsigned)).clip(low, high).reshape(data.shape)


def _bits(value: Array, is_unsigned: bool) -> Array:
    return (value.view(f"u{value.itemsize}") if is_unsigned else value).astype(np.int64)
