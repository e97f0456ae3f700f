"""Compiled reductions over axes equal the reference, on odd shapes, every axis, many equal quantized values."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, Attributes, check, check_op, check_variants, ends, quantization, tensor
from graphs import graph
from together import variants_together

from qdialect.arithmetic import Rounding
from qdialect.dialect import ArgMaxOp, ArgMinOp, L2NormalizeOp, ReduceMaxOp, ReduceMinOp, SumOp, build
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.ir._mlir import ir

SHAPES = [(1,), (7,), (70,), (3, 5), (2, 3, 66), (2, 5, 7, 21), (1, 2, 2, 64), (300, 3), (2, 300), (3, 1, 257)]


@variants_together
@pytest.mark.parametrize("op", [ArgMaxOp, ArgMinOp])
@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_arg(op: Any, number: int) -> None:
    shape, source = SHAPES[number], EIGHT_BIT[number % 2]
    rng = np.random.default_rng(number)
    values = rng.choice(np.array([-128, 0, 3, 127]), shape).astype(np.int64).astype(NUMPY_DTYPES[source])
    for axis in range(len(shape)):
        element = ("i32", "i64")[(number + axis) % 2]
        keep_dims, last = bool((number + axis) % 3), bool((number // 2 + axis + (op is ArgMaxOp)) % 2)
        check_op(op, [tensor(shape, source)], element, [values], axis=axis, keep_dims=keep_dims, last=last)


AXES = [
    *(((2, 5, 7, 19), axes) for axes in ((0,), (1, 2), (3,), (2, 3), (1, 3), (0, 1, 2, 3))),
    *(((70,), (0,)), ((3, 66), (1,)), ((3, 66), (0,)), ((1, 2, 2, 64), (1, 2))),
]


@variants_together
@pytest.mark.parametrize("op", [ReduceMaxOp, ReduceMinOp])
@pytest.mark.parametrize(("number", "keep_dims"), list(product(range(len(AXES)), (False, True))))
def test_extreme(op: Any, number: int, keep_dims: bool) -> None:
    (shape, axes), element = AXES[number], EIGHT_BIT[number % 2]
    check_op(op, [tensor(shape, element)], element, axes=axes, keep_dims=keep_dims)


@variants_together
@pytest.mark.parametrize("number", range(len(AXES)))
def test_sum(number: int) -> None:
    (shape, axes), source, result = AXES[number], EIGHT_BIT[number % 2], EIGHT_BIT[number // 2 % 2]
    attributes: Attributes = quantization(source, result, (0.05, 0.7)) | {"axes": axes, "keep_dims": bool(number % 3)}
    variants = [attributes | {"rounding": rounding} for rounding in Rounding]
    check_variants(SumOp, [tensor(shape, source)], result, variants)


@variants_together
@pytest.mark.parametrize("shape", [(1,), (7,), (70,), (3, 5), (2, 3, 66), (2, 5, 7, 21), (1, 2, 2, 64), (2, 9000)])
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_l2_normalize(shape: tuple[int, ...], element: str) -> None:
    dtype = NUMPY_DTYPES[element]
    rng = np.random.default_rng(len(shape))
    low, high = ends(element)
    zero_point = (low, 5, high)[shape[-1] % 3]
    values = rng.integers(low, high, shape, endpoint=True).astype(dtype)
    # A row of zeros, and rows whose squares add up to little.
    quiet = np.full(shape, zero_point, dtype=dtype)
    quiet[..., :1] = min(zero_point + 1, high)

    def body(x: ir.Value) -> ir.Value:
        return build(L2NormalizeOp, x, element=element, input_zero_point=zero_point).output

    module = graph([tensor(shape, element)], body)
    check(module, [values], [np.full(shape, zero_point, dtype=dtype)], [quiet])
