"""Every operator of the front end against numbers that LiteRT's reference kernels gave.

`tools/record/README.md` says what the families are.  The cases `_tie` have powers of two as scales: many quotients lie
half-way between two quantized values.  ELU has no reference kernel; its numbers are those of the built-in one.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
import recordings
import tflite
from compiled_ops import variants_together
from tflite_graphs import Array, Given, Result, check_operator, node_of, one_operator, options, options_of, refused

from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite, supported_operators
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

CASES = {
    f"{path.stem}.{name}": case
    for path in sorted(recordings.FOLDER.glob("tflite_*.npz"))
    for name, case in recordings.read(path).items()
}

# What only moves or renames quantized values and shapes is in test_tflite_import.
MOVEMENTS = {"RESHAPE", "SQUEEZE", "EXPAND_DIMS"}
# What is computed on f32 values alone is in docs/evidence and test_tflite_float.
F32_VALUES = {
    *("CONV_3D", "CONV_3D_TRANSPOSE", "L2_POOL_2D", "LOCAL_RESPONSE_NORMALIZATION"),
    *("CEIL", "FLOOR", "FLOOR_DIV", "REDUCE_PROD", "ROUND", "SQUARE"),
    *("COS", "LOG_SOFTMAX", "POW", "SIGN", "SIN"),
}
# What integers and booleans stand for themselves in is in docs/evidence and test_tflite_movement.
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


# Operators on numbers as they are, on quantized values and at indices, compared with LiteRT's reference kernels.

KIND = tflite.BuiltinOperator
SCALE, HALF = Quantization((0.01,), (0,)), Quantization((0.5,), (3,))
Node = tuple[str, list[Given], list[Result], dict[int, Any]]
"""An operator by the name of its options, its tensors, and the fields of its options that are not zero."""
NUMBERS: tuple[Any, ...] = (np.float32, np.int32, np.int64)
SIGNED: tuple[Any, ...] = (np.float32, np.int8, np.int32)


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


def of(name: str, inputs: list[Given], shape: tuple[int, ...], dtype: Any, **fields: int) -> Node:
    return name, inputs, [result(shape, dtype)], {int(slot[1:]): flag for slot, flag in fields.items()}


def check(node: Node) -> Sequence[Array]:
    name, inputs, outputs, fields = node
    kind, option = node_of(name)
    entries = [fields.get(slot, 0) for slot in range(4)]
    return check_operator(kind, inputs, outputs, (option, options(*entries)) if option else None)


def largest(data: Array, count: int, quantization: Quantization | None = None) -> Node:
    outputs = [
        Result((*data.shape[:-1], count), one, how) for one, how in ((data.dtype.type, quantization), (np.int32, None))
    ]
    return "TopKV2", [Given(data, quantization=quantization), known([count])], outputs, {}


def elementwise() -> Iterator[Node]:
    for dtype in (np.float32, np.int32):
        terms = [Given(drawn(dtype, 3, 7, seed=i)) for i in range(5)]
        terms[0].data[0, :3] = terms[1].data[0, :3] = -0.0
        yield from (of("AddN", terms[:count], (3, 7), dtype) for count in (2, 5))
    # Shifts by fewer than none and by more bits than there are.
    for name, dtype in product(("BitwiseXor", "RightShift"), (np.int8, np.uint8, np.int16, np.int32)):
        sides = [Given(drawn(dtype, 3, 70)), Given((drawn(dtype, 1, 70, seed=1) % 64).astype(dtype))]
        yield name, sides, [Result((3, 70), dtype)], {}
    for source, target in ((np.float32, np.int32), (np.int32, np.float32), (np.int8, np.uint8)):
        yield "Bitcast", [Given(drawn(source, 3, 5))], [Result((3, 5), target)], {}


def diagonals_and_fills() -> Iterator[Node]:
    for dtype, shape in product((*SIGNED, np.int64), ((5,), (2, 1, 4))):
        yield "MatrixDiag", [Given(drawn(dtype, *shape))], [Result((*shape, shape[-1]), dtype)], {}
    for dtype, shape in product(SIGNED, ((4, 4), (2, 3, 5), (2, 6, 3))):
        diagonal = Given(drawn(dtype, *shape[:-2], min(shape[-2:]), seed=1))
        yield "MatrixSetDiag", [Given(drawn(dtype, *shape)), diagonal], [Result(shape, dtype)], {}
    for dtype in (*SIGNED, np.int64, np.bool_):
        yield of("Fill", [known([2, 3, 5]), given(drawn(dtype), is_constant=True)], (2, 3, 5), dtype)
    yield from (of("ZerosLike", [Given(drawn(dtype, 2, 3))], (2, 3), dtype) for dtype in NUMBERS)
    for dtype, numbers, count in zip(NUMBERS, ((0.1, 2.0, 0.3), (7, -4, -3), (0, 5, 1)), (7, 4, 5), strict=True):
        yield of("Range", [known(number, dtype) for number in numbers], (count,), dtype)


def written_elements() -> Iterator[Node]:
    # Rows of floats, and floats that rows of i8 stand for, with one scale or one for each row.
    for dtype, scales in ((np.float32, 0), (np.int8, 1), (np.int8, 9)):
        held = Quantization(tuple(0.03 + 0.01 * i for i in range(scales)), (0,) * scales) if scales else None
        rows = Given(drawn(dtype, 9, 5), is_constant=True, quantization=held)
        yield of("EmbeddingLookup", [Given(np.array([3, 0, 8, 3], np.int32)), rows], (4, 5), np.float32)
    for dtype, is_one in product((*SIGNED, np.int64), (False, True)):
        values = given(drawn(dtype), is_constant=True) if is_one else given(drawn(dtype, 3))
        at = Given(np.array([[0, 1], [2, 3], [1, 0]], np.int32))
        rest = given(drawn(dtype, seed=1), is_constant=True)
        yield of("SparseToDense", [at, known([3, 4]), values, rest], (3, 4), dtype)
    for dtype, dilations in product(SIGNED, ((2, 1), (3, 2))):
        shape = (2 * dilations[0] + 1, 3 * dilations[1] + 1)
        fill = given(np.array(-7, dtype), is_constant=True)
        yield of("Dilate", [given(drawn(dtype, 3, 4)), known(dilations), fill], shape, dtype)
    for fill in (0.5, -np.inf, 3e9):
        padding = [known([[1, 0], [0, 2]]), known(fill, np.float32)]
        yield of("PadV2", [Given(drawn(np.float32, 3, 4)), *padding], (4, 6), np.float32)
    for name, dtype, shape in product(("Select", "SelectV2"), (np.int8, np.uint8, np.float32), ((4, 4), (4,))):
        how = None if dtype is np.float32 else HALF
        sides = [Given(drawn(np.uint8, 4, 4, seed=seed).astype(dtype), quantization=how) for seed in (1, 2)]
        yield name, [Given(drawn(np.bool_, *shape)), *sides], [Result((4, 4), dtype, how)], {}


def indexed() -> Iterator[Node]:
    positions = np.random.default_rng(0).integers(-1, 9, (3, 4))
    for dtype, axis in product((*SIGNED, np.int64, np.bool_), (-1, 0, 1)):
        shape = list(positions.shape)
        shape.insert(axis % 3, 7)
        where = Given(positions.astype(np.int64 if dtype is np.int32 else np.int32))
        inputs = [where, known(7), known(7 if dtype is np.int8 else 1, dtype), known(0, dtype)]
        yield "OneHot", inputs, [Result(tuple(shape), dtype)], {0: axis}
    # Of which the kernel reads the lower half.
    wide = Given(np.array([1 + 2**32, 2**31, -(2**63)]))
    yield "OneHot", [wide, known(3), known(1), known(0)], [Result((3, 3), np.int32)], {0: -1}
    for dtype, exclusive, backwards in product(NUMBERS, (0, 1), (0, 1)):
        yield of("Cumsum", [Given(drawn(dtype, 3, 4, 5)), known([1])], (3, 4, 5), dtype, _0=exclusive, _1=backwards)
    # Drawn integers have equal ones among them, and zeros of both signs are equal.
    for dtype in (*NUMBERS, np.int8, np.uint8):
        values = np.clip(np.random.default_rng(0).normal(size=(2, 3, 20)) * 20 + 60, 0, 255).astype(dtype)
        yield largest(values, 7, HALF if values.itemsize == 1 else None)
    yield largest(np.array([[-0.0, 0.0, -1.0, 0.0, -0.0]], np.float32), 4)
    yield largest(-np.arange(2**23, 2**23 + 8, dtype=np.float32)[None, ::-1].copy(), 3)
    # Cut towards zero, of sums that 32 bits do not hold.
    for dtype, axes in product((np.int32, np.int64), ([1], [0, 2])):
        values = np.random.default_rng(0).integers(-9, 10, (3, 7, 5)).astype(dtype)
        values[:, :2] = np.iinfo(np.int32).max
        kept = tuple(extent for axis, extent in enumerate(values.shape) if axis not in axes)
        yield "Mean", [Given(values), known(axes)], [Result(kept, dtype)], {}
    # Equal indices add up.
    for dtype, (shape, depth) in product(NUMBERS, (((4, 3, 5), 1), ((4, 3, 5), 2), ((2, 3), 2))):
        at = (np.random.default_rng(5).random((9, depth)) * shape[:depth]).astype(np.int32)
        yield of("ScatterNd", [Given(at), Given(drawn(dtype, 9, *shape[depth:])), known(shape)], shape, dtype)
    for dtype, name in product((np.float32, np.int32), ("Sum", "Prod", "Max", "Min")):
        rows = [Given(drawn(dtype, 6, 4) // 7), known([3, 0, 3, 1, 0, 3]), known(5)]
        yield of(f"UnsortedSegment{name}", rows, (5, 4), dtype)


NODES = [*elementwise(), *diagonals_and_fills(), *written_elements(), *indexed()]


@variants_together
@pytest.mark.parametrize("number", range(len(NODES)), ids=lambda number: f"{NODES[number][0]}-{number}")
def test_operators(number: int) -> None:
    check(NODES[number])


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
        check_operator(KIND.REDUCE_PROD, inputs, [output], options_of("Reducer"))


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
    inputs = [Given(dividends, quantization=of_lhs), Given(divisors, quantization=of_rhs)]
    check(("Div", inputs, [Result(dividends.shape, dtype, of_output)], {}))


@variants_together
@pytest.mark.parametrize("scales", [(0.021, 0.042), (0.021, 0.021), (0.5, 0.25)])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("name", ["Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual"])
def test_comparisons(name: str, dtype: Any, scales: tuple[float, float]) -> None:
    quantizations = [Quantization((scale,), (point,)) for scale, point in zip(scales, (9, 30), strict=True)]
    data = [np.random.default_rng(n).integers(0, 256, (4, 300)[n:]) for n in range(2)]
    inputs = [
        Given(one.astype(np.uint8).view(dtype), quantization=how) for one, how in zip(data, quantizations, strict=True)
    ]
    (found,) = check((name, inputs, [Result((4, 300), np.bool_)], {}))
    assert 0 < np.count_nonzero(found) < found.size


@variants_together
@pytest.mark.parametrize(("dtype", "largest"), [(np.int8, 127), (np.uint8, 255)])
@pytest.mark.parametrize(
    ("scale", "shape"), [(1e-4, (40, 10)), (0.004, (5,)), (0.05, (2, 3, 201)), (0.3, (40, 10)), (2.0, (2, 3, 201))]
)
def test_log_softmax(dtype: Any, largest: int, scale: float, shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(shape[-1]).integers(largest - 255, largest + 1, shape).astype(dtype)
    inputs = [Given(data, quantization=Quantization((scale,), (3,)))]
    check(("LogSoftmax", inputs, [Result(shape, dtype, Quantization((1 / 16,), (largest,)))], {}))


def test_segment_sum() -> None:
    """It is not among the reference kernels."""
    for dtype in (np.float32, np.int32):
        inputs = [Given(drawn(dtype, 6, 4)), known([0, 0, 1, 2, 2, 3])]
        content = one_operator(KIND.SEGMENT_SUM, inputs, [Result((4, 4), dtype)])
        (wanted,) = frameworks.load_litert(content, 1, is_reference=False)([inputs[0].data])
        np.testing.assert_array_equal(compile_module(import_tflite(content))(inputs[0].data), wanted)


BYTE, OF_ONE = (
    Given(np.zeros(6, np.int8), quantization=HALF),
    Given(np.zeros(6, np.int8), quantization=Quantization((1.0,), (0,))),
)
REFUSED: list[tuple[str, list[Given], Result, str]] = [
    ("Range", [known(1), known(5), known(0)], Result((4,), np.int32), "delta must lead from"),
    ("Bitcast", [Given(drawn(np.int32, 4))], Result((16,), np.int8), "must go between f32 and i32"),
    (
        "FloorMod",
        [Given(drawn(np.int32, 3)), Given(drawn(np.int64, 3))],
        Result((3,), np.int32),
        "inputs must be of one type, but got i32 and i64",
    ),
    ("Less", [OF_ONE, OF_ONE], Result((6,), np.bool_), "left operand scale must be below 1, but got 1.0"),
    ("LogSoftmax", [BYTE], Result((6,), np.int8, HALF), "output scale and zero point must be (0.0625, 127)"),
    (
        "OneHot",
        [Given(np.zeros((3, 4), np.int32)), known(0), known(1, np.float32), known(0, np.float32)],
        Result((3, 4, 1), np.float32),
        "depth must be in [1, 1048576], but got [0]",
    ),
    (
        "TopKV2",
        [Given(drawn(np.float32, 2, 3)), known([4])],
        Result((2, 4), np.float32),
        "k must be in [1, 3], but got",
    ),
]


@pytest.mark.parametrize(("name", "inputs", "output", "message"), REFUSED)
def test_refusals(name: str, inputs: list[Given], output: Result, message: str) -> None:
    kind, option = node_of(name)
    outputs = [output, Result(output.shape, np.int32)] if name == "TopKV2" else [output]
    content = one_operator(kind, inputs, outputs, (option, options()) if option else None)
    assert message in refused(content)
