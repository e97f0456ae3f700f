"""Queries of patterns on the ops around their root, and changed copies of ops."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np

from qdialect.arithmetic import QuantParams, same_scale
from qdialect.dialect import AnyContraction, ConvTranspose2DOp, MatMulOp, PadOp, QnnOp, ResizeBilinearOp, build
from qdialect.dialect.constants import constant_value
from qdialect.dialect.movement_ops import SameElementOp
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of
from qdialect.ir._mlir import ir

Op = TypeVar("Op", bound=QnnOp)


def producer(value: ir.Value) -> ir.OpView | None:
    """The op whose result `value` is; None for a block argument."""
    owner = value.owner
    return owner if isinstance(owner, ir.OpView) else None


def produced_by(value: ir.Value, op_class: type[Op]) -> Op | None:
    """The op whose result `value` is, where it is of `op_class`."""
    owner = value.owner
    return owner if isinstance(owner, op_class) else None


def users(value: ir.Value) -> list[ir.OpView]:
    """The ops that use `value`, once for each use."""
    return [use.owner for use in value.uses]


EXTEND = "arith.extf"
_CHOOSING = ("arith.maximumf", "arith.minimumf", "arith.negf", "arith.select", "math.absf", "tensor.concat")
"""Ops whose results are numbers of their operands, but for signs."""
_MAX_DEPTH = 8


def is_exact(value: ir.Value, element: str, depth: int = _MAX_DEPTH) -> bool:
    """Whether the f32 numbers of `value` are all of the type `element` already."""
    array = constant_value(value)
    if array is not None:
        with np.errstate(over="ignore"):
            rounded = array.astype(NUMPY_DTYPES[element]).astype(np.float32)
        return np.array_equal(array.view(np.int32), rounded.view(np.int32))
    op = producer(value)
    if op is None or depth == 0:
        return False
    name, operands = op.operation.name, list(op.operation.operands)
    if name == EXTEND:
        return element_of(operands[0].type) == element
    if isinstance(op, PadOp):
        return op.value == 0 and is_exact(op.input, element, depth - 1)
    if isinstance(op, SameElementOp) and not isinstance(op, ResizeBilinearOp):
        return is_exact(op.input, element, depth - 1)
    if name not in _CHOOSING:
        return False
    return all(is_exact(one, element, depth - 1) for one in operands[name == "arith.select" :])


def second_use(value: ir.Value) -> str | None:
    """Why `value` cannot be taken away from its one user, or None where it has one use."""
    count, op = len(users(value)), producer(value)
    name = "the function" if op is None else op.operation.name
    return None if count == 1 else f"needs the result of '{name}' alone, but it has {count} uses"


def differences(**pairs: tuple[Any, Any]) -> str | None:
    """The first pair (expected, found) whose sides differ, as a reason; None where all agree."""
    for name, (wanted, found) in pairs.items():
        if wanted != found:
            return f"{name} must be {_text(wanted)}, but got {_text(found)}"
    return None


Scales = float | tuple[float, ...]


def scale_difference(name: str, wanted: Scales, found: Scales) -> str | None:
    """As `differences` for one attribute of scales; those that are the same float32 numbers agree."""
    return None if same_scale(wanted, found) else differences(**{name: (wanted, found)})


def quantization_difference(name: str, wanted: QuantParams, found: QuantParams) -> str | None:
    """How `found`, the attributes ``<name>_scale`` and ``<name>_zero_point``, differs from `wanted`, as a reason."""
    reason = scale_difference(f"{name}_scale", wanted.scale, found.scale)
    return reason or differences(**{f"{name}_zero_point": (wanted.zero_point, found.zero_point)})


def same_quantization(first: QuantParams, second: QuantParams) -> bool:
    """Whether quantized values at either stand for the same float32 numbers."""
    return same_scale(first.scale, second.scale) and first.zero_point == second.zero_point


def not_constant(contraction: AnyContraction, *, is_fused: bool = False) -> str | None:
    """Which operand that must be constant is not, as a reason: the bias, the weight but that of a `qnn.matmul`.

    In a fused op, the weight must be so of a `qnn.conv_transpose2d` alone.
    """
    is_any = not isinstance(contraction, ConvTranspose2DOp) if is_fused else isinstance(contraction, MatMulOp)
    for name in ("bias",) if is_any else ("weight", "bias"):
        value = getattr(contraction, name)
        if value is not None and constant_value(value) is None:
            return f"needs a constant {name}"
    return None


def rebuilt(op: Op, *operands: ir.Value | None, element: str | None = None, **changes: Any) -> Op:
    """A copy of `op` at the insertion point with other operands and some attributes changed.

    Without `operands` it keeps its own; `element` is the element type of the result where it changes.
    """
    values = operands or tuple(op.operation.operands)
    kept = element or element_of(op.operation.results[0].type)
    return build(type(op), *values, element=kept, **{**op.attribute_values(), **changes})


def _text(value: Any) -> str:
    return str(list(cast("tuple[object, ...]", value))) if isinstance(value, tuple) else str(value)
