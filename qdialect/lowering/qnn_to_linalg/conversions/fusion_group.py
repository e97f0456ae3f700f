"""Element-wise ops as one kernel: from stored tensors, in float32 and integers, to a stored result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import FloatArray, FloatRounding, NanPolicy, Scaling, nan_value, scale_factors
from qdialect.arithmetic.float32 import ALGORITHMS
from qdialect.dialect import BroadcastOp, DequantizeOp, InterpolatedLutOp, QuantizeOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.f32_ops import IN_FLOAT64
from qdialect.dialect.type_constraints import SMALL_FLOATS, element_of, range_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import joined, names_of
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.qnn_to_linalg.bodies.quantization import (
    ROUND_HALF_AWAY,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    EmitLookup,
    InterpolatedTable,
    can_be_rounded,
)
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import SCALAR_OPS, scalar_type
from qdialect.lowering.qnn_to_linalg.conversions.maps import AxisArray, Known, Source, Stored, map_stored, stored_points
from qdialect.lowering.qnn_to_linalg.graph.fusion_groups import MEMBERS, is_splat
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, lowers_each
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import VECTOR
from qdialect.lowering.qnn_to_linalg.program.program import STORAGE_ELEMENTS, Kernel, signed_shift, widening
from qdialect.lowering.qnn_to_linalg.program.scalar_body import ROUNDED, Body, Emit, Value, flipped

# Between float32 and quantized values, per tensor or per channel: the leaves and the roots of fusion groups.

# Beyond int32 minus any zero point, and exact in float32.
_FAR = 2.0**33
# Half of the largest difference of integers that float32 can represent.
_NARROW = 2**23
# Of a power of two whose reciprocal is a normal number.
_LARGEST_EXPONENT = 126
_ROUND = {
    FloatRounding.HALF_EVEN: ROUND_HALF_EVEN,
    FloatRounding.HALF_AWAY: ROUND_HALF_AWAY,
    FloatRounding.HALF_UP: ROUND_HALF_UP,
}


def quantization(op: QuantizeOp) -> tuple[list[AxisArray], Emit]:
    """``emit(f32 value, *arrays)`` gives the stored value."""
    points, (low, high) = np.array(op.zero_points, dtype=np.int32), range_of(op.output.type)
    nan = np.atleast_1d(nan_value(NanPolicy(op.nan), points, low, high))
    nan_values = (nan + signed_shift(op.output.type)).astype(np.int32)
    is_narrow = max(-low, high, *np.abs(points.astype(np.int64))) <= _NARROW
    arrays, quantized_of = _narrow_value(op, points) if is_narrow else _wide_value(op, points)
    factors, ratio_of = _ratio(op)
    target = STORAGE_ELEMENTS[element_of(op.output.type)]

    def emit(body: Body, values: Sequence[Value]) -> Value:
        f32, at_nan, *rest = values
        ratio = ratio_of(body, f32, rest[len(arrays) :])
        is_nan = body.compare("uno", ratio, ratio)
        quantized = body.select(is_nan, at_nan, quantized_of(body, ratio, is_nan, rest[: len(arrays)]))
        return body.narrow(quantized) if target == "i8" else body.cast("arith.trunci", quantized, target)

    return [AxisArray(array, op.axis) for array in (nan_values, *arrays, *factors)], emit


def _ratio(op: QuantizeOp) -> tuple[list[FloatArray], Callable[[Body, Value, Sequence[Value]], Value]]:
    """``ratio(body, f32 value, arrays)``: the value in units of the scale.

    A quotient by a power of two is the product with its reciprocal, and by 1 it is the value.
    """
    factors, divides = scale_factors(op.scales, op.scaling), op.scaling is Scaling.DIVIDE
    if divides and _are_powers_of_two(factors):
        factors, divides = 1 / factors, False
    if np.all(factors == 1):
        return [], lambda _, f32, __: f32
    if not divides:
        return [factors], lambda body, f32, arrays: body.multiply(f32, arrays[0])
    tag = ROUNDED if can_be_rounded(factors, range_of(op.output.type), op.zero_points) else ""
    return [factors], lambda body, f32, arrays: body.binary("arith.divf", f32, arrays[0], attribute=tag)


def _are_powers_of_two(factors: FloatArray) -> bool:
    """Whether all are, and their reciprocals are normal numbers too."""
    mantissas, exponents = np.frexp(factors)
    return bool(np.all((mantissas == 0.5) & (abs(exponents) <= _LARGEST_EXPONENT)))


_QuantizedOf = Callable[[Body, Value, Value, Sequence[Value]], Value]
"""(body, ratio, whether it is NaN, arrays) -> stored value (i32); for NaN any number."""


def _narrow_value(op: QuantizeOp, points: NDArray[np.int32]) -> tuple[list[NDArray[Any]], _QuantizedOf]:
    """Bounds of the ratio are integers that float32 holds: within them, it is rounded and converted safely."""
    bounds = [(bound - points.astype(np.int64)).astype(np.float32) for bound in range_of(op.output.type)]
    round_f32 = _ROUND[FloatRounding(op.rounding)]

    def quantized(body: Body, ratio: Value, _: Value, arrays: Sequence[Value]) -> Value:
        low, high, point = arrays
        # A comparison with NaN is false: it becomes a bound here.
        rounded = round_f32(body, body.clamp(ratio, low, high))
        return body.add(body.cast("arith.fptosi", rounded, "i32"), point)

    return [*bounds, points + np.int32(signed_shift(op.output.type))], quantized


def _wide_value(op: QuantizeOp, points: NDArray[np.int32]) -> tuple[list[NDArray[Any]], _QuantizedOf]:
    """Quantized values whose bounds float32 does not hold are clamped as 64-bit integers."""
    low, high = range_of(op.output.type)
    shift, round_f32 = signed_shift(op.output.type), _ROUND[FloatRounding(op.rounding)]

    def quantized(body: Body, ratio: Value, is_nan: Value, arrays: Sequence[Value]) -> Value:
        # Saturate as float32 first: a conversion out of range is undefined.
        limited = body.clamp(round_f32(body, ratio), body.constant(-_FAR, "f32"), body.constant(_FAR, "f32"))
        known = body.select(is_nan, body.constant(0, "f32"), limited)
        wide = body.cast("arith.extsi", arrays[0], "i64")
        quantized = body.add(body.cast("arith.fptosi", known, "i64"), wide)
        quantized = body.clamp(quantized, body.constant(low, "i64"), body.constant(high, "i64"))
        return body.add(body.cast("arith.trunci", quantized, "i32"), body.constant(shift, "i32"))

    return [points], quantized


def dequantization(op: DequantizeOp) -> tuple[list[AxisArray], Emit]:
    """``emit(stored value, *arrays)`` gives the f32 value."""
    low, high = range_of(op.input.type)
    fits = max(high - min(op.zero_points), max(op.zero_points) - low) < 2**31
    # A difference of 32-bit numbers needs one bit more.
    offset_type = "i32" if fits else "i64"

    def emit(body: Body, values: Sequence[Value]) -> Value:
        quantized = body.cast(widening(op.input.type), values[0], offset_type)
        zero_point = body.cast("arith.extsi", values[1], offset_type)
        offset = body.subtract(quantized, zero_point)
        return body.multiply(body.cast("arith.sitofp", offset, "f32"), values[2])

    points = stored_points(op.zero_points, op.input.type)
    return [AxisArray(points, op.axis), AxisArray(np.array(op.scales, dtype=np.float32), op.axis)], emit


# A fusion group of element-wise ops becomes one kernel: from stored tensors to the stored result of its root.

_LONG = (*ALGORITHMS, "arith.divf")
"""Functions of which several vectors are computed side by side: each waits for its own results."""
_HALF = ("math.tanh",)
"""Those among them that keep four numbers of each element alive: half the vectors fill the registers."""
_LOOKED_UP, _YMM = ("math.tanh", "math.erf"), 8
"""Those with tables of 16 numbers, which take two registers each with 256 bits: one vector at a time leaves some."""
_BYTES = ("i8", "ui8")

Held = dict[ir.Value, Value]
"""The values of one element computed so far."""
Read = Callable[[Body, Held, Sequence[Value]], Value]
EmitNode = Callable[[Body, Held, Sequence[Value]], Value]


def lower_fusion_group(lowering: GraphLowering, op: Any) -> None:
    """Append the kernel whose root is `op`."""
    root: ir.Operation = op.operation
    members = lowering.fusion_groups.members(root)
    lowering.program.names = names_of(joined([member.location for member in members]))
    group = _FusionGroup(lowering, root, set(members))
    nodes = [(member.results[0], group.node(member)) for member in members]
    result = root.results[0]
    stored = _identity if isinstance(root.opview, QuantizeOp) else _STORED.get(element_of(result.type), _identity)

    def declare(kernel: Kernel) -> Emit:
        numbers = {
            value: kernel.number(f"number{i}", number, scalar_type(value))
            for i, (value, number) in enumerate(group.numbers.items())
        }
        group.declare_tables(kernel)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            held = dict(numbers)
            for value, emit in nodes:
                held[value] = emit(body, held, values)
            return stored(body, held[result])

        return emit

    target = Stored(lowering.result(result), shape_of(result.type))
    map_stored(lowering, target, group.sources, declare, root.name, group.width())


lowers_each(MEMBERS, lower_fusion_group, takes_arrays=True)


@dataclass
class _FusionGroup:
    """The inputs of the kernel of `root`."""

    lowering: GraphLowering
    root: ir.Operation
    members: set[ir.Operation]
    sources: list[Source] = field(default_factory=list[Source])
    numbers: dict[ir.Value, float] = field(default_factory=dict[ir.Value, float])
    """Constants whose elements are all the same."""
    _known: dict[ir.Value, int] = field(default_factory=dict[ir.Value, int])
    _lookups: dict[ir.Operation, EmitLookup] = field(default_factory=dict[ir.Operation, EmitLookup])

    def declare_tables(self, kernel: Kernel) -> None:
        """Declare the tables of its members as parameters of `kernel`."""
        for i, op in enumerate(self.lowering.fusion_groups.members(self.root)):
            view = op.opview
            if isinstance(view, InterpolatedLutOp):
                self._lookups[op] = InterpolatedTable.of(view).declare(kernel, f"table{i}")

    def node(self, op: ir.Operation) -> EmitNode:
        """The function that computes an element of a member."""
        view = op.opview
        if isinstance(view, DequantizeOp):
            arrays, emit = dequantization(view)
            return self._with_arrays(self._stored_value(view.input), arrays, shape_of(view.input.type), emit)
        if isinstance(view, QuantizeOp):
            arrays, emit = quantization(view)
            return self._with_arrays(self._operand(view.input), arrays, shape_of(view.input.type), emit)
        reads = [self._operand(value) for value in op.operands]
        if isinstance(view, BroadcastOp):
            return reads[0]
        if isinstance(view, InterpolatedLutOp):
            return lambda body, held, values: self._lookups[op](body, reads[0](body, held, values))
        emit_scalar = SCALAR_OPS[op.name]
        return lambda body, held, values: emit_scalar(body, op, [read(body, held, values) for read in reads])

    def width(self) -> int:
        """Elements at a time: whole vectors of bytes, or several of float32 numbers, where there is nothing else."""
        found = {element_of(value.type) for op in self.members for value in (*op.operands, *op.results)}
        if found <= set(_BYTES):
            return VECTOR
        has_function = any(op.name in _LONG and IN_FLOAT64 not in op.attributes for op in self.members)
        if not has_function or found != {"f32"}:
            return TILE_LANES
        strategy = self.lowering.program.strategy
        if strategy.lanes == _YMM and any(op.name in _LOOKED_UP for op in self.members):
            return _YMM
        has_row_number = any(isinstance(source, Stored) and source.shape[-1:] == (1,) for source in self.sources)
        lanes = strategy.maps.row_functions if has_row_number else strategy.maps.functions
        is_half = any(op.name in _HALF for op in self.members)
        return max(min(lanes, strategy.maps.functions // 2), TILE_LANES) if is_half else lanes

    def _with_arrays(self, read: Read, arrays: Sequence[AxisArray], shape: Sequence[int], emit: Emit) -> EmitNode:
        missing = len(shape_of(self.root.results[0].type)) - max(len(shape), 1)
        first = len(self.sources)
        self.sources += [replace(array, axis=array.axis + missing) for array in arrays]
        end = len(self.sources)
        return lambda body, held, values: emit(body, [read(body, held, values), *values[first:end]])

    def _operand(self, value: ir.Value) -> Read:
        """An element of `value` as upstream ops see it."""
        owner = value.owner
        if isinstance(owner, ir.Operation | ir.OpView) and owner.operation in self.members:
            return lambda _, held, __: held[value]
        array = constant_value(value)
        if array is None:
            read, loaded = self._stored_value(value), _LOADED.get(element_of(value.type), _identity)
            return lambda body, held, values: loaded(body, read(body, held, values))
        if element_of(value.type) in SMALL_FLOATS:
            array = array.view(np.int16)
        if is_splat(array):
            self.numbers[value] = array.flat[0].item()
            return lambda _, held, __: held[value]
        read = self._source(value, lambda: Known(array))
        return (lambda body, held, values: _bit(body, read(body, held, values))) if array.dtype == np.bool_ else read

    def _stored_value(self, value: ir.Value) -> Read:
        return self._source(value, lambda: Stored(self.lowering.slot(value), shape_of(value.type)))

    def _source(self, value: ir.Value, make: Callable[[], Source]) -> Read:
        if value not in self._known:
            self.sources.append(make())
            self._known[value] = len(self.sources) - 1
        index = self._known[value]
        return lambda _, __, values: values[index]


def _identity(_: Body, value: Value) -> Value:
    return value


def _bit(body: Body, byte: Value) -> Value:
    """Whether a byte is not zero."""
    return body.compare("ne", byte, body.constant(0, "i8"))


_LOADED: dict[str, Callable[[Body, Value], Value]] = {"i1": _bit, "i8": flipped}
"""By element type: the type in which upstream ops see a stored value, if it differs."""
_STORED: dict[str, Callable[[Body, Value], Value]] = {
    "i1": lambda body, bit: body.cast("arith.extui", bit, "i8"),
    "i8": flipped,
}
"""By element type: how a result of upstream ops is stored, where that is another."""
