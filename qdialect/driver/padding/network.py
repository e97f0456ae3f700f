"""A network for the largest extents, changed so that entries of padding count for nothing, and the proof of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from qdialect.dialect import BroadcastOp, ReshapeOp, build
from qdialect.dialect.constants import CONSTANT_OPS, constant, constant_value
from qdialect.dialect.type_constraints import dtype_of, shape_of
from qdialect.driver.padding.rules import RULES, Axes, Side, Site
from qdialect.ir import context
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import error_at, op_error
from qdialect.lowering.qnn_to_linalg.to_linalg import main_function
from qdialect.support.interface import Array

PADDING = "qdialect.padding"
"""The name of the input that a padded network has more: how many entries of each open extent are padding."""

_AT_LEAST = 5
"""The number of a predicate of arith.cmpi."""


def padded(network: ir.Module, smaller: Sequence[ir.Module], side: Side) -> tuple[list[Axes], list[Axes]]:
    """Change `network` so that it computes what `smaller` ones do; gives which extents of its inputs and outputs vary.

    All of these extents have the same number of entries more than in a smaller network. They are entries of padding at
    `side`, 0 in inputs; their number is the last input. An extent that varies is one whose entries are computed alone,
    or whose sums and extremes leave padding out; constants along it begin or end as those of smaller networks.  Raises
    `CompileError` at the first op for which that is not proven.
    """
    found = compared(network, smaller, side)
    _Change(network, side).apply(found.sums)
    function = main_function(network)
    *arguments, _ = function.regions[0].blocks[0].arguments
    *_, end = function.regions[0].blocks[0].operations
    context.verify(network)
    return [found.axes[value] for value in arguments], [found.axes[value] for value in end.operands]


def compared(network: ir.Module, smaller: Sequence[ir.Module], side: Side) -> Comparison:
    """The extents that vary between a network and `smaller` ones; raises `CompileError` as `padded` does."""
    found = [Comparison(network, other, side) for other in smaller]
    most = max(one.difference for one in found)
    for one in found:
        one.compare(most)
    for other in found[1:]:
        if other.axes != found[0].axes:
            raise error_at(main_function(network).location, "the same extents must vary between all networks")
    return found[0]


def work_of(network: ir.Module) -> int:
    """Multiply-accumulates of the matrix products of a network, and elements that its ops give."""
    operations = [op.operation for op in main_function(network).regions[0].blocks[0].operations]
    computed = [op for op in operations if op.name not in CONSTANT_OPS and len(op.results)]
    found = [op for op in computed if op.name.endswith(("matmul", "dense"))]
    products = sum(math.prod(shape_of(op.results[0].type)) * shape_of(op.operands[0].type)[-1] for op in found)
    return products + sum(math.prod(shape_of(op.results[0].type)) for op in computed)


class Comparison:
    """A network and a smaller one, op by op."""

    def __init__(self, network: ir.Module, smaller: ir.Module, side: Side) -> None:
        self._blocks = [main_function(module).regions[0].blocks[0] for module in (network, smaller)]
        self._location = main_function(network).location
        self._side = side
        self._numbers: tuple[dict[ir.Value, int], dict[ir.Value, int]] = ({}, {})
        self._most = 0
        self._is_zero: dict[ir.Value, bool] = {}
        self.axes: dict[ir.Value, Axes] = {}
        """Which extents of a value vary."""
        self.sums: list[tuple[ir.Operation, int, tuple[int, ...], float]] = []
        """Ops that read whole extents: the operand, the dimensions, and what an entry of padding must be there."""
        self.difference = self._difference()
        """Entries that the smaller network has less."""

    def _difference(self) -> int:
        arguments = [list(block.arguments) for block in self._blocks]
        if len(arguments[0]) != len(arguments[1]):
            raise error_at(self._location, "networks of two extents must have as many inputs")
        found = {a - b for one in zip(*arguments, strict=True) for a, b in _pairs(*one) if a != b}
        if len(found) != 1 or min(found) < 1:
            raise error_at(
                self._location, f"inputs must differ by one number of entries, but differ by {sorted(found)}"
            )
        return found.pop()

    def compare(self, most: int) -> None:
        """Find what varies, with `most` entries of padding.

        Raises `CompileError` where nothing proves that both networks compute the same.
        """
        self._most = most
        for one, other in zip(*(block.arguments for block in self._blocks), strict=True):
            self._add(one, other)
            self._is_zero[one] = True
        for one, other in zip_longest(*(block.operations for block in self._blocks)):
            if one is None or other is None:
                raise error_at(self._location, "networks of two extents must have as many ops")
            self._compare(one.operation, other.operation)

    def _add(self, value: ir.Value, other: ir.Value) -> None:
        for numbers, one in zip(self._numbers, (value, other), strict=True):
            numbers[one] = len(numbers)
        if len(shape_of(value.type)) != len(shape_of(other.type)):
            raise error_at(self._location, "values must have the same rank for all extents")
        pairs = _pairs(value, other)
        if any(a - b not in (0, self.difference) for a, b in pairs):
            shapes = f"{list(shape_of(value.type))} and {list(shape_of(other.type))}"
            raise error_at(self._location, f"extents must vary by {self.difference}, but got {shapes}")
        self.axes[value] = frozenset(axis for axis, (a, b) in enumerate(pairs) if a != b)

    def _compare(self, op: ir.Operation, other: ir.Operation) -> None:
        operands = [
            [numbers[value] for value in one.operands] for numbers, one in zip(self._numbers, (op, other), strict=True)
        ]
        if op.name != other.name or operands[0] != operands[1]:
            raise op_error(op, f"must be there for all extents, but there is '{other.name}' for others")
        for pair in zip(op.results, other.results, strict=True):
            self._add(*pair)
        if op.name == "func.return":
            return
        if op.name in CONSTANT_OPS:
            self._compare_constants(op, other)
            return
        axes = [self.axes[value] for value in op.operands]
        results = [self.axes[value] for value in op.results]
        is_zero = [self._is_zero[value] for value in op.operands]
        site = Site(op, other, self._side, axes, results, is_zero, self._most, self.difference)
        if not any((*axes, *results)):
            site.check_attributes()
        elif len(results) != 1 or op.name not in RULES:
            site.refuse("nothing shows that it does")
        else:
            RULES[op.name](site)
        for value in op.results:
            self._is_zero[value] = site.gives_zero
        self.sums += [(op, *one) for one in site.masked]

    def _compare_constants(self, op: ir.Operation, other: ir.Operation) -> None:
        value, lesser = op.results[0], other.results[0]
        arrays = [constant_value(value), constant_value(lesser)]
        if arrays[0] is None or arrays[1] is None:
            if str(op.attributes["value"]) != str(other.attributes["value"]):
                raise op_error(op, "must be the same for all extents")
            self._is_zero[value] = False
            return
        part = arrays[0]
        for axis in self.axes[value]:
            count = shape_of(lesser.type)[axis]
            kept = slice(count) if self._side is Side.BACK else slice(part.shape[axis] - count, None)
            part = part[(slice(None),) * axis + (kept,)]
        if not _same_bits(part, arrays[1]):
            raise op_error(op, "must have the entries that it has for smaller extents, but they depend on them")
        self._is_zero[value] = not arrays[0][(0,) * arrays[0].ndim] if _is_splat(arrays[0]) else not arrays[0].any()


def _pairs(value: ir.Value, other: ir.Value) -> list[tuple[int, int]]:
    return list(zip(shape_of(value.type), shape_of(other.type), strict=True))


def _is_splat(array: Array) -> bool:
    return array.size > 0 and not any(array.strides)


def _same_bits(one: Array, other: Array) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.size == 0:
        return True
    if _is_splat(one) and _is_splat(other):
        one, other = (array[(slice(1),) * array.ndim] for array in (one, other))
    return np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


class _Change:
    """A network that gets the number of entries of padding as its last input."""

    def __init__(self, network: ir.Module, side: Side) -> None:
        self._function = main_function(network)
        self._block = self._function.regions[0].blocks[0]
        self._side = side
        self._masks: dict[int, ir.Value] = {}

    def apply(self, sums: Sequence[tuple[ir.Operation, int, tuple[int, ...], float]]) -> None:
        """Add the input, and put into operands of `sums` what an entry of padding must be."""
        with self._function.context, ir.Location.unknown():
            type_ = ir.RankedTensorType.get([1], ir.IntegerType.get_signless(32))
            self._count = self._block.add_argument(type_, ir.Location.unknown())
            self._declare(type_)
            for op, index, axes, number in sums:
                for axis in axes:
                    op.operands[index] = self._masked(op, op.operands[index], axis, number)

    def _declare(self, type_: ir.Type) -> None:
        attributes = self._function.attributes
        function_type = ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value)
        results = list(function_type.results)
        attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([*function_type.inputs, type_], results))
        count = len(function_type.inputs)
        known = (
            list(ir.ArrayAttr(attributes["arg_attrs"])) if "arg_attrs" in attributes else [ir.DictAttr.get({})] * count
        )
        attributes["arg_attrs"] = ir.ArrayAttr.get([*known, ir.DictAttr.get({"qnn.name": ir.StringAttr.get(PADDING)})])

    def _masked(self, user: ir.Operation, value: ir.Value, axis: int, number: float) -> ir.Value:
        """`value` with `number` in entries of padding along `axis`."""
        shape = shape_of(value.type)
        element = ir.RankedTensorType(value.type).element_type
        neutral = np.broadcast_to(np.array(number).astype(dtype_of(value.type)), shape)
        mask, bits = self._mask(shape[axis]), ir.IntegerType.get_signless(1)
        with ir.InsertionPoint(user):
            location = user.location
            spread = [extent if at == axis else 1 for at, extent in enumerate(shape)]
            column = build(ReshapeOp, mask, element=bits, loc=location, shape=spread).output
            whole = build(BroadcastOp, column, element=bits, loc=location, shape=shape).output
            operands = [whole, value, constant(neutral, location)]
            kept = ir.RankedTensorType.get(list(shape), element)
            return ir.Operation.create("arith.select", [kept], operands, loc=location).results[0]

    def _mask(self, extent: int) -> ir.Value:
        """Which of `extent` entries are not padding."""
        if extent in self._masks:
            return self._masks[extent]
        word, bits = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(1)
        with ir.InsertionPoint.at_block_begin(self._block):
            places = np.arange(extent, dtype=np.int32)
            # From the back: less than the extent without padding, i.e. the distance from the end is at least its size.
            held = constant(places if self._side is Side.FRONT else extent - 1 - places)
            count = build(BroadcastOp, self._count, element=word, shape=[extent]).output
            predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _AT_LEAST)
            type_ = ir.RankedTensorType.get([extent], bits)
            mask = ir.Operation.create("arith.cmpi", [type_], [held, count], {"predicate": predicate}).results[0]
        self._masks[extent] = mask
        return mask
