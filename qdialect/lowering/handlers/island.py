"""An island of element-wise ops as one kernel: from stored tensors to the stored result of its root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp, DequantizeOp, InterpolatedLutOp, QuantizeOp
from qdialect.dialect.constants import constant_value, is_repeated
from qdialect.dialect.float_precision import IN_FLOAT64
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.locations import joined, names_of
from qdialect.lowering.graph import GraphLowering, lowers_each
from qdialect.lowering.handlers.f32 import dequantization, quantization
from qdialect.lowering.handlers.maps import AxisArray, Known, Source, Stored, map_stored
from qdialect.lowering.islands import MEMBERS
from qdialect.lowering.kernels.elementwise import VECTOR, Emit, flipped
from qdialect.lowering.kernels.interpolated_table import EmitLookup, InterpolatedTable
from qdialect.lowering.kernels.scalar_ops import SCALAR_OPS, scalar_type
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.lanes import TILE_LANES
from qdialect.quant_math.float32 import ALGORITHMS

_LONG = (*ALGORITHMS, "arith.divf")
"""Functions of which several vectors are computed side by side: each waits for its own results."""
_HALF = ("math.tanh",)
"""Of them those that keep four numbers of each element alive: half as many vectors fill the registers."""
_LOOKED_UP, _YMM = ("math.tanh", "math.erf"), 8
"""Those with tables of 16 numbers, which take two registers each with 256 bits: one vector at a time leaves some."""
_BYTES = ("i8", "ui8")

Held = dict[ir.Value, Value]
"""What has been computed of an element."""
Read = Callable[[Body, Held, Sequence[Value]], Value]
EmitNode = Callable[[Body, Held, Sequence[Value]], Value]


def lower_island(lowering: GraphLowering, op: Any) -> None:
    """Append the kernel whose root is `op`."""
    root: ir.Operation = op.operation
    members = lowering.islands.members(root)
    lowering.program.names = names_of(joined([member.location for member in members]))
    island = _Island(lowering, root, set(members))
    nodes = [(member.results[0], island.node(member)) for member in members]
    result = root.results[0]
    stored = _identity if isinstance(root.opview, QuantizeOp) else _STORED.get(element_of(result.type), _identity)

    def declare(kernel: Kernel) -> Emit:
        numbers = {
            value: kernel.number(f"number{i}", number, scalar_type(value))
            for i, (value, number) in enumerate(island.numbers.items())
        }
        island.declare_tables(kernel)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            held = dict(numbers)
            for value, emit in nodes:
                held[value] = emit(body, held, values)
            return stored(body, held[result])

        return emit

    target = Stored(lowering.result(result), shape_of(result.type))
    map_stored(lowering, target, island.sources, declare, root.name, island.width())


lowers_each(MEMBERS, lower_island, takes_arrays=True)


@dataclass
class _Island:
    """What the kernel of `root` reads."""

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
        for i, op in enumerate(self.lowering.islands.members(self.root)):
            view = op.opview
            if isinstance(view, InterpolatedLutOp):
                self._lookups[op] = InterpolatedTable.of(view).declare(kernel, f"table{i}")

    def node(self, op: ir.Operation) -> EmitNode:
        """What computes an element of a member."""
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
        lanes = strategy.row_function_lanes if has_row_number else strategy.function_lanes
        is_half = any(op.name in _HALF for op in self.members)
        return max(min(lanes, strategy.function_lanes // 2), TILE_LANES) if is_half else lanes

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
        if _is_splat(array):
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


def _byte(body: Body, bit: Value) -> Value:
    return body.cast("arith.extui", bit, "i8")


_LOADED: dict[str, Callable[[Body, Value], Value]] = {"i1": _bit, "i8": flipped}
"""By element type: what upstream ops see of a stored value, where that is another."""
_STORED: dict[str, Callable[[Body, Value], Value]] = {"i1": _byte, "i8": flipped}
"""By element type: how a result of upstream ops is stored, where that is another."""


def _is_splat(array: NDArray[Any]) -> bool:
    if is_repeated(array):
        return True
    raw = np.ascontiguousarray(array).view(f"i{array.itemsize}")
    return bool((raw == raw.flat[0]).all())
