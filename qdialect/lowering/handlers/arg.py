"""Where the extreme code of a row is: the largest of keys that hold the code above its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.diagnostics import CompileError
from qdialect.dialect import ArgMaxOp, ArgMinOp
from qdialect.dialect.reduction_ops import ArgOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.axes import OverAxes
from qdialect.lowering.kernel_text import Body
from qdialect.lowering.kernels.elementwise import MapOperand
from qdialect.lowering.kernels.reduction import Fold
from qdialect.lowering.program import Kernel


@dataclass(frozen=True)
class _Keys:
    """Unsigned keys: 8 bits of code above `places` bits that grow towards the place that wins among equal codes."""

    element: str
    places: int
    lanes: int


_NARROW, _WIDE = _Keys("i16", 8, 32), _Keys("i32", 24, 16)


@lowers(ArgMaxOp)
def _arg_max(lowering: GraphLowering, op: ArgMaxOp) -> None:
    _lower(lowering, op, is_max=True)


@lowers(ArgMinOp)
def _arg_min(lowering: GraphLowering, op: ArgMinOp) -> None:
    _lower(lowering, op, is_max=False)


def _lower(lowering: GraphLowering, op: ArgOp, is_max: bool) -> None:
    extent = shape_of(op.input.type)[op.axis]
    if extent > 1 << _WIDE.places:
        raise CompileError(f"must have at most 2^{_WIDE.places} elements along axis {op.axis}, but got {extent}")
    keys = _NARROW if extent <= 1 << _NARROW.places else _WIDE
    kernel = Kernel(lowering.program)
    places = MapOperand(_places(extent, keys, op.last), (1,))
    target = element_of(op.output.type)

    def finish(body: Body, acc: str, _: Sequence[str]) -> str:
        mask = body.constant((1 << keys.places) - 1, keys.element)
        place = body.binary("arith.andi", acc, mask, keys.element)
        if not op.last:
            place = body.binary("arith.subi", mask, place, keys.element)
        return body.cast("arith.extui", place, keys.element, target)

    over = OverAxes(op.input, op.output, (op.axis,), op.keep_dims)
    over.emit(lowering, kernel, _largest_key(keys, is_max), finish, keys.lanes, op.operation.name, [places])


def _places(extent: int, keys: _Keys, last: bool) -> NDArray[np.unsignedinteger]:
    order = np.arange(extent)
    dtype = {"i16": np.uint16, "i32": np.uint32}[keys.element]
    return (order if last else (1 << keys.places) - 1 - order).astype(dtype)


def _largest_key(keys: _Keys, is_max: bool) -> Fold:
    def emit(body: Body, acc: str, values: Sequence[str]) -> str:
        # The smallest code has the largest complement.
        code = values[0] if is_max else body.binary("arith.xori", values[0], body.constant(-1, "i8"), "i8")
        wide = body.cast("arith.extui", code, "i8", keys.element)
        high = body.binary("arith.shli", wide, body.constant(keys.places, keys.element), keys.element)
        key = body.binary("arith.ori", high, values[1], keys.element)
        return body.binary("arith.maxui", acc, key, keys.element)

    return Fold(keys.element, 0, emit, lambda body, a, b: body.binary("arith.maxui", a, b, keys.element))
