"""Reductions and contractions of f32 values: compiled they are the reference, and both what NumPy says in order."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import check, check_op, tensor
from graphs import graph
from numpy.typing import NDArray
from together import variants_together

import qdialect
from qdialect.dialect import F32Conv2DOp, F32MatmulOp, F32MaxOp, F32MinOp, F32ProdOp, F32SumOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter
from tools.float_errors import TRUTHS

REDUCTIONS = [
    ((7,), (0,)),
    ((70,), (0,)),
    ((3, 19), (1,)),
    ((3, 19), (0,)),
    ((2, 5, 7, 19), (1, 2)),
    ((2, 5, 7, 19), (0, 3)),
    ((2, 5, 7, 19), (1,)),
    ((2, 3, 5), (0, 1, 2)),
    # Along rows of 32 and more, in partial sums.
    ((17, 32), (1,)),
    ((3, 4, 85), (0, 2)),
    ((2, 3, 48), (1, 2)),
    ((3, 2, 35), (1, 2)),
    # Short rows that lie side by side are one row.
    ((3, 40, 7), (1, 2)),
    ((2, 9, 3, 16), (0, 2, 3)),
    ((2, 9, 3, 16), (0, 1, 2)),
]


@variants_together
@pytest.mark.parametrize("op", [F32SumOp, F32ProdOp, F32MaxOp, F32MinOp])
@pytest.mark.parametrize(("shape", "axes"), REDUCTIONS)
def test_reductions(op: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    check_op(op, [tensor(shape, "f32")], "f32", axes=axes, keep_dims=len(axes) == 2)


@variants_together
@pytest.mark.parametrize(("shape", "axes"), REDUCTIONS)
def test_sums_in_order(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    check_op(F32SumOp, [tensor(shape, "f32")], "f32", axes=axes, in_order=True)


def test_sums_in_order_are_without_partial_sums() -> None:
    x = np.random.default_rng(1).normal(size=(3, 85)).astype(np.float32)
    one = graph([tensor(x.shape, "f32")], lambda x: build(F32SumOp, x, element="f32", axes=(1,), in_order=True).output)
    np.testing.assert_array_equal(interpreter.run(one, [x])[0], np.add.accumulate(x, axis=1)[:, -1])


TRANSCENDENTAL = ("erf", "exp", "exp2", "expm1", "log", "log1p", "tanh")


def test_functions_in_float64_are_rounded_once() -> None:
    """All functions in one network, with the attribute and without; both differ in some last place."""
    x = np.concatenate([np.random.default_rng(3).normal(size=3000) * 4, [0.0, np.inf, np.nan, -np.inf, -0.0, 1e-40]])
    x, type_ = x.astype(np.float32), tensor((3006,), "f32")
    names = [f"math.{name} %x {note}" for name in TRANSCENDENTAL for note in ("{qnn.in_float64}", "")]
    lines = [f"  %y{i} = {name} : {type_}" for i, name in enumerate(names)]
    results, types = ", ".join(f"%y{i}" for i in range(len(names))), ", ".join([type_] * len(names))
    text = f"func.func @main(%x: {type_}) -> ({types}) {{\n{chr(10).join(lines)}\n  return {results} : {types}\n}}"
    module = qdialect.parse(text)
    check(module, [x])
    wanted = interpreter.run(module, [x])
    with np.errstate(all="ignore"):
        truths = [TRUTHS[name](x.astype(np.float64)).astype(np.float32) for name in TRANSCENDENTAL]
    for truth, in_float64, in_float32 in zip(truths, wanted[::2], wanted[1::2], strict=True):
        np.testing.assert_array_equal(in_float64, truth)
        assert (in_float32 != truth)[~np.isnan(truth)].any()


@pytest.mark.parametrize(("name", "subnormal", "smallest"), [("exp", -87.4, -103.97), ("exp2", -126.0, -150.0)])
def test_powers_that_are_subnormal_or_round_to_zero(name: str, subnormal: float, smallest: float) -> None:
    """Every number next to where the results end, many between, and far below."""
    ends = np.array([subnormal, smallest, smallest - 0.5, smallest - 1.5, -105.0, -151.0], np.float32).view(np.int32)
    near = (ends[:, None] + np.arange(-3000, 3000)).astype(np.int32).view(np.float32).reshape(-1)
    between = np.linspace(smallest - 3, subnormal + 1, 60_000)
    far = [-np.inf, np.inf, np.nan, -1e4, -1e9, -3e38, 0.0, -0.0, 1e-45, 88.8, 3e38]
    x = np.concatenate([near, between, np.resize(far, 1000)]).astype(np.float32)
    type_ = tensor(x.shape, "f32")
    module = qdialect.parse(
        f"func.func @main(%x: {type_}) -> {type_} {{ %y = math.{name} %x : {type_} return %y : {type_} }}"
    )
    check(module, [x])
    (wanted,) = interpreter.run(module, [x])
    assert (wanted == 0).any()
    assert ((wanted > 0) & (wanted < 2.0**-126)).any()


@variants_together
@pytest.mark.parametrize("op", [F32MaxOp, F32MinOp])
def test_extremes_of_special_numbers(op: Any) -> None:
    rows = [[0.0, -0.0, -1.0], [-0.0, -0.0, 1.0], [np.nan, 1, 2], [np.inf, -np.inf, 0], [-np.inf] * 3]
    check_op(op, [tensor((5, 3), "f32")], "f32", [np.array(rows, np.float32)], axes=(1,))
    for columns in (37, 85):
        wide = [np.roll([*row, *[row[-1]] * (columns - 3)], 5 * i) for i, row in enumerate(rows)]
        check_op(op, [tensor((5, columns), "f32")], "f32", [np.array(wide, np.float32)], axes=(1,))


@variants_together
@pytest.mark.parametrize("op", [F32MaxOp, F32MinOp])
def test_extremes_from_zero(op: Any) -> None:
    special = [[0.0, -0.0, -0.0], [1, 2, 3], [-1, -2, -3], [np.inf, -np.inf, 0], [np.nan, 1, 2], [-np.nan, 1, 2]]
    for columns in (3, 37, 300):
        rows = [[*row, *[row[-1]] * (columns - 3)] for row in special]
        x = np.array([np.roll(row, 5 * i) for i, row in enumerate(rows)], np.float32)
        for how in ({"from_zero": True}, {"nan_as_zero": True}, {"from_zero": True, "nan_as_zero": True}):
            check_op(op, [tensor(x.shape, "f32")], "f32", [x], axes=(1,), **how)
            check_op(op, [tensor(x.shape, "f32")], "f32", [x], axes=(0,), **how)


@variants_together
@pytest.mark.parametrize("op", [F32MaxOp, F32MinOp])
@pytest.mark.parametrize("index", [0, 64, 140, 4229])
@pytest.mark.parametrize("number", [100.0, -100.0, np.nan])
@pytest.mark.parametrize("shape", [(30, 141), (1, 235, 6, 3), (15, 2, 141)], ids=str)
def test_extremes_of_a_whole_tensor(op: Any, index: int, number: float, shape: tuple[int, ...]) -> None:
    """Wherever the largest number, the smallest and a NaN stand: many accumulators, and what they leave over."""
    values = np.random.default_rng(2).normal(size=30 * 141).astype(np.float32)
    values[index] = number
    for from_zero in (False, True):
        axes = tuple(range(len(shape)))
        check_op(op, [tensor(shape, "f32")], "f32", [values.reshape(shape)], axes=axes, from_zero=from_zero)


@variants_together
@pytest.mark.parametrize("op", [F32MaxOp, F32MinOp, F32SumOp])
@pytest.mark.parametrize("shape", [(1, 126, 64), (1, 7, 70), (2, 5, 17), (3, 4, 130), (9, 3, 40)], ids=str)
def test_reductions_that_keep_channels_and_few_rows(op: Any, shape: tuple[int, ...]) -> None:
    check_op(op, [tensor(shape, "f32")], "f32", axes=(1,))


PRODUCTS = [
    ((3, 5), (5, 19), False),
    ((1, 70), (70, 10), True),
    ((2, 3, 7), (7, 24), True),
    ((2, 3, 7), (2, 7, 5), False),
    ((2, 2, 9, 8), (2, 2, 8, 9), False),
    ((17, 33), (33, 60), False),
    ((9, 20), (20, 91), True),
]


@variants_together
@pytest.mark.parametrize("rounded", [False, True], ids=["fused", "rounded"])
@pytest.mark.parametrize(("data", "matrix", "is_known"), PRODUCTS)
def test_products_of_matrices(data: tuple[int, ...], matrix: tuple[int, ...], is_known: bool, rounded: bool) -> None:
    numbers: NDArray[np.float32] = np.random.default_rng(0).normal(size=matrix).astype(np.float32)

    def body(*values: ir.Value) -> ir.Value:
        operands = values[0], constant(numbers) if is_known else values[1]
        return build(F32MatmulOp, *operands, element="f32", rounded_products=rounded).output

    check(graph([tensor(data, "f32"), *([] if is_known else [tensor(matrix, "f32")])], body))


CONVOLUTIONS = [
    ((1, 5, 7, 3), (8, 3, 3, 3), 1, (1, 1), (1, 1)),
    ((2, 6, 6, 19), (19, 3, 2, 1), 19, (2, 1), (1, 2)),
    ((1, 4, 4, 6), (10, 1, 1, 3), 2, (1, 1), (1, 1)),
    ((1, 4, 4, 4), (8, 2, 2, 1), 4, (2, 2), (1, 1)),
    ((1, 1, 1, 1), (1, 1, 1, 1), 1, (1, 1), (1, 1)),
]


@variants_together
@pytest.mark.parametrize("rounded", [False, True], ids=["fused", "rounded"])
@pytest.mark.parametrize(("data", "weight", "groups", "strides", "dilation"), CONVOLUTIONS)
def test_convolutions(
    data: Any, weight: tuple[int, ...], groups: int, strides: Any, dilation: Any, rounded: bool
) -> None:
    numbers: NDArray[np.float32] = np.random.default_rng(0).normal(size=weight).astype(np.float32)

    def body(x: ir.Value) -> ir.Value:
        attributes: dict[str, Any] = {"strides": strides, "dilation": dilation, "groups": groups}
        attributes["rounded_products"] = rounded
        return build(F32Conv2DOp, x, constant(numbers), element="f32", **attributes).output

    check(graph([tensor(data, "f32")], body))


def test_terms_are_added_in_order() -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        total = build(F32SumOp, x, element="f32", axes=(0, 1)).output
        return [total, build(F32MatmulOp, x, constant(np.ones((19, 1), np.float32)), element="f32").output]

    x = (np.random.default_rng(0).normal(size=(33, 19)) * 1e3).astype(np.float32)
    total, products = interpreter.run(graph([tensor(x.shape, "f32")], body), [x])
    wanted = np.float32(0)
    for value in x.ravel():
        wanted = wanted + value
    assert total == wanted
    assert products[5, 0] == np.add.accumulate(x[5])[-1]
