"""Operators on integers and booleans: the package's reference says what they give, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from compiled_ops import variants_together
from numpy.typing import NDArray
from onnx import helper
from onnx_evaluated import INTEGERS, SIGNED, TYPES, WIDE, check, check_model, drawn, found_by, refused
from onnx_graphs import ModelBuilder, agreed

from qdialect.frontends.onnx import import_onnx

Array = NDArray[Any]


COMPARISONS = ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]


@variants_together
@pytest.mark.parametrize("dtype", TYPES)
def test_comparisons(dtype: Any) -> None:
    model, given = ModelBuilder(), {"x": drawn((2, 3, 19), dtype), "y": drawn((3, 1), dtype, 1)}
    names = [model.input(name, array.shape, dtype) for name, array in given.items()]
    number = model.constant(drawn((), dtype, 1))
    results: list[str] = []
    for kind in COMPARISONS[:1] if dtype is np.bool_ else COMPARISONS:
        results += [model.node(kind, *names), model.node(kind, names[0], number)]
    check_model(model, results, given)


@variants_together
@pytest.mark.parametrize("kind", ["And", "Or", "Xor"])
def test_logic(kind: str) -> None:
    check(kind, [drawn((2, 3, 19), np.bool_), drawn((3, 1), np.bool_, 1)])
    for dtype in (np.int8, np.uint8, np.int64):
        check(f"Bitwise{kind}", [drawn((3, 19), dtype), drawn((19,), dtype, 1)])


def test_negations() -> None:
    check("Not", [drawn((3, 19), np.bool_)])
    check("BitwiseNot", [drawn((3, 19), np.uint8)])


def test_shifts_by_every_distance() -> None:
    for direction in ("LEFT", "RIGHT"):
        check("BitShift", [drawn((3, 19), np.uint8), np.arange(19, dtype=np.uint8) % 9], direction=direction)


SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1, 2.5], np.float32)


def test_numbers_that_are_none_and_numbers_that_are_infinite() -> None:
    check("IsNaN", [SPECIAL])
    check("IsInf", [SPECIAL])
    check("IsInf", [SPECIAL], detect_negative=0)
    check("IsInf", [SPECIAL], detect_positive=0)


@variants_together
@pytest.mark.parametrize("dtype", TYPES)
def test_choices(dtype: Any) -> None:
    condition = drawn((2, 1, 19), np.bool_)
    check("Where", [condition, drawn((3, 1), dtype, 1), drawn((2, 3, 19), dtype, 2)])
    check("Where", [condition, drawn((3, 1), dtype, 1), drawn((), dtype, 2)], constants=2)


@variants_together
@pytest.mark.parametrize("source", [dtype for dtype in TYPES if dtype is not np.float32])
def test_casts_between_all_types(source: Any) -> None:
    values, model = drawn((3, 19), source), ModelBuilder()
    name = model.input("x", values.shape, source)
    numbers = [int(helper.np_dtype_to_tensor_dtype(np.dtype(target))) for target in TYPES]
    check_model(model, [model.node("Cast", name, to=number) for number in numbers], {"x": values})


def test_casts_of_floats() -> None:
    """Of numbers that each type holds."""
    model, given, results = ModelBuilder(), dict[str, Array](), list[str]()
    targets: list[Any] = list(TYPES)
    for target in targets:
        ends = (0, 1) if target in (np.bool_, np.float32) else (np.iinfo(target).min, np.iinfo(target).max)
        low, high = (max(min(int(end), 2**24), -(2**24)) for end in ends)
        name = f"x{len(given)}"
        given[name] = np.array([low, high, 0.5, 1.5, 100.9, -0.5, 0.0, -0.0, 3, *([-3.7] if low else [])], np.float32)
        number = int(helper.np_dtype_to_tensor_dtype(np.dtype(target)))
        results.append(model.node("Cast", model.input(name, given[name].shape), to=number))
    check_model(model, results, given)


def test_casts_of_what_the_type_cannot_hold_are_those_of_the_cpu() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1e19, -1e19, 300, -300, 2.0**31, -(2.0**31)], np.float32)
    smallest = -(2**31)
    inside = {7: 300, 8: -300, 10: smallest}
    wanted = {
        np.int32: [inside.get(i, smallest) for i in range(len(values))],
        np.int64: [-(2**63)] * 3 + [3 * 10**9, -3 * 10**9] + [-(2**63)] * 2 + [300, -300, 2**31, -(2**31)],
        np.uint8: [44 if i == 7 else 212 if i == 8 else 0 for i in range(len(values))],
        np.int8: [44 if i == 7 else -44 if i == 8 else 0 for i in range(len(values))],
    }
    for dtype, numbers in wanted.items():
        model = ModelBuilder()
        cast = model.node(
            "Cast", model.input("x", values.shape), to=int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        )
        (found,) = found_by(model.finish(cast, dtype=dtype), values)
        np.testing.assert_array_equal(found, np.array(numbers, dtype))


@variants_together
@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_arithmetic_wraps_around(kind: str, dtype: Any) -> None:
    check(kind, [drawn((2, 3, 19), dtype), drawn((3, 1), dtype, 1)])
    check(kind, [drawn((3, 19), dtype), drawn((19,), dtype, 1)], constants=1)


@variants_together
@pytest.mark.parametrize("dtype", WIDE)
def test_quotients_are_cut_towards_zero(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    lhs = np.array([7, -7, 7, -7, limits.min, limits.max, 5, limits.min, 0], dtype)
    rhs = np.array([2, 2, -2, -2, -1, -1, 0, 0, 3], dtype)
    model = ModelBuilder()
    names = [model.input(name, lhs.shape, dtype) for name in ("x", "y")]
    (found,) = found_by(model.finish(model.node("Div", *names), dtype=dtype), lhs, rhs)
    np.testing.assert_array_equal(found, np.array([3, -3, -3, 3, limits.min, -limits.max, 0, 0, 0], dtype))


@variants_together
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders(dtype: Any, fmod: int) -> None:
    lhs, rhs = drawn((3, 19), dtype), drawn((19,), dtype, 1)
    if fmod and dtype is np.int64:
        model = ModelBuilder()
        names = [model.input(name, (3,), dtype) for name in "xy"]
        assert "fmod of i64 must be 0" in refused(model.finish(model.node("Mod", *names, fmod=1)))
    else:
        check("Mod", [lhs, np.where(rhs == 0, dtype(3), rhs)], fmod=fmod)


@variants_together
@pytest.mark.parametrize("kind", ["Max", "Min"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_extremes_of_several(kind: str, dtype: Any) -> None:
    check(kind, [drawn((3, 19), dtype), drawn((19,), dtype, 1), drawn((3, 1), dtype, 2)])


@variants_together
@pytest.mark.parametrize("kind", ["Abs", "Neg", "Sign"])
@pytest.mark.parametrize("dtype", SIGNED)
def test_functions_of_one_integer(kind: str, dtype: Any) -> None:
    check(kind, [drawn((3, 19), dtype)])


@variants_together
@pytest.mark.parametrize("dtype", TYPES)
def test_movements(dtype: Any) -> None:
    x = drawn((2, 3, 5), dtype)
    check("Transpose", [x], perm=[2, 0, 1])
    check("Reshape", [x, np.array([5, -1])], constants=1)
    check("Expand", [drawn((3, 1), dtype), np.array([2, 3, 5])], constants=1)
    check("Tile", [x, np.array([1, 2, 3])], constants=1)
    check("Slice", [x, np.array([1, -1]), np.array([3, -9]), np.array([1, 2]), np.array([1, -2])], constants=4)
    check("Concat", [x, drawn((2, 4, 5), dtype, 1)], axis=-2)
    check("Gather", [x, np.array([[1, -1], [0, 0]])], constants=1, axis=1)
    check("Split", [x, np.array([1, 2])], constants=1, outputs=2, axis=1)


@variants_together
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMin", "ReduceSum"])
def test_reductions(kind: str, dtype: Any) -> None:
    """ONNX Runtime adds in float64 and saturates: sums of i64 are equal up to 2^53."""
    x = drawn((3, 5, 19), dtype)
    x = x >> 20 if dtype is np.int64 and kind == "ReduceSum" else x
    for axes, keepdims in [((0, 2), 1), ((2,), 0), ((1,), 1)]:
        edge(kind, [x, np.array(axes)], 1, keepdims=keepdims)


INFINITE = np.array([-np.inf, np.inf, np.nan, -1.5, 0.0, 3e38, 7.0], np.float32)
ROW, LONGEST = np.arange(6, dtype=np.float32), 2**63 - 1
IMAGE = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
NUMBER, NAN = (np.array(number, np.float32) for number in (2, np.nan))


def edge(kind: str, inputs: Sequence[Array | None], constants: int, **attributes: Any) -> None:
    """ONNX Runtime gives the same; the last `constants` inputs are known, or all but a number that is added."""
    for known in {constants, len(inputs)} - ({len(inputs)} if kind.startswith("Reduce") else set()):
        model, given, names = ModelBuilder(), list[Array](), list[str]()
        for index, array in enumerate(inputs):
            is_known = index >= len(inputs) - known
            given += [] if array is None or is_known else [array]
            names.append(
                ""
                if array is None
                else model.constant(array)
                if is_known
                else model.input(f"x{index}", array.shape, array.dtype.type)
            )
        first = inputs[0]
        assert first is not None
        result = model.node(kind, *names, **attributes)
        if not given:
            given.append(np.zeros((), first.dtype))
            result = model.node("Add", result, model.input("zero", (), first.dtype.type))
        agreed(model.finish(result, dtype=first.dtype.type, version=18), *given)


@variants_together
@pytest.mark.parametrize(
    ("kind", "inputs", "constants", "attributes"),
    [
        *(
            ("Slice", [ROW, np.array([start]), np.array([end]), np.array([0]), np.array([step])], 4, {})
            for start, end, step in [
                (3, LONGEST, -1),
                (9, 2**31 - 1, -2),
                (-9, -9, -1),
                (4, LONGEST - 1, -1),
                (1, LONGEST, 2),
            ]
        ),
        ("Clip", [INFINITE], 0, {}),
        ("Clip", [INFINITE, None, NUMBER], 1, {}),
        *(
            ("Clip", [INFINITE, *bounds], 0, {})
            for bounds in ([NAN, NUMBER], [NUMBER, NAN], [NUMBER], [NUMBER, INFINITE[3:4].reshape(())])
        ),
        ("Pad", [np.array([1, 2, 3]), np.array([1, 2]), np.array(2**60 + 1)], 2, {}),
        *(("Pow", [np.array([-(2**31), 2**31 - 1, 7], np.int32), np.array(e)], 1, {}) for e in (0, 1, 2, 3)),
        *(("Pow", [np.array([-(2**63), 2**62 + 7, 7]), np.array(e)], 1, {}) for e in (0, 2, 3)),
        *(
            ("Resize", [IMAGE, None, np.array([1, 1, *scales], np.float32)], 1, {"mode": mode, **how})
            for mode, how in (
                *(("nearest", {}), ("linear", {}), ("linear", {"antialias": 1}), ("cubic", {"antialias": 1})),
                ("nearest", {"coordinate_transformation_mode": "asymmetric"}),
            )
            for scales in ((1.3, 1.2), (1.3, 2), (2, 1.2), (1.0001, 1))
            if (mode, how) != ("linear", {}) or 2 not in scales
        ),
        *(
            (
                "Resize",
                [np.arange(extent, dtype=np.float32).reshape(1, 1, 1, -1), None, None, np.array([1, 1, 1, size])],
                1,
                {"nearest_mode": mode, "coordinate_transformation_mode": how},
            )
            for mode in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
            for how, extent, size in (
                ("asymmetric", 7, 38),
                ("asymmetric", 7, 2),
                ("half_pixel", 14, 19),
                ("half_pixel", 14, 1),
            )
        ),
    ],
)
def test_edges_are_those_of_onnx_runtime(
    kind: str, inputs: Sequence[Array | None], constants: int, attributes: dict[str, Any]
) -> None:
    edge(kind, inputs, constants, **attributes)


@pytest.mark.parametrize(
    ("kind", "inputs", "is_known", "reason"),
    [
        *((f"Reduce{kind}", [np.arange(6)], False, "input 0 must be f32") for kind in ("L1", "Prod", "SumSquare")),
        ("Pow", [np.arange(6), np.array(1)], False, "exponent of i64 must be one of"),
        ("Pow", [np.arange(6, dtype=np.int32), np.array(4)], False, "exponent of i32 must be one of"),
        ("Pow", [np.arange(6, dtype=np.int32), np.array(31)], True, "must be exact in float64"),
        ("ReduceProd", [np.full(3, 2**30)], True, "must be exact in float64"),
        ("ReduceSum", [np.full(2, 2**30, np.int32)], True, "must be exact in float64"),
        ("Mod", [np.full(3, 2**60 + 1), np.array(10)], True, "must be exact in float64"),
    ],
)
def test_what_onnx_runtime_computes_in_float64(kind: str, inputs: Sequence[Array], is_known: bool, reason: str) -> None:
    model, (first, *rest) = ModelBuilder(), inputs
    source = model.constant(first) if is_known else model.input("x", first.shape, first.dtype.type)
    how = {"fmod": 1} if kind == "Mod" else {}
    assert reason in refused(model.finish(model.node(kind, source, *map(model.constant, rest), **how), version=18))


def test_what_does_not_fit_is_refused() -> None:
    model = ModelBuilder()
    x, y = model.input("x", (3,), np.int64), model.input("y", (3,), np.int32)
    assert "inputs must be of one type, but got i32 and i64" in refused(model.finish(model.node("Add", x, y)))
    model = ModelBuilder()
    taken = model.node("Gather", model.input("x", (3,)), model.input("i", (2,), np.uint8))
    assert "indices must be i32 or i64, but got ui8" in refused(model.finish(taken))
    model = ModelBuilder()
    found = model.node("NonZero", model.input("x", (3,), np.int64))
    assert "operator is not supported" in refused(model.finish(found))
    for first in (np.arange(8), np.arange(64).reshape(8, 8)):
        model = ModelBuilder()
        clipped = model.node("Clip", model.constant(np.arange(8)), model.constant(first))
        assert "bounds must have 1 element" in refused(model.finish(clipped))


@pytest.mark.parametrize("dtype", WIDE)
def test_integers_are_clipped(dtype: Any) -> None:
    x, low, high = drawn((3, 19), dtype), np.array(-9, dtype), np.array(70, dtype)
    for bounds in ([low, high], [low], [high, low]):
        check("Clip", [x, *bounds])
        check("Clip", [x, *bounds], constants=len(bounds))
        check("Clip", [x, *bounds], constants=len(bounds) + 1)


# Elements at positions that are known at run time, running sums and orders: as the package's reference has them.

GATHERS: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
    ((7, 5), (2, 3), 0),
    ((7, 5), (4,), -1),
    ((3, 7, 5), (2, 3), 1),
    ((3, 7, 5), (), 2),
    ((9,), (3,), 0),
]


@variants_together
@pytest.mark.parametrize(("shape", "indices", "axis"), GATHERS)
@pytest.mark.parametrize("dtype", TYPES)
def test_gathers_at_run_time(shape: tuple[int, ...], indices: tuple[int, ...], axis: int, dtype: Any) -> None:
    extent = shape[axis]
    for wide in WIDE:
        where = np.random.default_rng(3).integers(-extent, extent, indices).astype(wide)
        check("Gather", [drawn(shape, dtype), where], axis=axis)


def test_an_index_outside_names_the_nearest_element() -> None:
    model = ModelBuilder()
    rows = model.constant(np.arange(12, dtype=np.float32).reshape(4, 3))
    taken = model.node("Gather", rows, model.input("i", (6,), np.int64))
    (found,) = found_by(model.finish(taken, dtype=np.float32), np.array([4, 2**40, -5, -(2**40), -1, 3]))
    np.testing.assert_array_equal(found[:, 0], [9, 9, 0, 0, 9, 9])


@variants_together
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
def test_scatters(dtype: Any) -> None:
    x = drawn((5, 3, 7), dtype)
    check("ScatterND", [x, np.array([[1], [4], [0]]), drawn((3, 3, 7), dtype, 1)])
    check("ScatterND", [x, np.array([[[1, 2], [4, 0]]]), drawn((1, 2, 7), dtype, 1)])
    indices = np.random.default_rng(0).permuted(np.tile(np.arange(3), (2, 7, 1)), axis=-1).transpose(0, 2, 1)
    check("ScatterElements", [x, np.ascontiguousarray(indices), drawn((2, 3, 7), dtype, 1)], axis=1)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
@pytest.mark.parametrize("reduction", ["add", "mul", "min", "max"])
def test_scatters_reduce(dtype: Any, reduction: str) -> None:
    x = drawn((5, 3, 7), dtype)
    rows = np.random.default_rng(0).integers(0, 5, (6, 1))
    check("ScatterND", [x, rows, drawn((6, 3, 7), dtype, 1)], reduction=reduction)
    indices = np.random.default_rng(1).integers(-3, 3, (2, 9, 7))
    check("ScatterElements", [x, indices, drawn((2, 9, 7), dtype, 1)], axis=1, reduction=reduction)


@variants_together
@pytest.mark.parametrize("dtype", [*WIDE, np.float32])
def test_running_sums(dtype: Any) -> None:
    for axis in (0, -1, 1):
        for exclusive, reverse in [(0, 0), (1, 0), (0, 1), (1, 1)]:
            how = {"exclusive": exclusive, "reverse": reverse}
            check("CumSum", [drawn((3, 5, 19), dtype), np.array(axis)], constants=1, **how)


@variants_together
@pytest.mark.parametrize("dtype", [*WIDE, np.float32, np.uint8])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("largest", [0, 1])
def test_the_first_few(dtype: Any, axis: int, largest: int) -> None:
    for shape in [(7, 19), (5, 3, 11)]:
        x = drawn(shape, dtype)
        values, indices = check_top_k(x, min(4, shape[axis]), axis, largest)
        np.testing.assert_array_equal(np.take_along_axis(x, indices, axis), values)


def check_top_k(x: Array, count: int, axis: int, largest: int) -> tuple[Array, Array]:
    """Of equal numbers the first comes first."""
    model = ModelBuilder()
    names = model.input("x", x.shape, x.dtype.type), model.constant(np.array([count]))
    model.node_of_many("TopK", names, ["v", "i"], axis=axis, largest=largest)
    values, indices = found_by(model.finish("v", "i", dtype=np.float32), x)
    keys = x.astype(np.float64)
    order = np.argsort(-keys if largest else keys, axis=axis, kind="stable")
    np.testing.assert_array_equal(indices, np.take(order, np.arange(count), axis=axis), strict=True)
    return values, indices


@variants_together
@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", [*WIDE, np.float32])
def test_indices_of_extremes(kind: str, dtype: Any) -> None:
    for axis, keepdims, last in [(0, 0, 0), (-1, 1, 0), (1, 0, 1), (2, 1, 1)]:
        x = drawn((3, 5, 19), dtype)
        check(kind, [x], axis=axis, keepdims=keepdims, select_last_index=last)


def test_zeros_of_both_signs_are_equal() -> None:
    check("ArgMax", [np.array([[-0.0, 0.0, -1.0]], np.float32)], axis=1)


def test_rows_of_a_quantized_table_stay_quantized() -> None:
    model, ids = ModelBuilder(), np.array([[3, 9, 0], [-1, 5, 5]])
    values = np.random.default_rng(0).integers(-128, 128, (10, 33)).astype(np.int8)
    rows = model.node("Gather", model.weight(values, 0.1), model.input("ids", ids.shape, np.int64))
    content = model.finish(model.quantize(rows, (0.1, 0), np.int8), dtype=np.int8)
    assert "f32" not in str(import_onnx(content)).replace("qnn.name", "")
    np.testing.assert_array_equal(found_by(content, ids)[0], values[ids])


def test_rows_of_a_table_with_a_scale_for_each() -> None:
    model, ids = ModelBuilder(), np.array([[3, 9, 0], [-1, 5, 5]])
    values = np.random.default_rng(0).integers(-128, 128, (10, 33)).astype(np.int8)
    scales = [float(2.0**-i) for i in range(10)]
    rows = model.node("Gather", model.weight(values, scales), model.input("ids", ids.shape, np.int64))
    wanted = values.astype(np.float32) * np.array(scales, np.float32)[:, np.newaxis]
    np.testing.assert_array_equal(found_by(model.finish(rows, dtype=np.float32), ids)[0], wanted[ids])


REFUSED: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("TopK", [np.array([0])], {}, "k must be in [1, 5], but got 0"),
    ("TopK", [np.array([2**40])], {}, "k must be in [1, 5], but got"),
    ("TopK", [np.array([1, 2])], {}, "k must have 1 entry, but got 2"),
    ("CumSum", [np.array(2)], {}, "axes must be in [-2, 2), but got [2]"),
    ("CumSum", [np.array([0, 1])], {}, "axis must have 1 entry, but got 2"),
    ("GatherElements", [np.zeros((3, 6), np.int64)], {}, "indices must lie in a tensor of shape [3, 5]"),
    ("GatherElements", [np.zeros(3, np.int64)], {}, "indices must lie in a tensor of shape [3, 5]"),
    ("GatherND", [np.zeros((2, 3), np.int64)], {}, "indices must name 1 to 2 dimensions, but name 3"),
    (
        "GatherND",
        [np.zeros((2, 1), np.int64)],
        {"batch_dims": 1},
        "batch_dims must be dimensions that data and indices",
    ),
    ("GatherND", [np.array(0)], {}, "batch_dims must be dimensions that data and indices"),
    ("ScatterND", [np.zeros((2, 1), np.int64), np.zeros((2, 4), np.int64)], {}, "updates must have the shape [2, 5]"),
    (
        "ScatterElements",
        [np.zeros((1, 5), np.int64), np.zeros((1, 5), np.int64)],
        {"reduction": "mean"},
        "reduction must be none or add or mul or min or max, but got mean",
    ),
    ("Trilu", [np.array([1, 2])], {}, "k must have 1 entry, but got 2"),
    ("OneHot", [np.array(2**62), np.zeros(2, np.float32)], {}, "depth must be in [1, 2147483647]"),
    ("OneHot", [np.array(np.nan, np.float32), np.zeros(2, np.float32)], {}, "depth must be in [1, 2147483647]"),
    ("Equal", [np.zeros((3, 5), np.int32)], {}, "inputs must be of one type, but got i32 and i64"),
    ("And", [np.zeros((3, 5), np.int64)], {}, "inputs must be i1, but got i64"),
    ("IsNaN", [], {}, "inputs must be f32, but got i64"),
]


@pytest.mark.parametrize(("kind", "operands", "attributes", "reason"), REFUSED)
def test_what_an_operator_cannot_do_is_refused(
    kind: str, operands: list[Any], attributes: dict[str, Any], reason: str
) -> None:
    model = ModelBuilder()
    names = [model.input("x", (3, 5), np.int64), *(model.constant(array) for array in operands)]
    assert reason in refused(model.finish(model.node(kind, *names, **attributes), version=18))
