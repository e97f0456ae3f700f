"""Contractions of 16-bit activations and interpolated tables: compiled they are the reference."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import Array, check, check_op, tensor, variants_together
from drawn_graphs import graph
from numpy.typing import NDArray

from qdialect.arithmetic.choices import I16Rounding
from qdialect.arithmetic.fixed_point_functions import MAX_INTEGER_BITS, FixedPointFunction, fixed_point_table
from qdialect.dialect import I16DenseOp, I16RequantizeOp, InterpolatedLutOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.i16_ops import I16LayerNormOp
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.ir._mlir import ir
from qdialect.runtime import compile_module


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
        return build(I16DenseOp, x, constant(weight), element="i64").output

    check(graph([tensor(data.shape, "i16")], body), [data])


@variants_together
@pytest.mark.parametrize(("entries", "fraction"), [(1, 0), (3, 0), (513, 7), (256, 9), (2, 16)])
def test_interpolated_tables(entries: int, fraction: int) -> None:
    rng = np.random.default_rng(entries)
    bases, slopes = (rng.integers(-(2**31), 2**31, entries).tolist() for _ in range(2))
    x = rng.integers(-5, (entries << fraction) + 5, (7, 67)).astype(np.int32)
    x.flat[:2] = -(2**31), 2**31 - 1
    attributes: dict[str, Any] = {"bases": bases, "slopes": slopes, "fraction": fraction}
    check_op(InterpolatedLutOp, [tensor(x.shape, "i32")], "i32", [x], **attributes)


def test_an_interpolated_table_is_a_part_of_the_kernel_around_it() -> None:
    attributes: dict[str, Any] = {"bases": (0, 4), "slopes": (4, -4), "fraction": 4}

    def body(x: ir.Value) -> ir.Value:
        wide = ir.Operation.create("arith.addi", [x.type], [x, x]).result
        value = build(InterpolatedLutOp, wide, element="i32", **attributes).output
        return ir.Operation.create("arith.subi", [x.type], [value, x]).result

    module = graph([tensor((3, 19), "i32")], body)
    assert compile_module(module).kernels == 1
    check(module)


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
    check_op(I16RequantizeOp, [tensor(values.shape, element)], "i16", [values], weight_scales=scales, **attributes)
    by_channel = [scales[0] / (1 + i) ** 3 for i in range(37)]
    check_op(I16RequantizeOp, [tensor(values.shape, element)], "i16", [values], weight_scales=by_channel, **attributes)


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
        return build(I16LayerNormOp, x, weight, bias, element="i16", **how).output

    last = shape[-1:]
    module = graph([tensor(shape, "i16"), tensor(last, "i16"), tensor(last, "i32")], body)
    random = np.random.default_rng(sum(shape))
    weight = random.integers(-(2**15), 2**15, last).astype(np.int16)
    bias = random.integers(-(2**20), 2**20, last).astype(np.int32)
    drawn = random.integers(-3000, 3000, shape).astype(np.int16)
    ends = np.where(drawn < 0, -(2**15), 2**15 - 1).astype(np.int16)
    check(module, *([values, weight, bias] for values in (drawn, ends, np.full(shape, 5, np.int16))))
