"""Operators on numbers as they are, compared with LiteRT: bits, diagonals, filled and written tensors."""

from typing import Any

import numpy as np
import pytest
import tflite
from simple_recurrent_models import table
from tflite_operators import Array, Given, Option, Result, check_operator, one_operator
from together import variants_together

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from qdialect.support.diagnostics import ImportModelError

KIND, OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
SCALE = Quantization((0.01,), (0,))


def drawn(dtype: Any, *shape: int, seed: int = 0) -> Array:
    random = np.random.default_rng(seed)
    if dtype is np.bool_:
        return random.integers(0, 2, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        return random.normal(size=shape).astype(dtype)
    ends = np.iinfo(dtype)
    return random.integers(max(ends.min, -1000), min(ends.max, 1000), shape).astype(dtype)


def known(values: Any, dtype: Any = np.int32) -> Given:
    return Given(np.array(values, dtype), is_constant=True)


def given(data: Array, *, is_constant: bool = False) -> Given:
    """Bytes are quantized values."""
    return Given(data, is_constant, SCALE if data.dtype.itemsize == 1 and data.dtype.kind != "b" else None)


def result(shape: tuple[int, ...], dtype: Any) -> Result:
    return Result(shape, dtype, SCALE if dtype is np.int8 else None)


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("axes", [(1,), (0, 2), (-1,)])
def test_quantized_products(dtype: Any, axes: tuple[int, ...]) -> None:
    """With one factor near one for each product and with factors near two."""
    point = 3 if dtype is np.int8 else 0
    gone = {axis % 3 for axis in axes}
    shape = tuple(n for i, n in enumerate((2, 3, 5)) if i not in gone)
    for scale, result_scale in ((2 / np.iinfo(dtype).max, 0.9 / np.iinfo(dtype).max), (0.5, 3.0)):
        ends = np.iinfo(dtype)
        data = np.random.default_rng(2).integers(ends.min, ends.max + 1, (2, 3, 5)).astype(dtype)
        inputs = [Given(data, quantization=Quantization((scale,), (point,))), known(axes)]
        output = Result(shape, dtype, Quantization((result_scale,), (-point,)))
        check_operator(KIND.REDUCE_PROD, inputs, [output], (OPTIONS.ReducerOptions, table({}, 1)))


@variants_together
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("count", [2, 5])
def test_sums_of_many(dtype: Any, count: int) -> None:
    terms = [Given(drawn(dtype, 3, 7, seed=i)) for i in range(count)]
    terms[0].data[0, :3] = terms[1].data[0, :3] = -0.0
    check_operator(KIND.ADD_N, terms, [Result((3, 7), dtype)], (OPTIONS.AddNOptions, table({}, 0)))


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32])
@pytest.mark.parametrize("kind", [KIND.BITWISE_XOR, KIND.RIGHT_SHIFT])
def test_bits(dtype: Any, kind: int) -> None:
    """Shifts by fewer than none and by more bits than there are."""
    lhs, rhs = drawn(dtype, 3, 70), drawn(dtype, 1, 70, seed=1) % 64
    check_operator(kind, [Given(lhs), Given(rhs.astype(dtype))], [Result((3, 70), dtype)])


@variants_together
@pytest.mark.parametrize(("source", "target"), [(np.float32, np.int32), (np.int32, np.float32), (np.int8, np.uint8)])
def test_bits_of_another_type(source: Any, target: Any) -> None:
    check_operator(KIND.BITCAST, [Given(drawn(source, 3, 5))], [Result((3, 5), target)])


@variants_together
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int32, np.int64])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 1, 4)])
def test_diagonals(dtype: Any, shape: tuple[int, ...]) -> None:
    option = OPTIONS.MatrixDiagOptions, table({}, 0)
    check_operator(KIND.MATRIX_DIAG, [Given(drawn(dtype, *shape))], [Result((*shape, shape[-1]), dtype)], option)


@variants_together
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int32])
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5), (2, 6, 3)])
def test_new_diagonals(dtype: Any, shape: tuple[int, ...]) -> None:
    diagonal = Given(drawn(dtype, *shape[:-2], min(shape[-2:]), seed=1))
    option = OPTIONS.MatrixSetDiagOptions, table({}, 0)
    check_operator(KIND.MATRIX_SET_DIAG, [Given(drawn(dtype, *shape)), diagonal], [Result(shape, dtype)], option)


@variants_together
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int32, np.int64, np.bool_])
def test_filled(dtype: Any) -> None:
    option = OPTIONS.FillOptions, table({}, 0)
    one = given(drawn(dtype), is_constant=True)
    check_operator(KIND.FILL, [known([2, 3, 5]), one], [result((2, 3, 5), dtype)], option)


@variants_together
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_zeros(dtype: Any) -> None:
    option = OPTIONS.ZerosLikeOptions, table({}, 0)
    check_operator(KIND.ZEROS_LIKE, [Given(drawn(dtype, 2, 3))], [Result((2, 3), dtype)], option)


@variants_together
@pytest.mark.parametrize(
    ("dtype", "numbers", "count"),
    [(np.float32, (0.1, 2.0, 0.3), 7), (np.int32, (7, -4, -3), 4), (np.int64, (0, 5, 1), 5)],
)
def test_ranges(dtype: Any, numbers: tuple[float, float, float], count: int) -> None:
    inputs = [known(number, dtype) for number in numbers]
    check_operator(KIND.RANGE, inputs, [Result((count,), dtype)], (OPTIONS.RangeOptions, table({}, 0)))


@variants_together
@pytest.mark.parametrize(("table_type", "scales"), [(np.float32, 0), (np.int8, 1), (np.int8, 9)])
def test_embeddings(table_type: Any, scales: int) -> None:
    """Rows of floats, and floats that rows of i8 stand for, with one scale or one for each row."""
    held = Quantization(tuple(0.03 + 0.01 * i for i in range(scales)), (0,) * scales) if scales else None
    rows = Given(drawn(table_type, 9, 5), is_constant=True, quantization=held)
    where = Given(np.array([3, 0, 8, 3], np.int32))
    check_operator(KIND.EMBEDDING_LOOKUP, [where, rows], [Result((4, 5), np.float32)])


@variants_together
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.int8])
@pytest.mark.parametrize("is_one", [False, True])
def test_written_elements(dtype: Any, is_one: bool) -> None:
    where = Given(np.array([[0, 1], [2, 3], [1, 0]], np.int32))
    values = given(drawn(dtype), is_constant=True) if is_one else given(drawn(dtype, 3))
    inputs = [where, known([3, 4]), values, given(drawn(dtype, seed=1), is_constant=True)]
    option: Option = OPTIONS.SparseToDenseOptions, table({}, 0)
    check_operator(KIND.SPARSE_TO_DENSE, inputs, [result((3, 4), dtype)], option)


@variants_together
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int32])
@pytest.mark.parametrize("dilations", [(2, 1), (3, 2)])
def test_elements_moved_apart(dtype: Any, dilations: tuple[int, int]) -> None:
    shape = tuple((n - 1) * d + 1 for n, d in zip((3, 4), dilations, strict=True))
    inputs = [given(drawn(dtype, 3, 4)), known(dilations), given(np.array(-7, dtype), is_constant=True)]
    check_operator(KIND.DILATE, inputs, [result(shape, dtype)])


@pytest.mark.parametrize("fill", [0.5, -np.inf, 3e9])
def test_padding_with_any_number(fill: float) -> None:
    inputs = [given(drawn(np.float32, 3, 4)), known([[1, 0], [0, 2]]), given(np.array(fill, np.float32), is_constant=True)]
    check_operator(KIND.PADV2, inputs, [result((4, 6), np.float32)])


REFUSED = [
    (KIND.RANGE, [known(1), known(5), known(0)], Result((4,), np.int32), OPTIONS.RangeOptions, "delta must lead from"),
    (
        KIND.BITCAST,
        [Given(drawn(np.int32, 4))],
        Result((16,), np.int8),
        OPTIONS.BitcastOptions if hasattr(OPTIONS, "BitcastOptions") else OPTIONS.NONE,
        "must go between f32 and i32",
    ),
]


@pytest.mark.parametrize(("kind", "inputs", "output", "options", "message"), REFUSED)
def test_what_is_refused(kind: int, inputs: list[Given], output: Result, options: int, message: str) -> None:
    content = one_operator(kind, inputs, [output], (options, table({}, 0)))
    with pytest.raises(ImportModelError, match=message):
        import_tflite(content)


@pytest.mark.parametrize(
    ("dtype", "lhs", "rhs", "output"),
    [
        (np.uint8, (0.05, 125), (0.02, 7), (0.25, 9)),
        (np.uint8, (0.05, 125), (0.05, 125), (0.3, 0)),
        (np.int8, (0.05, 3), (0.05, 3), (0.085, 3)),
        (np.int8, (0.01, 0), (0.5, 0), (0.1, -5)),
    ],
)
def test_quotients_of_all_pairs(dtype: Any, lhs: Any, rhs: Any, output: Any) -> None:
    """With ties, which the last bit of the multiplier decides, and quotients that the kernel shifts by over 31 bits."""
    values = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    dividends, divisors = (side.ravel().astype(dtype) for side in np.meshgrid(values, values[values != rhs[1]]))
    of_lhs, of_rhs, of_output = (Quantization((scale,), (point,)) for scale, point in (lhs, rhs, output))
    check_operator(
        KIND.DIV,
        [Given(dividends, quantization=of_lhs), Given(divisors, quantization=of_rhs)],
        [Result(dividends.shape, dtype, of_output)],
        (OPTIONS.DivOptions, table({}, 1)),
    )
