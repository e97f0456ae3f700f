"""Computes element by element: operands of one shape, plain values by upstream ops, functions of f32 values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np

from qdialect.arithmetic import FloatArray, nan_value
from qdialect.arithmetic.choices import Scaling
from qdialect.arithmetic.expressions import Expression, Input
from qdialect.arithmetic.profiles import Profile
from qdialect.dialect.fields import is_scale
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NARROW_ELEMENTS, NUMPY_DTYPES, element_of
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, require
from qdialect.frontends.building.op_builder import Arithmetic, OpBuilder
from qdialect.frontends.planning import tensors
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value, channels_last
from qdialect.frontends.planning.tensors import Computed, Constant, F32Tensor, Plan, Table, Tensor, known
from qdialect.ir._mlir import ir

# Operands of element-wise ops, brought to one shape.


def broadcast_shape(lhs: Shape, rhs: Shape) -> Shape:
    """The shape of a function of two tensors; raises `UnsupportedError` where they do not broadcast."""
    try:
        return np.broadcast_shapes(lhs, rhs)
    except ValueError as error:
        raise UnsupportedError(f"operand shapes must broadcast, but got {list(lhs)} and {list(rhs)}") from error


def operands_of_shape(emitter: Emitter, values: Sequence[Value], shape: Shape) -> tuple[list[ir.Value], bool]:
    """Values in the shape of the result, and whether their channels come last."""
    operands, is_channels_last = emitter.alike([_grown(value, shape) for value in values])
    order = channels_last(len(shape)) if is_channels_last else range(len(shape))
    stored = tuple(shape[axis] for axis in order)
    return [emitter.broadcast(value, stored) for value in operands], is_channels_last


_MAX_GROWN = 2**16
"""Elements of a constant that is written out in the shape of the result, where passes see what it does."""


def _grown(value: Value, shape: Shape) -> Value:
    """A constant in the shape of the result; larger ones and other values are broadcast by an op."""
    if value.data is None or (value.data.size > 1 and math.prod(shape) > _MAX_GROWN):
        return value
    return Value(value.name, shape, value.element, data=np.broadcast_to(value.data, shape))


# Plain values: integers, booleans and floats that stand for themselves, computed by upstream ops.
#
# Upstream ops know integers as bits without a sign, so unsigned tensors become such on the way in and unsigned again on
# the way out; what depends on the sign is chosen by the type of the model.

INTEGERS = ("i8", "ui8", "i16", "ui16", "i32", "i64")


class Site(Protocol):
    """A node that is being planned."""

    @property
    def plan(self) -> Plan:
        """That of the graph."""
        ...

    @property
    def name(self) -> str:
        """The name of the result in the model."""
        ...


Build = Callable[..., ir.Value]
"""``build(arithmetic, *operands)`` gives the result, all of one shape and without a sign."""
OfOne = Callable[[Arithmetic, ir.Value], ir.Value]
OfTwo = Callable[[Arithmetic, ir.Value, ir.Value], ir.Value]
OfThree = Callable[[Arithmetic, ir.Value, ir.Value, ir.Value], ir.Value]


def value_of_tensor(site: Site, tensor: Tensor) -> Value:
    """A tensor as a value of its own element type."""
    if isinstance(tensor, Constant):
        return known(site.name, tensor.array)
    return tensor.f32(site.plan, site.name) if isinstance(tensor, F32Tensor) else tensor


def element_type(tensor: Tensor) -> str:
    """The element type of a tensor (``"i64"``); ``"another type"`` for a constant that no value can hold."""
    if isinstance(tensor, Constant):
        return next((name for name, dtype in NUMPY_DTYPES.items() if dtype == tensor.array.dtype), "another type")
    return tensor.element if isinstance(tensor, Value) else "f32"


def tensor_of(value: Value) -> Tensor:
    """The planned meaning of a value."""
    return Computed(value.shape, value) if value.element == "f32" else value


def common_element(values: Sequence[Value], elements: Sequence[str]) -> str:
    """The element type of all `values`, one of `elements`; raises `UnsupportedError`."""
    found = {value.element for value in values}
    require(len(found) == 1, f"inputs must be of one type, but got {' and '.join(sorted(found))}")
    (element,) = found
    wanted = f"{', '.join(elements[:-1])} or {elements[-1]}" if len(elements) > 1 else elements[0]
    require(element in elements, f"inputs must be {wanted}, but got {element}")
    return element


def elementwise(site: Site, values: Sequence[Value], element: str, build: Build) -> Value:
    """The result of `build` on `values`, which broadcast, converted to `element`."""
    shape = reduce(broadcast_shape, [value.shape for value in values])

    def emit(emitter: Emitter) -> Emitted:
        operands, is_channels_last = operands_of_shape(emitter, values, shape)
        return on_bits(emitter, operands, element, build), is_channels_last

    return site.plan.compute(site.name, shape, element, emit)


def on_bits(emitter: OpBuilder, operands: Sequence[ir.Value], element: str, build: Build) -> ir.Value:
    """The result of `build` on `operands` of one shape, as a tensor of `element`."""
    s = Arithmetic(emitter, any(element_of(operand.type).startswith("u") for operand in operands))
    result = build(s, *map(emitter.without_sign, operands))
    return emitter.convert("tensor.bitcast", result, element) if element.startswith("u") else result


def unary(site: Site, value: Value, element: str, build: OfOne) -> Value:
    """`elementwise` of one value."""
    return elementwise(site, [value], element, build)


def binary(site: Site, values: Sequence[Value], element: str, build: OfTwo) -> Value:
    """`elementwise` of two values."""
    return elementwise(site, values, element, build)


def ternary(site: Site, values: Sequence[Value], element: str, build: OfThree) -> Value:
    """`elementwise` of three values."""
    return elementwise(site, values, element, build)


def constant_of(site: Site, array: Array) -> Value:
    """An array that is made while the model is read, as a value."""
    site.plan.budget.spend_constant(array.shape, array.dtype.itemsize)
    return known(site.name, np.ascontiguousarray(array))


# Functions of integers by their names: they wrap around, and a quotient by zero is 0.


def floor_quotient(s: Arithmetic, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """``lhs / rhs``, rounded down."""
    rest, quotient = s.op("arith.rem{s}i", lhs, rhs), s.op("arith.div{s}i", lhs, rhs)
    return s.select(_is_between(s, rest, rhs), s.op("arith.addi", quotient, -1), quotient)


def _floor_remainder(s: Arithmetic, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """With the sign of the divisor."""
    rest = s.op("arith.rem{s}i", lhs, rhs)
    return rest if s.is_unsigned else s.select(_is_between(s, rest, rhs), s.op("arith.addi", rest, rhs), rest)


def _is_between(s: Arithmetic, rest: ir.Value, rhs: ir.Value) -> ir.Value:
    """Whether the quotient is negative and no integer."""
    differs = s.compare("lt", s.op("arith.xori", rest, rhs), 0)
    return s.op("arith.andi", s.compare("ne", rest, 0), differs)


def _sign(s: Arithmetic, x: ir.Value) -> ir.Value:
    return s.op("arith.minui", x, 1) if s.is_unsigned else s.op("arith.minsi", s.op("arith.maxsi", x, -1), 1)


PAIRS_OF_INTEGERS: dict[str, OfTwo] = {
    "add": lambda s, lhs, rhs: s.op("arith.addi", lhs, rhs),
    "floor_divide": floor_quotient,
    "fmod": lambda s, lhs, rhs: s.op("arith.rem{s}i", lhs, rhs),
    "maximum": lambda s, lhs, rhs: s.op("arith.max{s}i", lhs, rhs),
    "minimum": lambda s, lhs, rhs: s.op("arith.min{s}i", lhs, rhs),
    "mul": lambda s, lhs, rhs: s.op("arith.muli", lhs, rhs),
    "remainder": _floor_remainder,
    "rsub": lambda s, lhs, rhs: s.op("arith.subi", rhs, lhs),
    "sub": lambda s, lhs, rhs: s.op("arith.subi", lhs, rhs),
    "trunc_divide": lambda s, lhs, rhs: s.op("arith.div{s}i", lhs, rhs),
}
OF_ONE_INTEGER: dict[str, OfOne] = {
    "abs": lambda s, x: x if s.is_unsigned else s.op("math.absi", x),
    "neg": lambda s, x: s.op("arith.addi", s.op("arith.xori", x, -1), 1),
    "sign": _sign,
}


# Conversions between integers, booleans and float32, as x86-64 CPUs convert.
#
# A float goes to the integer below its magnitude; what 32 bits cannot hold, or 64 for i64, becomes the smallest integer
# of that width, as the CPU's conversions define, and narrower integers are its low bits.


def converted(s: Arithmetic, x: ir.Value, found: str, target: str) -> ir.Value:
    """`x` of the element type `found` as one of `target`."""
    if target == "i1":
        return s.compare("ne", x, 0)
    bare = target.removeprefix("u")
    if found == "f32":
        return _integer(s, x, bare)
    if target == "f32":
        return s.convert("arith.uitofp" if found == "i1" or found.startswith("u") else "arith.sitofp", x, "f32")
    return s.resize(x, bare)


def _integer(s: Arithmetic, x: ir.Value, element: str) -> ir.Value:
    wide = "i64" if element == "i64" else "i32"
    limit = 2.0 ** (int(wide[1:]) - 1)
    is_inside = s.op("arith.andi", s.compare("ge", x, -limit), s.compare("lt", x, limit))
    whole = s.convert("arith.fptosi", s.select(is_inside, x, 0.0), wide)
    return s.resize(s.select(is_inside, whole, -int(limit)), element)


def cast_array(array: Array, target: str) -> Array:
    """An array as one of the element type `target`."""
    dtype = NUMPY_DTYPES[target]
    if array.dtype.kind != "f" or dtype.kind not in "iu":
        return array.astype(dtype)
    wide = np.int64 if dtype.itemsize == 8 else np.int32
    limit = 2.0 ** (np.iinfo(wide).bits - 1)
    is_inside = (array >= -limit) & (array < limit)
    whole = np.where(is_inside, array, 0).astype(wide)
    return np.where(is_inside, whole, np.iinfo(wide).min).astype(dtype)


# Powers of integers to an exponent that is known; products wrap around.


def whole_power(s: Arithmetic, x: ir.Value, exponent: int) -> ir.Value:
    """``x ** exponent`` for an `exponent` of at least 0, by squaring.

    There is one product for each binary digit of the exponent, and one more for each that is 1.
    """
    found: ir.Value | None = None
    for bit in f"{exponent:b}":
        squared = None if found is None else s.op("arith.muli", found, found)
        found = squared if bit == "0" else x if squared is None else s.op("arith.muli", squared, x)
    return s.op("arith.ori", s.op("arith.andi", x, 0), 1) if found is None else found


# Functions element by element of f32 values that broadcast.

_TABLE_SIZE = 256


@dataclass(frozen=True, eq=False)
class Pointwise(F32Tensor):
    """`formula` of `operands` in float32: a table where they are functions of one 8-bit tensor, ops elsewhere."""

    operands: tuple[F32Tensor, ...]
    formula: Expression | None
    """None where no ops compute it."""

    def _table(self) -> Table | None:
        """Of operands that are functions of one tensor, or one number everywhere: ``x * sigmoid(x)`` and the like."""
        tables = [operand.table() for operand in self.operands]
        found = [table for table in tables if table is not None]
        if self.formula is None or len({table.source.key for table in found}) != 1:
            return None
        entries = [_entries_of(*pair) for pair in zip(self.operands, tables, strict=True)]
        known = [one for one in entries if one is not None]
        if len(known) < len(entries) or found[0].source.shape != self.shape:
            return None
        return found[0].of_entries(self.shape, self.formula, *known)

    def _quantized(self, plan: Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        table = self.table() if to.element in tensors.EIGHT_BIT else None
        return table.quantized(plan, name, to) if table else super()._quantized(plan, name, to)

    def nan_of(self, plan: Plan) -> bool | Sequence[F32Tensor]:
        table = self.table()
        return table is None or table.nan_of(plan)

    def _f32(self, plan: Plan, name: str) -> Value:
        formula = self.formula
        if formula is None:
            raise UnsupportedError("operator is supported as a function of one 8-bit tensor that is quantized")
        values = [operand.f32(plan, name) for operand in self.operands]

        def emit(emitter: Emitter) -> Emitted:
            operands, is_channels_last = operands_of_shape(emitter, values, self.shape)
            return emitter.expression(formula, *operands), is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


def _entries_of(operand: F32Tensor, table: Table | None) -> FloatArray | None:
    """The value of `operand` for each quantized value of a source, if it is a function of that, or one number."""
    if table is not None:
        return table.entries
    data = operand.value.data if isinstance(operand, Computed) else None
    if data is None or data.size == 0 or np.any(data != data.flat[0]):
        return None
    return np.full(_TABLE_SIZE, np.float32(data.flat[0]))


# f32 values between two bounds.


@dataclass(frozen=True, eq=False)
class Clamped(F32Tensor):
    """The f32 values of `source` between two bounds.

    Quantization is monotonic, so the quantized values are clamped to the quantized bounds. A NaN is not clamped.
    """

    source: F32Tensor
    minimum: float
    maximum: float

    def _table(self) -> Table | None:
        table = self.source.table()
        return None if table is None else table.then(self.clamp)

    @property
    def clamp(self) -> Expression:
        """The function of `source`; a bound that is NaN bounds nothing."""
        at_least = Input().at_least(self.minimum) if self.minimum > -math.inf else Input()
        return at_least.at_most(self.maximum) if self.maximum < math.inf else at_least

    def _quantized(self, plan: Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        low, high = to.quantize_scalar(self.minimum), to.quantize_scalar(self.maximum)
        bounds_nothing = (low, high) == (to.minimum, to.maximum)
        if not bounds_nothing and self.may_be_nan(plan):
            table = self.table() if to.element in tensors.EIGHT_BIT else None
            return table.quantized(plan, name, to) if table else super()._quantized(plan, name, to)
        source = self.source.quantized(plan, name, to)
        return source if bounds_nothing else tensors.clip(plan, name, source, low, high)

    def nan_of(self, plan: Plan) -> Sequence[F32Tensor]:
        return (self.source,)

    def _f32(self, plan: Plan, name: str) -> Value:
        def build(emitter: Emitter, value: ir.Value) -> ir.Value:
            return emitter.expression(self.clamp, value)

        return plan.pointwise(name, self.source.f32(plan, name), "f32", build)


# Quantization and dequantization by a scale that no integer arithmetic can hold, in plain float32 arithmetic.
#
# Masks of attention are the smallest float32 numbers, whose quantizer writes scales around 1e36, or -inf, whose
# quantizer writes infinite ones.


@dataclass(frozen=True, eq=False)
class PlainlyDequantized(Computed):
    """F32 values with what they are computed from."""

    quantized_values: Value
    scale: float
    zero_point: int


def wide_scale_of(tensor: Tensor) -> float | None:
    """The value of a tensor of one finite scale that the dialect refuses; None for other tensors."""
    scale = unbounded_scale_of(tensor)
    return scale if scale is not None and math.isfinite(scale) else None


def unbounded_scale_of(tensor: Tensor) -> float | None:
    """As `wide_scale_of`, with infinity and NaN too, which float32 arithmetic takes as they are."""
    if not isinstance(tensor, Constant) or tensor.array.size != 1 or tensor.array.dtype.kind != "f":
        return None
    scale = float(tensor.array.ravel()[0])
    return None if scale <= 0 or is_scale(scale) else scale


# Below it only numbers that are tiny themselves have subnormal ratios, which take some Intel cores a hundred cycles.
_LARGE_SCALE = 2.0**32


def plainly_quantized(call: Site, value: Value, element: str, scale: float, zero_point: int, profile: Profile) -> Value:
    """``round(x / scale) + zero_point`` to even, within the range of `element`; NaN is that of the `profile`.

    With its scaling by reciprocals ``x * (1 / scale)`` is rounded.
    """
    require(element in NARROW_ELEMENTS, f"output must be {' or '.join(NARROW_ELEMENTS)}, but got {element}")
    bounds = ELEMENT_RANGES[element]
    low, high, nan = (one - zero_point for one in (*bounds, int(nan_value(profile.nan, zero_point, *bounds))))

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        is_product = profile.scaling is Scaling.RECIPROCAL
        if _LARGE_SCALE <= scale < math.inf:
            # The quotient rounds to zero anyway, but it would be subnormal for every score masked by -3.4e38.
            x = s.select(s.compare("lt", s.op("math.absf", x), scale / 4), 0.0, x)
        with np.errstate(over="ignore"):
            scaled = s.op("arith.mulf", x, float(np.float32(1 / scale))) if is_product else s.op("arith.divf", x, scale)
        rounded = s.op("math.roundeven", scaled)
        raised = s.select(s.compare("gt", rounded, low), rounded, float(low))
        limited = s.select(s.compare("lt", raised, high), raised, float(high))
        number = s.select(s.compare("eq", rounded, rounded), limited, float(nan))
        whole = s.op("arith.addi", s.convert("arith.fptosi", number, "i32"), zero_point)
        return s.resize(whole, element.removeprefix("u"))

    return unary(call, value, element, build)


def plainly_dequantized(call: Site, value: Value, scale: float, zero_point: int) -> Tensor:
    """``(q - zero_point) * scale``."""
    if value.data is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            return Constant((value.data.astype(np.int32) - zero_point).astype(np.float32) * np.float32(scale))

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        offset = s.op("arith.subi", s.resize(x, "i32"), zero_point)
        return s.op("arith.mulf", s.convert("arith.sitofp", offset, "f32"), scale)

    return PlainlyDequantized(value.shape, unary(call, value, "f32", build), value, scale, zero_point)
