"""Between constant ops and NumPy arrays."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect.movement_ops import ConstantOp
from qdialect.dialect.op_base import build
from qdialect.dialect.type_constraints import ANY_OR_EMPTY, ELEMENT_NAMES, NUMPY_DTYPES, dtype_of, element_of, shape_of
from qdialect.ir import resources
from qdialect.ir._mlir import ir

_BYTES, _NUMBER = re.compile(r'"0x([0-9A-Fa-f]*)"'), re.compile(r"0x[0-9A-Fa-f]+|-?[0-9][0-9.eE+-]*")

CONSTANT_OPS = ("qnn.constant", "arith.constant")


def constant(array: NDArray[Any], loc: ir.Location | None = None) -> ir.Value:
    """A `qnn.constant` with the shape, element type and values of `array`.

    One number that `np.broadcast_to` repeats is held once, whatever the shape.  Raises `KeyError` for a dtype that no
    tensor of the dialect has.
    """
    value = elements_attribute(array)
    return build(ConstantOp, element=ir.RankedTensorType(value.type).element_type, value=value, loc=loc).output


def elements_attribute(array: NDArray[Any]) -> ir.DenseElementsAttr:
    """The values of `array`, as `constant` holds them."""
    element = ir.Type.parse(ELEMENT_NAMES[array.dtype])
    if is_repeated(array):
        number, kind = array.flat[0].item(), ir.FloatAttr if isinstance(element, ir.FloatType) else ir.IntegerAttr
        type_ = ir.RankedTensorType.get(list(array.shape), element)
        return ir.DenseElementsAttr.get_splat(type_, kind.get(element, number))
    return ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=element, shape=list(array.shape))


def is_repeated(array: NDArray[Any]) -> bool:
    """Whether `array` is one number in memory, repeated."""
    return array.size > 1 and not any(array.strides)


def constant_value(value: ir.Value) -> NDArray[Any] | None:
    """The array behind `value`, or None where it is not a constant tensor of one of the dialect's element types.

    Reads `qnn.constant` and `arith.constant`; dtype and shape are those of the tensor type. The array is read-only.
    """
    owner = value.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.name not in CONSTANT_OPS:
        return None
    attr = owner.attributes["value"]
    if not isinstance(attr, ir.DenseElementsAttr) or ANY_OR_EMPTY.problem(value.type):
        return None
    return elements_array(attr, dtype_of(value.type), shape_of(value.type))


def missing_elements(operation: ir.Operation) -> str | None:
    """Why a constant op has no usable elements, to follow ``'name' op``; None for one that has them."""
    if operation.name not in CONSTANT_OPS:
        return None
    problem = resources.problem(operation.attributes["value"])
    return f"value must have its elements, but {problem}" if problem else None


def constants_of(module: ir.Module) -> list[NDArray[Any]]:
    """The constant tensors of every function of `module`."""
    functions = (function.operation for function in module.body.operations)
    operations = (op.operation for function in functions for op in function.regions[0].blocks[0].operations)
    values = [constant_value(op.results[0]) for op in operations if op.name in CONSTANT_OPS]
    return [value for value in values if value is not None]


def _bf16_bits(attr: ir.DenseElementsAttr) -> NDArray[np.uint16]:
    """The bits of bf16 numbers, which the bindings give as text alone: of many as one string of bytes."""
    body = str(attr)
    if (found := _BYTES.search(body)) is not None:
        return np.frombuffer(bytes.fromhex(found[1]), np.uint16)
    numbers = _NUMBER.findall(body.rpartition(" : ")[0])
    bfloat16 = NUMPY_DTYPES["bf16"]
    bits = [
        int(number, 16) if number.startswith("0x") else int(np.float32(number).astype(bfloat16).view(np.uint16))
        for number in numbers
    ]
    return np.array(bits, np.uint16)


def elements_array(attr: ir.DenseElementsAttr, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The values of a dense attribute as an array of `dtype` and `shape`; splats are broadcast, not copied."""
    if attr.is_splat:
        element = attr.get_splat_value()
        is_float = isinstance(element.type, ir.FloatType)
        scalar = ir.FloatAttr(element).value if is_float else ir.IntegerAttr(element).value
        return np.broadcast_to(np.asarray(scalar).astype(dtype), shape)
    is_bf16 = element_of(attr.type) == "bf16"
    held = _bf16_bits(attr) if is_bf16 else np.asarray(attr)
    array: NDArray[Any] = held.view(dtype).reshape(shape)
    array.flags.writeable = False
    return array
