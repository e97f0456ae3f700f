"""Builds ops of a function at the location of what is being emitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from qdialect._mlir import func, ir
from qdialect.dialect import BroadcastOp, QnnOp, ReshapeOp, build
from qdialect.dialect.constants import constant, is_repeated
from qdialect.dialect.float_precision import IN_FLOAT64
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.budget import Budget
from qdialect.frontends.common import Array, Interface, Shape, interface_attributes
from qdialect.quant_math.expressions import Expression, fold
from qdialect.quant_math.float32 import ALGORITHMS

Op = TypeVar("Op", bound=QnnOp)

# arith.cmpf's number of "ordered and greater than".
_GREATER = 2


class OpBuilder:
    """Ops and constants, all at one location until `enter` names another."""

    def __init__(self, file_name: str, budget: Budget | None = None) -> None:
        self._budget = budget
        self._file = ir.Location.file(file_name, 0, 0)
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
        """A constant of what is being emitted, unless `location` says of what.

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

    def float_op(self, name: str, *operands: ir.Value, in_float64: bool = False) -> ir.Value:
        """An element-wise upstream op of what is being emitted, on f32 tensors of one shape; its result.

        With `in_float64` a transcendental function is rounded from float64, not evaluated in float32.
        """
        attributes = {IN_FLOAT64: ir.UnitAttr.get()} if in_float64 and name in ALGORITHMS else {}
        created = ir.Operation.create(name, [operands[0].type], list(operands), attributes, loc=self._location)
        return created.results[0]

    def compare(self, predicate: int, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """i1 where two tensors compare as the number of a `predicate` says: of arith.cmpf for floats, else of cmpi."""
        bits = ir.RankedTensorType.get(list(shape_of(lhs.type)), ir.IntegerType.get_signless(1))
        attributes = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)}
        name = "arith.cmpf" if element_of(lhs.type) == "f32" else "arith.cmpi"
        created = ir.Operation.create(name, [bits], [lhs, rhs], attributes, loc=self._location)
        return created.results[0]

    def select(self, condition: ir.Value, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """`lhs` where the i1 tensor `condition` holds, `rhs` elsewhere."""
        created = ir.Operation.create("arith.select", [lhs.type], [condition, lhs, rhs], loc=self._location)
        return created.results[0]

    def expression(self, expression: Expression, *operands: ir.Value, in_float64: bool = False) -> ir.Value:
        """A function of f32 tensors of one shape, by the upstream ops of its tree.

        With `in_float64` transcendental functions are rounded from float64, not evaluated in float32.
        """
        shape = shape_of(operands[0].type)

        def number(value: float) -> ir.Value:
            return self.constant(np.broadcast_to(np.float32(value), shape))

        def node(op: str, operands: Sequence[ir.Value]) -> ir.Value:
            if op == "arith.cmpf":
                return self.compare(_GREATER, *operands)
            return (
                self.select(*operands) if op == "arith.select" else self.float_op(op, *operands, in_float64=in_float64)
            )

        return fold(expression, operands, None, number, node)

    def convert(self, name: str, value: ir.Value, element: str) -> ir.Value:
        """`value` by an upstream conversion to another element type."""
        type_ = ir.RankedTensorType.get(list(shape_of(value.type)), ir.Type.parse(element))
        return ir.Operation.create(name, results=[type_], operands=[value], loc=self._location).results[0]

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
        return self.build(ReshapeOp, value, element=element_of(value.type), shape=shape)

    def number(self, number: float, shape: Shape) -> ir.Value:
        """An f32 tensor of one number."""
        return self.broadcast(self.constant(np.array(number, dtype=np.float32)), shape)

    def broadcast(self, value: ir.Value, shape: Shape) -> ir.Value:
        """`value` repeated up to `shape`; itself where it has that shape."""
        if shape_of(value.type) == shape:
            return value
        return self.build(BroadcastOp, value, element=element_of(value.type), shape=shape)
