"""Every operator of the front end against numbers that LiteRT's reference kernels gave.

`tools/record/README.md` says what the families are.  The cases `_tie` have powers of two as scales: many quotients lie
half-way between two quantized values.  ELU has no reference kernel; its numbers are those of the built-in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import recordings
import tflite
from compiled_ops import variants_together
from numpy.typing import NDArray
from recurrent_models import table
from tflite_graphs import Array, Given, Option, Result, check_operator, one_operator, options, reference

from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite, supported_operators
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

CASES = {
    f"{path.stem}.{name}": case
    for path in sorted(recordings.FOLDER.glob("tflite_*.npz"))
    for name, case in recordings.read(path).items()
}

# What only moves or renames quantized values and shapes is in test_tflite_import.
MOVEMENTS = {"RESHAPE", "SQUEEZE", "EXPAND_DIMS"}
# What is computed on f32 values alone is in docs/evidence and test_tflite_f32_volumes.
F32_VALUES = {
    *("CONV_3D", "CONV_3D_TRANSPOSE", "L2_POOL_2D", "LOCAL_RESPONSE_NORMALIZATION"),
    *("CEIL", "FLOOR", "FLOOR_DIV", "REDUCE_PROD", "ROUND", "SQUARE"),
    *("COS", "LOG_SOFTMAX", "POW", "SIGN", "SIN"),
}
# What integers and booleans stand for themselves in is in docs/evidence and test_tflite_plain_operators.
PLAIN = {
    *("ADD_N", "BITCAST", "BITWISE_XOR", "DILATE", "EMBEDDING_LOOKUP", "FILL", "MATRIX_DIAG", "MATRIX_SET_DIAG"),
    *("RANGE", "REDUCE_ALL", "REDUCE_ANY", "RIGHT_SHIFT", "SPARSE_TO_DENSE", "ZEROS_LIKE"),
    *("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"),
    *("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "SELECT", "SELECT_V2", "FLOOR_MOD"),
}
# Sequences are compared with LiteRT itself, in the tests named after them.
RECURRENT = {
    *("BIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
    *("BIDIRECTIONAL_SEQUENCE_RNN", "RNN", "SVDF", "UNIDIRECTIONAL_SEQUENCE_RNN"),
}
# So is what reads or writes at run-time indices, or gives them.
SCATTERS = {"SCATTER_ND", "SEGMENT_SUM", *(f"UNSORTED_SEGMENT_{kind}" for kind in ("MAX", "MIN", "PROD", "SUM"))}
INDEXED = {*SCATTERS, "CUMSUM", "DYNAMIC_UPDATE_SLICE", "GATHER_ND", "ONE_HOT", "REVERSE_SEQUENCE", "TOPK_V2"}


@pytest.mark.parametrize("case", CASES)
def test_equals_the_recorded_output(case: str) -> None:
    recorded = CASES[case]
    outputs = interpreter.run(import_tflite(recorded.model), list(recorded.inputs))
    for output, expected in zip(outputs, recorded.outputs, strict=True):
        assert output.dtype == expected.dtype
        assert output.shape == expected.shape
        assert np.count_nonzero(output != expected) == 0


def test_every_operator_has_a_case() -> None:
    kinds = {read_graph(case.model).operators[0].kind for case in CASES.values()}
    assert kinds == set(supported_operators()) - MOVEMENTS - F32_VALUES - PLAIN - RECURRENT - INDEXED


# Operators on numbers as they are, compared with LiteRT: bits, diagonals, filled and written tensors.

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
    inputs = [
        given(drawn(np.float32, 3, 4)),
        known([[1, 0], [0, 2]]),
        given(np.array(fill, np.float32), is_constant=True),
    ]
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


# Means of integers compared with LiteRT's reference kernel, and integers of two types.

KIND_INTEGERS = tflite.BuiltinOperator
OPTIONS_INTEGERS = tflite.BuiltinOptions
ArrayIntegers = NDArray[Any]


def check(
    kind: int, inputs: Sequence[ArrayIntegers], dtype: Any, shape: Sequence[int], *option: Any, known: int = 0
) -> None:
    writer, free = ModelWriter("one operator"), len(inputs) - known
    tensors = [writer.tensor(f"x{i}", array.shape, array.dtype.type) for i, array in enumerate(inputs[:free])]
    names = tensors + [writer.constant(f"c{i}", array) for i, array in enumerate(inputs[free:])]
    output = writer.tensor("y", shape, dtype)
    writer.operator(kind, names, output, *option)
    content = writer.finish(tensors, [output])
    (wanted,) = reference(content, inputs[:free])
    module = import_tflite(content)
    (found,) = interpreter.run(module, inputs[:free])
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(compile_module(module)(*inputs[:free]), wanted)


def drawn_integers(seed: int, dtype: Any, *shape: int) -> ArrayIntegers:
    values = np.random.default_rng(seed).integers(-9, 10, shape)
    return (values > 0) if dtype is np.bool_ else values.astype(dtype)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("axes", [[1], [0, 2]])
def test_means(axes: list[int], dtype: Any) -> None:
    """Cut towards zero, of sums that 32 bits do not hold."""
    values = drawn_integers(0, dtype, 3, 7, 5)
    values[:, 0] = values[:, 1] = np.iinfo(np.int32).max
    kept = [extent for axis, extent in enumerate(values.shape) if axis not in axes]
    check(
        KIND_INTEGERS.MEAN,
        [values, np.array(axes, np.int32)],
        dtype,
        kept,
        OPTIONS_INTEGERS.ReducerOptions,
        options(0),
        known=1,
    )


def test_types_that_differ_are_refused() -> None:
    writer = ModelWriter("mixed")
    inputs = [writer.tensor("x", (3,), np.int32), writer.tensor("z", (3,), np.int64)]
    output = writer.tensor("y", (3,), np.int32)
    writer.operator(KIND_INTEGERS.FLOOR_MOD, inputs, output)
    with pytest.raises(ImportModelError) as caught:
        import_tflite(writer.finish(inputs, [output]))
    assert "inputs must be of one type, but got i32 and i64" in caught.value.render()


# Comparisons and choices of quantized values, compared with LiteRT's reference kernels.

COMPARISONS = ["Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual"]
HALF = Quantization((0.5,), (3,))


def drawn_logic(seed: int, dtype: Any, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8).view(dtype)


def node_of(name: str) -> tuple[int, Option]:
    kind = "".join(f"_{letter}" if letter.isupper() else letter for letter in name).strip("_").upper()
    return getattr(KIND, kind), (getattr(OPTIONS, f"{name}Options"), table({}, 0))


@variants_together
@pytest.mark.parametrize("scales", [(0.021, 0.042), (0.021, 0.021), (0.5, 0.25)])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name: str, dtype: Any, scales: tuple[float, float]) -> None:
    quantizations = [Quantization((scale,), (point,)) for scale, point in zip(scales, (9, 30), strict=True)]
    data = [drawn_logic(0, dtype, 4, 300), drawn_logic(1, dtype, 300)]
    inputs = [Given(one, quantization=how) for one, how in zip(data, quantizations, strict=True)]
    kind, option = node_of(name)
    (found,) = check_operator(kind, inputs, [Result((4, 300), np.bool_)], option)
    assert 0 < np.count_nonzero(found) < found.size


def test_a_scale_of_one_is_refused() -> None:
    inputs = [Given(drawn_logic(seed, np.int8, 6), quantization=Quantization((1.0,), (0,))) for seed in range(2)]
    kind, option = node_of("Less")
    with pytest.raises(ImportModelError, match=r"left operand scale must be below 1, but got 1\.0"):
        import_tflite(one_operator(kind, inputs, [Result((6,), np.bool_)], option))


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("shape", [(4, 5), (5,), (4, 1)])
def test_choices(shape: tuple[int, ...], dtype: Any) -> None:
    condition = Given(drawn_logic(0, np.uint8, *shape) > 127)
    sides = [Given(drawn_logic(seed, dtype, 4, 5), quantization=HALF) for seed in (1, 2)]
    kind = KIND.SELECT_V2, OPTIONS.SelectV2Options
    check_operator(kind[0], [condition, *sides], [Result((4, 5), dtype, HALF)], (kind[1], table({}, 0)))


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32])
@pytest.mark.parametrize("shape", [(4, 4), (4,)])
def test_rows_are_chosen_by_a_condition_of_one_dimension(shape: tuple[int, ...], dtype: Any) -> None:
    how = None if dtype is np.float32 else HALF
    condition = Given(drawn_logic(0, np.uint8, *shape) > 127)
    sides = [Given(drawn_logic(seed, np.uint8, 4, 4).astype(dtype), quantization=how) for seed in (1, 2)]
    option = OPTIONS.SelectOptions, table({}, 0)
    check_operator(KIND.SELECT, [condition, *sides], [Result((4, 4), dtype, how)], option)


# LOG_SOFTMAX of bytes compared with LiteRT's reference kernel.

OPTION = OPTIONS.LogSoftmaxOptions, table({}, 0)


@variants_together
@pytest.mark.parametrize(("dtype", "largest"), [(np.int8, 127), (np.uint8, 255)])
@pytest.mark.parametrize(
    ("scale", "shape"), [(1e-4, (40, 10)), (0.004, (5,)), (0.05, (2, 3, 201)), (0.3, (40, 10)), (2.0, (2, 3, 201))]
)
def test_rows(dtype: Any, largest: int, scale: float, shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(shape[-1]).integers(largest - 255, largest + 1, shape).astype(dtype)
    inputs = [Given(data, quantization=Quantization((scale,), (3,)))]
    outputs = [Result(shape, dtype, Quantization((1 / 16,), (largest,)))]
    check_operator(KIND.LOG_SOFTMAX, inputs, outputs, OPTION)


def test_another_output_scale_is_refused() -> None:
    inputs = [Given(np.zeros((2, 3), np.int8), quantization=Quantization((0.1,), (0,)))]
    outputs = [Result((2, 3), np.int8, Quantization((0.1,), (127,)))]
    with pytest.raises(ImportModelError, match=r"output scale and zero point must be \(0.0625, 127\)"):
        import_tflite(one_operator(KIND.LOG_SOFTMAX, inputs, outputs, OPTION))


# ONE_HOT compared with LiteRT's reference kernel.

POSITIONS = np.random.default_rng(0).integers(-1, 9, (3, 4))


def inputs(dtype: Any, positions: Any = np.int32, depth: int = 7) -> list[Given]:
    numbers = [np.array(7 if dtype is np.int8 else 1).astype(dtype), np.array(0).astype(dtype)]
    given = Given(POSITIONS.astype(positions)), Given(np.array(depth, np.int32), is_constant=True)
    return [*given, *(Given(number, is_constant=True) for number in numbers)]


@variants_together
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.int8, np.bool_])
@pytest.mark.parametrize(("axis", "shape"), [(-1, (3, 4, 7)), (0, (7, 3, 4)), (1, (3, 7, 4))])
def test_numbers_at_indices(dtype: Any, axis: int, shape: tuple[int, ...]) -> None:
    option = OPTIONS.OneHotOptions, table({0: ("Int32", axis)}, 1)
    check_operator(KIND.ONE_HOT, inputs(dtype), [Result(shape, dtype)], option)


def test_wide_indices() -> None:
    option = OPTIONS.OneHotOptions, table({0: ("Int32", -1)}, 1)
    check_operator(KIND.ONE_HOT, inputs(np.float32, np.int64), [Result((3, 4, 7), np.float32)], option)


def test_no_depth_is_refused() -> None:
    option = OPTIONS.OneHotOptions, table({0: ("Int32", -1)}, 1)
    content = one_operator(KIND.ONE_HOT, inputs(np.float32, depth=0), [Result((3, 4, 1), np.float32)], option)
    with pytest.raises(ImportModelError, match=r"depth must be in \[1, 1048576\], but got \[0\]"):
        import_tflite(content)


# Running sums and the largest elements, compared with LiteRT's reference kernels.


def drawn_ordering(dtype: Any, *shape: int) -> Array:
    values = np.random.default_rng(0).normal(size=shape) * 20 + (60 if dtype is np.uint8 else 0)
    return values.astype(dtype) if dtype is not np.uint8 else np.clip(values, 0, 255).astype(dtype)


@variants_together
@pytest.mark.parametrize("ways", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_running_sums(dtype: Any, ways: tuple[bool, bool]) -> None:
    inputs = [Given(drawn_ordering(dtype, 3, 4, 5)), Given(np.array([1], np.int32), is_constant=True)]
    fields = {slot: ("Bool", int(flag)) for slot, flag in enumerate(ways)}
    check_operator(KIND.CUMSUM, inputs, [Result((3, 4, 5), dtype)], (OPTIONS.CumsumOptions, table(fields, 2)))


def largest(data: Array, count: int) -> tuple[list[Given], list[Result]]:
    how = HALF if data.dtype.itemsize == 1 else None
    shape = (*data.shape[:-1], count)
    inputs = [Given(data, quantization=how), Given(np.array([count], np.int32), is_constant=True)]
    return inputs, [Result(shape, data.dtype.type, how), Result(shape, np.int32)]


@variants_together
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.int8, np.uint8])
def test_largest_elements(dtype: Any) -> None:
    """Drawn integers have equal ones among them."""
    check_operator(KIND.TOPK_V2, *largest(drawn_ordering(dtype, 2, 3, 20), 7), (OPTIONS.TopKV2Options, table({}, 0)))


def test_zeros_of_both_signs_are_equal() -> None:
    data = np.array([[-0.0, 0.0, -1.0, 0.0, -0.0]], np.float32)
    check_operator(KIND.TOPK_V2, *largest(data, 4), (OPTIONS.TopKV2Options, table({}, 0)))


def test_more_than_there_are_is_refused() -> None:
    content = one_operator(
        KIND.TOPK_V2, *largest(drawn_ordering(np.float32, 2, 3), 4), (OPTIONS.TopKV2Options, table({}, 0))
    )
    with pytest.raises(ImportModelError, match=r"k must be in \[1, 3\], but got \[4\]"):
        import_tflite(content)


# Sums at run-time indices and over segments, compared with LiteRT's reference kernels.

KIND_SCATTERING = tflite.BuiltinOperator
ArrayScattering = NDArray[Any]
RNG = np.random.default_rng(5)


def check_scattering(
    kind: int, given: list[ArrayScattering], constants: list[ArrayScattering], shape: tuple[int, ...], dtype: Any
) -> None:
    """The operator reads what is given, then the constants."""
    writer = ModelWriter("one operator")
    tensors = [writer.tensor(f"x{i}", array.shape, array.dtype.type) for i, array in enumerate(given)]
    known = [writer.constant(f"c{i}", array) for i, array in enumerate(constants)]
    output = writer.tensor("y", shape, dtype)
    writer.operator(kind, [*tensors, *known], output)
    content = writer.finish(tensors, [output])
    # SEGMENT_SUM is not among the reference kernels.
    (wanted,) = frameworks.load_litert(content, 1, is_reference=kind != KIND_SCATTERING.SEGMENT_SUM)(given)
    module = import_tflite(content)
    np.testing.assert_array_equal(interpreter.run(module, given)[0], wanted)
    np.testing.assert_array_equal(compile_module(module)(*given), wanted)


def drawn_scattering(dtype: Any, *shape: int) -> ArrayScattering:
    values = RNG.integers(-99, 100, shape)
    return (values / 7 if dtype is np.float32 else values).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize(("shape", "depth"), [((4, 3, 5), 1), ((4, 3, 5), 2), ((2, 3), 2)])
def test_scatter_nd(dtype: Any, shape: tuple[int, ...], depth: int) -> None:
    """Equal indices add up."""
    at = (RNG.random((9, depth)) * shape[:depth]).astype(np.int32)
    wanted = np.array(shape, np.int32)
    check_scattering(
        KIND_SCATTERING.SCATTER_ND, [at, drawn_scattering(dtype, 9, *shape[depth:])], [wanted], shape, dtype
    )


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_segment_sum(dtype: Any) -> None:
    check_scattering(
        KIND_SCATTERING.SEGMENT_SUM,
        [drawn_scattering(dtype, 6, 4)],
        [np.array([0, 0, 1, 2, 2, 3], np.int32)],
        (4, 4),
        dtype,
    )


@pytest.mark.parametrize("kind", ["SUM", "PROD", "MAX", "MIN"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_unsorted_segments(kind: str, dtype: Any) -> None:
    constants = [np.array([3, 0, 3, 1, 0, 3], np.int32), np.array(5, np.int32)]
    number: int = getattr(KIND_SCATTERING, f"UNSORTED_SEGMENT_{kind}")
    check_scattering(number, [drawn_scattering(dtype, 6, 4)], constants, (5, 4), dtype)
