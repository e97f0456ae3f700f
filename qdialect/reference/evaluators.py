"""The registry of evaluators: from an op and its operands' values to its result's value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import QnnOp
from qdialect.support.registry import Registry

Array = NDArray[Any]
Arrays = Sequence[Array]
Evaluator = Callable[[Any, Arrays], Array]
"""``evaluator(op, operands)``; the interpreter converts the result to the element type of the op's result."""

Op = TypeVar("Op", bound=QnnOp)

EVALUATORS = Registry[Evaluator]("evaluator", "qdialect.reference")
"""By op name."""


def evaluates(*op_classes: type[Op]) -> Callable[[Callable[[Op, Arrays], Array]], Callable[[Op, Arrays], Array]]:
    """Register the decorated function as the meaning of a `qnn` op, or of several.

    What an op only hands over to a function is a row, ``evaluates(ClipOp)(lambda op, x: np.clip(x[0], ...))``.
    """

    def register(evaluator: Callable[[Op, Arrays], Array]) -> Callable[[Op, Arrays], Array]:
        EVALUATORS.add([op_class.OPERATION_NAME for op_class in op_classes], evaluator)
        return evaluator

    return register


def last_axis(array: Array, axis: int, function: Callable[[Array], Array]) -> Array:
    """`function`, which works along the last axis, along `axis`."""
    return np.moveaxis(function(np.moveaxis(array, axis, -1)), -1, axis)


def nearest_rows(indices: Array, extent: int) -> Array:
    """Negative indices counted from the end, those outside the nearest inside."""
    wide = indices.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + extent, wide), 0, extent - 1)
