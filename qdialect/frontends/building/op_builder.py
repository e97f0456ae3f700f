"""Builds ops of a function at the location of what is emitted: single ops, integer and float32 arithmetic, sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic.expressions import Expression, fold
from qdialect.arithmetic.float32 import ALGORITHMS
from qdialect.dialect import build
from qdialect.dialect.constants import constant, is_repeated
from qdialect.dialect.f32_ops import IN_FLOAT64
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of, shape_of
from qdialect.frontends.building.checks import Array, Budget, Interface, Shape, interface_attributes
from qdialect.ir._mlir import func, ir
from qdialect.ir.context import file_location

Op = TypeVar("Op", bound=qnn.QnnOp)

# Numbers of the predicates of arith.cmpf and arith.cmpi.
_FLOAT_PREDICATES = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}
_INTEGER_PREDICATES = {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7, "ugt": 8, "uge": 9}
F32 = Callable[..., ir.Value]
"""`OpBuilder.f32`."""
_ARITHMETIC = ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "negf")


class OpBuilder:
    """Ops and constants, all at one location until `enter` names another."""

    def __init__(self, file_name: str, budget: Budget | None = None) -> None:
        self._budget = budget
        self._file = file_location(file_name)
        self._location: ir.Location = self._file

    def location_of(self, name: str) -> ir.Location:
        """A name of the model over the file's."""
        return ir.Location.name(name, self._file)

    def enter(self, name: str) -> None:
        """Emit the following ops for what the model calls `name`."""
        self._location = self.location_of(name)

    def function(self, module: ir.Module, inputs: Sequence[Interface], results: Sequence[Interface]) -> ir.Block:
        """The empty block of a public function ``@main`` of the module."""
        with ir.InsertionPoint(module.body):
            types = [tensor.type() for tensor in inputs], [tensor.type() for tensor in results]
            function = func.FuncOp("main", types, visibility="public")
            function.arg_attrs = interface_attributes(inputs)
            function.res_attrs = interface_attributes(results)
        return function.add_entry_block([self.location_of(tensor.name) for tensor in inputs])

    def constant(self, array: Array, location: ir.Location | None = None) -> ir.Value:
        """A constant at the location of the op being emitted, unless `location` is given.

        Raises `UnsupportedError` where the budget does not hold it.
        """
        location = location or self._location
        if is_repeated(array):
            return constant(array, loc=location)
        if self._budget is not None:
            self._budget.spend_constant(array.shape, array.dtype.itemsize)
        return constant(np.ascontiguousarray(array).reshape(array.shape), loc=location)

    def build(self, op_class: type[Op], *operands: ir.Value | None, element: str, **attributes: Any) -> ir.Value:
        """An op of what is being emitted; its result."""
        op = build(op_class, *operands, element=element, loc=self._location, **attributes)
        return op.operation.results[0]

    def upstream(self, name: str, *operands: ir.Value, in_float64: bool = False) -> ir.Value:
        """An element-wise upstream op of what is being emitted, on tensors of one type, which its result has, too.

        With `in_float64` a transcendental function is rounded from float64, not evaluated in float32.
        """
        attributes = {IN_FLOAT64: ir.UnitAttr.get()} if in_float64 and name in ALGORITHMS else {}
        created = ir.Operation.create(name, [operands[0].type], list(operands), attributes, loc=self._location)
        return created.results[0]

    def compare(self, predicate: str, lhs: ir.Value, rhs: ir.Value | float, *, is_unsigned: bool = False) -> ir.Value:
        """i1 where ``lhs predicate rhs``: eq, ne, lt, le, gt or ge; of floats ordered, but for ne.

        Of integers the order is that of a true i1, which counts as 1, and of others where it `is_unsigned`.
        """
        element = element_of(lhs.type)
        name, number = "arith.cmpf", _FLOAT_PREDICATES[predicate]
        if element != "f32":
            sign = "" if predicate in ("eq", "ne") else "u" if is_unsigned or element == "i1" else "s"
            name, number = "arith.cmpi", _INTEGER_PREDICATES[sign + predicate]
        bits = ir.RankedTensorType.get(list(shape_of(lhs.type)), ir.IntegerType.get_signless(1))
        attributes = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)}
        created = ir.Operation.create(name, [bits], [lhs, self.filled(rhs, lhs)], attributes, loc=self._location)
        return created.results[0]

    def select(self, condition: ir.Value, lhs: ir.Value | float, rhs: ir.Value | float) -> ir.Value:
        """`lhs` where the i1 tensor `condition` holds, `rhs` elsewhere; one of them is a tensor."""
        like = lhs if isinstance(lhs, ir.Value) else rhs
        assert isinstance(like, ir.Value)
        values = [condition, self.filled(lhs, like), self.filled(rhs, like)]
        return ir.Operation.create("arith.select", [like.type], values, loc=self._location).results[0]

    def filled(self, number: ir.Value | float, like: ir.Value) -> ir.Value:
        """A tensor of the type of `like` that holds a number everywhere; a tensor as it is."""
        if isinstance(number, ir.Value):
            return number
        dtype = NUMPY_DTYPES[element_of(like.type)]
        # Upstream integers are bits: 200 of an unsigned byte is -56.
        return self.constant(np.broadcast_to(np.array(number).astype(dtype), shape_of(like.type)))

    def expression(self, expression: Expression, *operands: ir.Value, in_float64: bool = False) -> ir.Value:
        """A function of f32 tensors of one shape, by the upstream ops of its tree.

        With `in_float64` transcendental functions are rounded from float64, not evaluated in float32.
        """
        shape = shape_of(operands[0].type)

        def number(value: float) -> ir.Value:
            return self.constant(np.broadcast_to(np.float32(value), shape))

        def node(op: str, operands: Sequence[ir.Value]) -> ir.Value:
            if op == "arith.cmpf":
                return self.compare("gt", *operands)
            return (
                self.select(*operands) if op == "arith.select" else self.upstream(op, *operands, in_float64=in_float64)
            )

        return fold(expression, operands, None, number, node)

    def convert(self, name: str, value: ir.Value, element: str) -> ir.Value:
        """`value` by an upstream conversion to another element type."""
        type_ = ir.RankedTensorType.get(list(shape_of(value.type)), ir.Type.parse(element))
        return ir.Operation.create(name, results=[type_], operands=[value], loc=self._location).results[0]

    def without_sign(self, value: ir.Value) -> ir.Value:
        """Integers as their bits, which is what upstream ops take."""
        element = element_of(value.type)
        return self.convert("tensor.bitcast", value, element[1:]) if element.startswith("u") else value

    def concatenate(self, values: Sequence[ir.Value], axis: int) -> ir.Value:
        """Values of one element type side by side along `axis`, at most all but one of them without elements."""
        values = [value for value in values if shape_of(value.type)[axis]]
        if len(values) == 1:
            return values[0]
        shape = list(shape_of(values[0].type))
        shape[axis] = sum(shape_of(value.type)[axis] for value in values)
        type_ = ir.RankedTensorType.get(shape, ir.RankedTensorType(values[0].type).element_type)
        dim = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)
        created = ir.Operation.create(
            "tensor.concat", results=[type_], operands=list(values), attributes={"dim": dim}, loc=self._location
        )
        return created.results[0]

    def reshape(self, value: ir.Value, shape: Shape) -> ir.Value:
        """`value` in another shape; itself where it has that shape."""
        if shape_of(value.type) == shape:
            return value
        return self.build(qnn.ReshapeOp, value, element=element_of(value.type), shape=shape)

    def transpose(self, value: ir.Value, order: Sequence[int]) -> ir.Value:
        """`value` with its dimensions in another order."""
        return self.build(qnn.TransposeOp, value, element=element_of(value.type), permutation=tuple(order))

    def rearranged(self, value: ir.Value, split: Shape, order: Sequence[int], shape: Shape) -> ir.Value:
        """`value` with its dimensions taken apart as `split`, reordered and put together as `shape`."""
        return self.reshape(self.transpose(self.reshape(value, split), order), shape)

    def number(self, number: float, shape: Shape) -> ir.Value:
        """An f32 tensor of one number."""
        return self.broadcast(self.constant(np.array(number, dtype=np.float32)), shape)

    def f32(self, name: str, *operands: ir.Value | float) -> ir.Value:
        """``arith.<name>`` or ``math.<name>`` of f32 tensors, which broadcast to one shape, and numbers."""
        shape = np.broadcast_shapes(*(shape_of(one.type) for one in operands if isinstance(one, ir.Value)))
        values = [
            self.broadcast(one, shape) if isinstance(one, ir.Value) else self.number(one, shape) for one in operands
        ]
        return self.upstream(f"arith.{name}" if name in _ARITHMETIC else f"math.{name}", *values)

    def broadcast(self, value: ir.Value, shape: Shape) -> ir.Value:
        """`value` repeated up to `shape`; itself where it has that shape."""
        if shape_of(value.type) == shape:
            return value
        return self.build(qnn.BroadcastOp, value, element=element_of(value.type), shape=shape)


# Upstream ops on tensors of plain numbers: integers, booleans and floats that stand for themselves.

_WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


@dataclass(frozen=True)
class Arithmetic:
    """Upstream ops of an emitter on tensors of one shape; a number among the operands stands for such a tensor.

    `is_unsigned` sets how integers are compared, divided and widened.
    """

    emitter: OpBuilder
    is_unsigned: bool = False

    def op(self, name: str, first: ir.Value, *others: ir.Value | float) -> ir.Value:
        """The op `name`, whose result has the type of its operands; ``{s}`` in the name is the sign of the type."""
        values = [self.emitter.filled(other, first) for other in others]
        return self.emitter.upstream(name.format(s=self._sign(first)), first, *values)

    def compare(self, predicate: str, lhs: ir.Value, rhs: ir.Value | float) -> ir.Value:
        """i1 where ``lhs predicate rhs``: eq, ne, lt, le, gt or ge; of floats ordered, but for ne."""
        return self.emitter.compare(predicate, lhs, rhs, is_unsigned=self.is_unsigned)

    def select(self, condition: ir.Value, lhs: ir.Value | float, rhs: ir.Value | float) -> ir.Value:
        """`lhs` where `condition` holds, `rhs` elsewhere; one of them is a tensor."""
        return self.emitter.select(condition, lhs, rhs)

    def convert(self, name: str, value: ir.Value, element: str) -> ir.Value:
        """`value` by an upstream conversion."""
        return self.emitter.convert(name, value, element)

    def resize(self, value: ir.Value, element: str) -> ir.Value:
        """An integer or i1 with the width of `element`."""
        found = element_of(value.type)
        if _WIDTHS[found] == _WIDTHS[element]:
            return value
        widens = "arith.extui" if self.is_unsigned or found == "i1" else "arith.extsi"
        return self.convert(widens if _WIDTHS[found] < _WIDTHS[element] else "arith.trunci", value, element)

    def _sign(self, value: ir.Value) -> str:
        """Of a true i1, which counts as 1, the sign bit is set."""
        return "u" if self.is_unsigned or element_of(value.type) == "i1" else "s"


# Reductions of f32 values and of integers.


def reduced(
    emitter: OpBuilder, op_class: type[qnn.F32ReduceOp], value: ir.Value, axes: Shape, keep_dims: bool = True
) -> ir.Value:
    """A reduction of an f32 value over `axes`."""
    return emitter.build(op_class, value, element="f32", axes=axes, keep_dims=keep_dims)


def ordered_sum(emitter: OpBuilder, value: ir.Value, axes: Shape, keep_dims: bool = True) -> ir.Value:
    """The sum of an f32 value over `axes`, one term after another."""
    return emitter.build(qnn.F32SumOp, value, element="f32", axes=axes, keep_dims=keep_dims, in_order=True)


_F32_REDUCTIONS = {"max": qnn.F32MaxOp, "min": qnn.F32MinOp, "prod": qnn.F32ProdOp, "sum": qnn.F32SumOp}
_INTEGER_REDUCTIONS = {"max": qnn.IntMaxOp, "min": qnn.IntMinOp, "prod": qnn.IntProdOp, "sum": qnn.IntSumOp}


def reduced_numbers(emitter: OpBuilder, kind: str, value: ir.Value, axes: Shape, keep_dims: bool = True) -> ir.Value:
    """The largest, smallest, product or sum (``"max"``) of f32 numbers or integers over `axes`."""
    element = element_of(value.type)
    op_class = (_F32_REDUCTIONS if element == "f32" else _INTEGER_REDUCTIONS)[kind]
    return emitter.build(op_class, value, element=element, axes=axes, keep_dims=keep_dims)


# Sums of f32 values in blocks: a row becomes partial sums side by side, and these are added last.
#
# The error of a sum grows with the number of terms that are added one after another: n for a row, and n / b + b in
# blocks (N. Higham, Accuracy and Stability of Numerical Algorithms, 4.2).  Partial sums are vectors, too.

_LANES = 16
_FEW = 32


def blocked_sum(emitter: OpBuilder, value: ir.Value, axes: Sequence[int], keep_dims: bool = True) -> ir.Value:
    """The sum of an f32 value over `axes`, which are ascending and with `keep_dims` stay as extents of 1."""
    runs: list[list[int]] = []
    for axis in axes:
        if runs and runs[-1][-1] == axis - 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    for run in reversed(runs):
        value = _sum_of_run(emitter, value, run, keep_dims)
    return value


def _sum_of_run(emitter: OpBuilder, value: ir.Value, run: Sequence[int], keep_dims: bool) -> ir.Value:
    shape, first = shape_of(value.type), run[0]
    before, after = shape[:first], shape[run[-1] + 1 :]
    count = math.prod(shape[axis] for axis in run)
    # Rows have partial sums by the op's definition, in an order that does not depend on how many numbers there are.
    block = _block(count) if after or len(run) > 1 else 1
    if block == 1:
        return reduced(emitter, qnn.F32SumOp, value, tuple(run), keep_dims)
    blocks = emitter.reshape(value, (*before, count // block, block, *after))
    partial = reduced(emitter, qnn.F32SumOp, blocks, (first,), keep_dims=False)
    total = reduced(emitter, qnn.F32SumOp, partial, (first,), keep_dims=False)
    return emitter.reshape(total, (*before, *(1 for _ in run), *after)) if keep_dims else total


def _block(count: int) -> int:
    """How many partial sums a row of `count` numbers has: those of a vector, else the divisor nearest to the root."""
    if count <= _FEW:
        return 1
    if count % _LANES == 0:
        return _LANES
    return max(divisor for divisor in range(1, math.isqrt(count) + 1) if count % divisor == 0)
