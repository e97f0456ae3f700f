"""Compiled functions of two tensors equal the reference: broadcasting, mixed signs, ends of ranges, exact ties."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, Attributes, check_op, ends, tensor
from together import variants_together

from qdialect.arithmetic import PairArithmetic, Rounding, SubArithmetic
from qdialect.dialect import DivOp, MaximumOp, MinimumOp, PreluOp, SquaredDifferenceOp, SubOp
from qdialect.dialect.type_constraints import NUMPY_DTYPES

BROADCASTS = [
    ((2, 5, 7, 19), (2, 5, 7, 19)),
    ((1, 5, 1, 19), (2, 1, 7, 1)),
    ((3, 4), ()),
    ((19,), (4, 3, 19)),
    ((70,), (1,)),
]
TYPES = list(product(EIGHT_BIT, EIGHT_BIT, EIGHT_BIT))
OPS: list[tuple[Any, Attributes]] = [
    *((SubOp, {"arithmetic": arithmetic}) for arithmetic in SubArithmetic),
    *((DivOp, {"arithmetic": arithmetic}) for arithmetic in PairArithmetic),
    *((PreluOp, {"arithmetic": arithmetic}) for arithmetic in PairArithmetic),
    (MaximumOp, {}),
    (MinimumOp, {}),
    (SquaredDifferenceOp, {}),
]


def parameters(types: tuple[str, str, str], number: int) -> Attributes:
    left, right, result = types
    low, high = ends(result)
    return {
        "lhs_scale": 0.05,
        "lhs_zero_point": ends(left)[number % 2],
        "rhs_scale": (0.05, 0.031, 20.0)[number % 3],
        "rhs_zero_point": ends(right)[number // 2 % 2],
        "output_scale": (0.07, 2.5, 0.0009)[number // 3 % 3],
        "output_zero_point": low + 100,
        "output_min": low + 1,
        "output_max": high - 2,
    }


@variants_together
@pytest.mark.parametrize("number", range(len(OPS)))
@pytest.mark.parametrize("broadcast", range(len(BROADCASTS)))
def test_pair(number: int, broadcast: int) -> None:
    op, how = OPS[number]
    left, right = BROADCASTS[broadcast]
    types = TYPES[(number * len(BROADCASTS) + broadcast) % 8]
    attributes = parameters(types, number + broadcast) | how
    if op is SubOp:
        attributes["rounding"] = list(Rounding)[broadcast]
    check_op(op, [tensor(left, types[0]), tensor(right, types[1])], types[2], **attributes)


@variants_together
@pytest.mark.parametrize("number", range(len(OPS)))
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_every_pair_of_values(number: int, element: str) -> None:
    op, how = OPS[number]
    low, high = ends(element)
    values = np.arange(low, high + 1).astype(NUMPY_DTYPES[element])
    attributes: Attributes = {"lhs_scale": 0.5, "rhs_scale": 0.25, "output_scale": 1.0, **how}
    attributes |= {"lhs_zero_point": low + 3, "rhs_zero_point": high - 40, "output_zero_point": low + 120}
    attributes |= {"output_min": low, "output_max": high}
    inputs = [values.reshape(256, 1), values.reshape(1, 256)]
    check_op(op, [tensor((256, 1), element), tensor((1, 256), element)], element, inputs, **attributes)


@variants_together
@pytest.mark.parametrize("op", [MaximumOp, MinimumOp])
@pytest.mark.parametrize("types", [("i8", "i8", "i8"), ("ui8", "ui8", "ui8"), ("i8", "ui8", "i8")])
def test_extreme_of_one_quantization(op: Any, types: tuple[str, str, str]) -> None:
    attributes: Attributes = {f"{name}_scale": 0.1 for name in ("lhs", "rhs", "output")}
    attributes |= {f"{name}_zero_point": 5 for name in ("lhs", "rhs", "output")}
    low, high = ends(types[2])
    attributes |= {"output_min": low + 9, "output_max": high - 9}
    check_op(op, [tensor((3, 67), types[0]), tensor((3, 67), types[1])], types[2], **attributes)
