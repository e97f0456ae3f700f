"""Contractions of 16-bit activations and interpolated tables: compiled they are the reference."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import check, check_op, numbers_of, tensor, variants_together
from drawn_graphs import graph
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.arithmetic import Division
from qdialect.arithmetic.choices import I16Rounding
from qdialect.arithmetic.fixed_point_functions import MAX_INTEGER_BITS, FixedPointFunction, fixed_point_table
from qdialect.dialect.constants import constant
from qdialect.dialect.i16_ops import I16LayerNormOp
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.ir._mlir import ir
from qdialect.runtime import compile_module

Array = NDArray[Any]
Shape = tuple[int, ...]


def bias_of(channels: int, element: str) -> Array:
    spread = {"i32": 2**20, "i64": 2**40}[element]
    return np.random.default_rng(9).integers(-spread, spread, channels).astype(NUMPY_DTYPES[element])


NO_PADDING = (0, 0, 0, 0)
CONVOLUTIONS: list[tuple[Shape, Shape, int, Any, Any, Any]] = [
    ((1, 5, 7, 3), (8, 3, 3, 3), 1, (1, 1), (1, 1), (1, 0, 1, 2)),
    ((1, 9, 9, 64), (35, 3, 3, 64), 1, (2, 2), (1, 1), (0, 0, 1, 1)),
    ((2, 6, 6, 19), (19, 3, 2, 1), 19, (2, 1), (1, 2), (1, 1, 1, 1)),
    ((1, 4, 4, 6), (10, 1, 1, 3), 2, (1, 1), (1, 1), NO_PADDING),
    ((1, 4, 4, 4), (8, 2, 2, 1), 4, (2, 2), (1, 1), NO_PADDING),
    ((1, 5, 5, 40), (24, 3, 3, 20), 2, (1, 1), (2, 1), (2, 1, 2, 1)),
    ((1, 1, 1, 1), (1, 1, 1, 1), 1, (1, 1), (1, 1), NO_PADDING),
    ((1, 1, 1, 300), (17, 1, 1, 300), 1, (1, 1), (1, 1), NO_PADDING),
    ((1, 4, 1, 33), (16, 4, 1, 33), 1, (1, 1), (1, 1), NO_PADDING),
]


@variants_together
@pytest.mark.parametrize("element", ["i32", "i64"])
@pytest.mark.parametrize(("data", "weight", "groups", "strides", "dilation", "padding"), CONVOLUTIONS)
def test_convolutions(
    data: Shape, weight: Shape, groups: int, strides: Any, dilation: Any, padding: Any, element: str
) -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        attributes: dict[str, Any] = {"strides": strides, "dilation": dilation, "groups": groups, "padding": padding}
        values = x, constant(numbers_of(weight, "i8")), constant(bias_of(weight[0], element))
        biased = qnn.build(qnn.I16Conv2DOp, *values, element=element, **attributes).output
        return [biased, qnn.build(qnn.I16Conv2DOp, *values[:2], element=element, **attributes).output]

    check(graph([tensor(data, "i16")], body), [numbers_of(data, "i16")])


DENSE: list[tuple[Shape, int]] = [((3, 5), 19), ((1, 70), 10), ((2, 3, 7), 24), ((7,), 3), ((33, 1030), 70)]


@variants_together
@pytest.mark.parametrize("element", ["i32", "i64"])
@pytest.mark.parametrize("weight_element", ["i8", "i16"])
@pytest.mark.parametrize(("data", "channels"), DENSE)
def test_dense(data: Shape, channels: int, weight_element: str, element: str) -> None:
    def body(x: ir.Value) -> ir.Value:
        weight = constant(numbers_of((channels, data[-1]), weight_element))
        return qnn.build(qnn.I16DenseOp, x, weight, constant(bias_of(channels, element)), element=element).output

    check(graph([tensor(data, "i16")], body), [numbers_of(data, "i16")])


@variants_together
@pytest.mark.parametrize(("sign", "value"), [(-1, -32768), (1, 32767), (-1, 32767), (1, -32768)])
@pytest.mark.parametrize("depth", [511, 512, 513, 1600, 5001])
def test_sums_at_the_ends_of_the_types(depth: int, sign: int, value: int) -> None:
    """From 512 products on, int32 does not hold every sum."""
    weight = np.full((5, depth), 127 if sign > 0 else -128, np.int8)
    weight[1] //= 2
    weight[2, ::3] = 0
    weight[3, depth // 2 :] = 1
    data = np.full((2, depth), value, np.int16)
    data[1, ::2] = -7

    def body(x: ir.Value) -> ir.Value:
        return qnn.build(qnn.I16DenseOp, x, constant(weight), element="i64").output

    check(graph([tensor(data.shape, "i16")], body), [data])


MATRICES: list[tuple[Shape, Shape]] = [
    ((3, 5), (5, 19)),
    ((2, 3, 7), (7, 24)),
    ((2, 3, 7), (2, 7, 5)),
    ((2, 1, 9, 8), (1, 3, 8, 9)),
    ((1, 70), (70, 1)),
]


@variants_together
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("weight", ["i8", "i16"])
@pytest.mark.parametrize(("data", "matrix"), MATRICES)
def test_products_of_matrices(data: Shape, matrix: Shape, weight: str, is_known: bool) -> None:
    numbers = numbers_of(matrix, weight, 1)

    def body(*values: ir.Value) -> ir.Value:
        return qnn.build(qnn.I16MatmulOp, values[0], constant(numbers) if is_known else values[1], element="i64").output

    types = [tensor(data, "i16"), *([] if is_known else [tensor(matrix, weight)])]
    check(graph(types, body), [numbers_of(data, "i16"), *([] if is_known else [numbers])])


@variants_together
@pytest.mark.parametrize(("entries", "fraction"), [(1, 0), (3, 0), (513, 7), (256, 9), (2, 16)])
def test_interpolated_tables(entries: int, fraction: int) -> None:
    rng = np.random.default_rng(entries)
    bases, slopes = (rng.integers(-(2**31), 2**31, entries).tolist() for _ in range(2))
    x = rng.integers(-5, (entries << fraction) + 5, (7, 67)).astype(np.int32)
    x.flat[:2] = -(2**31), 2**31 - 1
    attributes: dict[str, Any] = {"bases": bases, "slopes": slopes, "fraction": fraction}
    check_op(qnn.InterpolatedLutOp, [tensor(x.shape, "i32")], "i32", [x], **attributes)


def test_an_interpolated_table_is_a_part_of_the_kernel_around_it() -> None:
    attributes: dict[str, Any] = {"bases": (0, 4), "slopes": (4, -4), "fraction": 4}

    def body(x: ir.Value) -> ir.Value:
        wide = ir.Operation.create("arith.addi", [x.type], [x, x]).result
        value = qnn.build(qnn.InterpolatedLutOp, wide, element="i32", **attributes).output
        return ir.Operation.create("arith.subi", [x.type], [value, x]).result

    module = graph([tensor((3, 19), "i32")], body)
    assert compile_module(module).kernels == 1
    check(module)


POOLS: list[tuple[Shape, Any, Any, Any]] = [
    ((1, 5, 7, 3), (3, 3), (1, 1), (1, 1, 1, 1)),
    ((2, 9, 9, 37), (2, 3), (2, 2), (0, 1, 1, 1)),
    ((1, 1, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((1, 7, 7, 64), (7, 7), (1, 1), (0, 0, 0, 0)),
]


@variants_together
@pytest.mark.parametrize(("data", "kernel", "strides", "padding"), POOLS)
@pytest.mark.parametrize("bounds", [(-(2**15), 2**15 - 1), (0, 20000)])
def test_pools(data: Shape, kernel: Any, strides: Any, padding: Any, bounds: tuple[int, int]) -> None:
    window: dict[str, Any] = {"kernel": kernel, "strides": strides, "padding": padding}
    window |= {"output_min": bounds[0], "output_max": bounds[1]}
    values = numbers_of(data, "i16")
    check_op(qnn.MaxPool2DOp, [tensor(data, "i16")], "i16", [values], **window)
    for division in Division:
        for value in (values, np.full(data, -(2**15), np.int16)):
            check_op(qnn.AvgPool2DOp, [tensor(data, "i16")], "i16", [value], zero_point=-3, division=division, **window)


def accumulators(element: str) -> Array:
    """Of every magnitude, ties among them."""
    dtype = NUMPY_DTYPES[element]
    rng, bits = np.random.default_rng(3), {"i32": 31, "i64": 47}[element]
    values = rng.integers(-(2**bits), 2**bits, (40, 37)) >> rng.integers(0, bits, (40, 37))
    values[:8] = np.arange(-148, 148).reshape(8, 37)
    return values.astype(dtype)


ROUNDINGS = [
    (I16Rounding.FIXED32_DOUBLE, "i32"),
    (I16Rounding.FIXED16_UP, "i32"),
    (I16Rounding.FIXED16_UP, "i64"),
    (I16Rounding.F64_NEAREST, "i32"),
    (I16Rounding.F64_NEAREST, "i64"),
    (I16Rounding.F64_EVEN, "i32"),
    (I16Rounding.F64_EVEN, "i64"),
]


@variants_together
@pytest.mark.parametrize(("rounding", "element"), ROUNDINGS)
@pytest.mark.parametrize("scales", [(0.5,), (2.0**-9,), (3.7e-7,), (0.99999999,), (117.3,)])
@pytest.mark.parametrize("bounds", [(0, -(2**15), 2**15 - 1), (-999, 0, 1000)])
def test_requantized_accumulators(
    rounding: I16Rounding, element: str, scales: tuple[float, ...], bounds: tuple[int, int, int]
) -> None:
    values = accumulators(element)
    attributes: dict[str, Any] = {"input_scale": 1.0, "output_scale": 1.0, "rounding": rounding}
    attributes |= dict(zip(("output_zero_point", "output_min", "output_max"), bounds, strict=True))
    check_op(qnn.I16RequantizeOp, [tensor(values.shape, element)], "i16", [values], weight_scales=scales, **attributes)
    by_channel = [scales[0] / (1 + i) ** 3 for i in range(37)]
    check_op(
        qnn.I16RequantizeOp, [tensor(values.shape, element)], "i16", [values], weight_scales=by_channel, **attributes
    )


# Functions of fixed-point numbers: of every argument, compiled and near the real function.

EVERY = np.arange(-(2**15), 2**15).astype(np.int16)


def real(function: FixedPointFunction, x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.tanh(x) if function is FixedPointFunction.TANH else 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("integer_bits", range(MAX_INTEGER_BITS + 1))
@pytest.mark.parametrize("function", FixedPointFunction)
def test_tables_are_near_the_real_function(function: FixedPointFunction, integer_bits: int) -> None:
    x = EVERY.astype(np.float64) * 2.0 ** (integer_bits - 15)
    found = fixed_point_table(function, integer_bits) * 2.0**-15
    assert np.abs(found - real(function, x)).max() < 4e-4


@variants_together
@pytest.mark.parametrize(
    ("shape", "scale"), [((5,), 0.01), ((3, 16), 2.0**-15), ((2, 3, 33), 3e-5), ((2, 1), 1e-7), ((3, 4), 2.0**30)]
)
def test_layer_norm(shape: tuple[int, ...], scale: float) -> None:
    """Rows of any numbers, of the extreme ones, and of one number alone, whose variance is zero."""
    how: dict[str, Any] = {"scale": scale, "variance_guard": 7}

    def body(x: ir.Value, weight: ir.Value, bias: ir.Value) -> ir.Value:
        return qnn.build(I16LayerNormOp, x, weight, bias, element="i16", **how).output

    last = shape[-1:]
    module = graph([tensor(shape, "i16"), tensor(last, "i16"), tensor(last, "i32")], body)
    random = np.random.default_rng(sum(shape))
    weight = random.integers(-(2**15), 2**15, last).astype(np.int16)
    bias = random.integers(-(2**20), 2**20, last).astype(np.int32)
    drawn = random.integers(-3000, 3000, shape).astype(np.int16)
    ends = np.where(drawn < 0, -(2**15), 2**15 - 1).astype(np.int16)
    check(module, *([values, weight, bias] for values in (drawn, ends, np.full(shape, 5, np.int16))))
