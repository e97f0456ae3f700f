"""Where upstream ops leave their result undefined: LLVM calls it poison, and any number may stand for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Mask = NDArray[np.bool_]
_Rule = Callable[[Sequence[Array], np.dtype[Any]], Mask]


def undefined_elements(name: str, operands: Sequence[Array], dtype: np.dtype[Any]) -> Mask | None:
    """Where the op called `name` has no defined result of `dtype` for these operands; None where it always has one.

    That is a float that the integer type does not hold, a shift by the width of the type or more, and an integer
    division by zero or of the minimum by -1 (MLIR's arith dialect, LLVM's language reference).
    """
    rule = _RULES.get(name)
    return None if rule is None else rule(operands, dtype)


def _unsigned(array: Array) -> Array:
    return array.view(f"u{array.itemsize}") if array.dtype.kind == "i" else array


def _conversion(signed: bool) -> _Rule:
    def rule(operands: Sequence[Array], dtype: np.dtype[Any]) -> Mask:
        bits = 8 * dtype.itemsize
        low, end = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
        whole = np.trunc(operands[0].astype(np.float64))
        # A comparison with NaN is false.
        return ~((whole >= low) & (whole < end))

    return rule


def _shift(operands: Sequence[Array], dtype: np.dtype[Any]) -> Mask:
    return _unsigned(operands[1]) >= 8 * dtype.itemsize


def _unsigned_division(operands: Sequence[Array], _: np.dtype[Any]) -> Mask:
    return operands[1] == 0


def _signed_division(operands: Sequence[Array], dtype: np.dtype[Any]) -> Mask:
    minimum = np.iinfo(dtype.name).min
    return (operands[1] == 0) | ((operands[0] == minimum) & (operands[1] == -1))


_RULES: Mapping[str, _Rule] = {
    "arith.fptosi": _conversion(signed=True),
    "arith.fptoui": _conversion(signed=False),
    **dict.fromkeys(("arith.shli", "arith.shrsi", "arith.shrui"), _shift),
    **dict.fromkeys(("arith.divui", "arith.remui", "arith.ceildivui"), _unsigned_division),
    **dict.fromkeys(("arith.divsi", "arith.remsi", "arith.floordivsi", "arith.ceildivsi"), _signed_division),
}
