"""Compiled reductions over axes equal the reference, on odd shapes, every axis, many equal codes."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, check_op, tensor

from qdialect.dialect import ArgMaxOp, ArgMinOp
from qdialect.dialect.type_constraints import NUMPY_DTYPES

SHAPES = [(1,), (7,), (70,), (3, 5), (2, 3, 66), (2, 5, 7, 21), (1, 2, 2, 64), (300, 3), (2, 300), (3, 1, 257)]


@pytest.mark.parametrize("op", [ArgMaxOp, ArgMinOp])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_arg(op: Any, last: bool, number: int) -> None:
    shape, source = SHAPES[number], EIGHT_BIT[number % 2]
    rng = np.random.default_rng(number)
    codes = rng.choice(np.array([-128, 0, 3, 127]), shape).astype(np.int64).astype(NUMPY_DTYPES[source])
    for axis in range(len(shape)):
        element = ("i32", "i64")[(number + axis) % 2]
        keep_dims = bool((number + axis) % 3)
        check_op(op, [tensor(shape, source)], element, [codes], axis=axis, keep_dims=keep_dims, last=last)
