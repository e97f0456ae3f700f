"""Plain values: integers, booleans and floats that stand for themselves, computed by upstream ops.

Upstream ops know integers as bits without a sign, so unsigned tensors become such on the way in and unsigned again on
the way out; what depends on the sign is chosen by the type of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Protocol

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import Array, require
from qdialect.frontends.planning.broadcasting import broadcast_shape, operands_of_shape
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import Computed, Constant, F32Tensor, Plan, Tensor, known

INTEGERS = ("i8", "ui8", "i16", "ui16", "i32", "i64")


class Site(Protocol):
    """A node that is being planned."""

    @property
    def plan(self) -> Plan:
        """That of the graph."""
        ...

    @property
    def name(self) -> str:
        """What the model calls the result."""
        ...


Build = Callable[[Arithmetic, Sequence[ir.Value]], ir.Value]
"""``build(arithmetic, operands)`` gives the result, all of one shape and without a sign."""
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
    """What a value stands for in the plan."""
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
    """What `build` makes of `values`, which broadcast; its result becomes one of `element`."""
    shape = reduce(broadcast_shape, [value.shape for value in values])
    is_unsigned = any(value.element.startswith("u") for value in values)

    def emit(emitter: Emitter) -> Emitted:
        operands, is_channels_last = operands_of_shape(emitter, values, shape)
        result = build(Arithmetic(emitter, is_unsigned), [_without_sign(emitter, operand) for operand in operands])
        return (emitter.convert("tensor.bitcast", result, element) if element[0] == "u" else result), is_channels_last

    return site.plan.compute(site.name, shape, element, emit)


def _without_sign(emitter: Emitter, operand: ir.Value) -> ir.Value:
    element = element_of(operand.type)
    return emitter.convert("tensor.bitcast", operand, element[1:]) if element.startswith("u") else operand


def unary(site: Site, value: Value, element: str, build: OfOne) -> Value:
    """`elementwise` of one value."""
    return elementwise(site, [value], element, lambda s, operands: build(s, operands[0]))


def binary(site: Site, values: Sequence[Value], element: str, build: OfTwo) -> Value:
    """`elementwise` of two values."""
    return elementwise(site, values, element, lambda s, operands: build(s, operands[0], operands[1]))


def ternary(site: Site, values: Sequence[Value], element: str, build: OfThree) -> Value:
    """`elementwise` of three values."""
    return elementwise(site, values, element, lambda s, operands: build(s, operands[0], operands[1], operands[2]))


def constant_of(site: Site, array: Array) -> Value:
    """An array that is made while the model is read, as a value."""
    site.plan.budget.spend_constant(array.shape, array.dtype.itemsize)
    return known(site.name, np.ascontiguousarray(array))
