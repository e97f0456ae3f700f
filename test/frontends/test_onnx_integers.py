"""Operators on integers and booleans: the package's reference says what they give, bit for bit."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from compiled_ops import variants_together
from onnx import helper
from onnx_graphs import (
    Array,
    Known,
    ModelBuilder,
    Operand,
    agreed,
    assert_same,
    check,
    check_node,
    found_by,
    node,
    of_reference,
    refused,
    run_both,
)

from qdialect.frontends.onnx import import_onnx

WIDE = (np.int32, np.int64)
SIGNED = (np.int8, np.int16, *WIDE)
INTEGERS = (*SIGNED, np.uint8, np.uint16)
TYPES = (*INTEGERS, np.float32, np.bool_)


def drawn(shape: Sequence[int], dtype: Any, seed: int = 0) -> Array:
    """Numbers of which many are equal, and both ends of the type."""
    rng = np.random.default_rng(seed)
    if dtype is np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype is np.float32:
        return (rng.integers(-9, 9, shape) / 2).astype(dtype)
    limits = np.iinfo(dtype)
    found = rng.integers(max(limits.min, -5), 6, shape).astype(dtype)
    if found.size > 3:
        found.flat[1], found.flat[3] = limits.min, limits.max
    return found


def known(*entries: int) -> Known:
    return Known(np.array(entries))


def number_of(dtype: Any) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


COMPARISONS = ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]


@variants_together
@pytest.mark.parametrize("dtype", TYPES)
def test_comparisons_and_choices(dtype: Any) -> None:
    x, column, number = drawn((2, 3, 19), dtype), drawn((3, 1), dtype, 1), drawn((), dtype, 1)
    for kind in COMPARISONS[:1] if dtype is np.bool_ else COMPARISONS:
        check(kind, [x, column])
        check(kind, [x, Known(number)])
    condition = drawn((2, 1, 19), np.bool_)
    check("Where", [condition, column, x])
    check("Where", [condition, Known(column), Known(number)])


@variants_together
@pytest.mark.parametrize("kind", ["And", "Or", "Xor"])
def test_logic(kind: str) -> None:
    check(kind, [drawn((2, 3, 19), np.bool_), drawn((3, 1), np.bool_, 1)])
    for dtype in (np.int8, np.uint8, np.int64):
        check(f"Bitwise{kind}", [drawn((3, 19), dtype), drawn((19,), dtype, 1)])


SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1, 2.5], np.float32)
PREDICATES: list[tuple[str, list[Operand], dict[str, Any]]] = [
    ("Not", [drawn((3, 19), np.bool_)], {}),
    ("BitwiseNot", [drawn((3, 19), np.uint8)], {}),
    ("BitShift", [drawn((3, 19), np.uint8), np.arange(19, dtype=np.uint8) % 9], {"direction": "LEFT"}),
    ("BitShift", [drawn((3, 19), np.uint8), np.arange(19, dtype=np.uint8) % 9], {"direction": "RIGHT"}),
    ("IsNaN", [SPECIAL], {}),
    *(("IsInf", [SPECIAL], how) for how in ({}, {"detect_negative": 0}, {"detect_positive": 0})),
    # Zeros of both signs are equal.
    ("ArgMax", [np.array([[-0.0, 0.0, -1.0]], np.float32)], {"axis": 1}),
]


@variants_together
@pytest.mark.parametrize(("kind", "operands", "attributes"), PREDICATES)
def test_bits_and_predicates(kind: str, operands: list[Operand], attributes: dict[str, Any]) -> None:
    check(kind, operands, **attributes)


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMin", "Abs", "Sign"])
def test_bytes_that_are_not_quantized(kind: str, dtype: Any) -> None:
    axes = [Known(np.array([1]))] if kind.startswith("Reduce") else []
    check_node(kind, [drawn((2, 3, 19), dtype), *axes])


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.bool_])
@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("kind", ["ScatterElements", "ScatterND"])
def test_narrow_integers_that_meet_at_a_place(kind: str, reduction: str, dtype: Any) -> None:
    """They wrap around; of truth values a sum is Or and a product And."""
    places = np.zeros((2, 1), np.int64) if kind == "ScatterND" else np.array([[0, 1, 2], [0, 3, 2]])
    data, updates = (drawn(shape, np.int16, seed).astype(dtype) for seed, shape in enumerate([(4, 3), (2, 3)]))
    content, inputs = node(kind, [data, Known(places), updates], reduction=reduction)
    if dtype is np.bool_ and reduction in ("max", "min"):
        assert "reduction of truth values must be none, add or mul" in refused(content)
    else:
        agreed(content, *inputs)


@variants_together
@pytest.mark.parametrize("source", [dtype for dtype in TYPES if dtype is not np.float32])
def test_casts_between_all_types(source: Any) -> None:
    values, model = drawn((3, 19), source), ModelBuilder()
    name = model.input("x", values.shape, source)
    content = model.finish(*(model.node("Cast", name, to=number_of(target)) for target in TYPES), dtype=None)
    assert_same(found_by(content, values), of_reference(content, values))


@variants_together
@pytest.mark.parametrize("target", TYPES)
def test_casts_of_floats(target: Any) -> None:
    """Of numbers that each type holds."""
    ends = (0, 1) if target in (np.bool_, np.float32) else (np.iinfo(target).min, np.iinfo(target).max)
    low, high = (max(min(int(end), 2**24), -(2**24)) for end in ends)
    values = np.array([low, high, 0.5, 1.5, 100.9, -0.5, 0.0, -0.0, 3, *([-3.7] if low else [])], np.float32)
    check("Cast", [values], to=number_of(target))


def test_casts_of_numbers_that_the_type_cannot_hold_are_those_of_the_cpu() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1e19, -1e19, 300, -300, 2.0**31, -(2.0**31)], np.float32)
    smallest = -(2**31)
    wanted: dict[Any, list[int]] = {
        np.int32: [smallest] * 7 + [300, -300, smallest, smallest],
        np.int64: [-(2**63)] * 3 + [3 * 10**9, -3 * 10**9] + [-(2**63)] * 2 + [300, -300, 2**31, -(2**31)],
        np.uint8: [0] * 7 + [44, 212, 0, 0],
        np.int8: [0] * 7 + [44, -44, 0, 0],
    }
    for dtype, numbers in wanted.items():
        content, _ = node("Cast", [values], to=number_of(dtype))
        np.testing.assert_array_equal(run_both(content, values), np.array(numbers, dtype))


@variants_together
@pytest.mark.parametrize("dtype", INTEGERS)
def test_arithmetic_wraps_around(dtype: Any) -> None:
    x, row, column = drawn((3, 19), dtype), drawn((19,), dtype, 1), drawn((3, 1), dtype, 2)
    for kind in ("Add", "Sub", "Mul"):
        check(kind, [drawn((2, 3, 19), dtype), column])
        check(kind, [x, Known(row)])
    for kind in ("Max", "Min"):
        check(kind, [x, row, column])
    for fmod in (0,) if dtype is np.int64 else (0, 1):
        check("Mod", [x, np.where(row == 0, dtype(3), row)], fmod=fmod)
    for kind in ("Abs", "Neg", "Sign") if dtype in SIGNED else ():
        check(kind, [x])


@variants_together
@pytest.mark.parametrize("dtype", WIDE)
def test_quotients_are_cut_towards_zero(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    lhs = np.array([7, -7, 7, -7, limits.min, limits.max, 5, limits.min, 0], dtype)
    rhs = np.array([2, 2, -2, -2, -1, -1, 0, 0, 3], dtype)
    content, _ = node("Div", [lhs, rhs])
    wanted = np.array([3, -3, -3, 3, limits.min, -limits.max, 0, 0, 0], dtype)
    np.testing.assert_array_equal(run_both(content, lhs, rhs), wanted)


@variants_together
@pytest.mark.parametrize("dtype", TYPES)
def test_movements(dtype: Any) -> None:
    x = drawn((2, 3, 5), dtype)
    check("Transpose", [x], perm=[2, 0, 1])
    check("Reshape", [x, known(5, -1)])
    check("Expand", [drawn((3, 1), dtype), known(2, 3, 5)])
    check("Tile", [x, known(1, 2, 3)])
    check("Slice", [x, known(1, -1), known(3, -9), known(1, 2), known(1, -2)])
    check("Concat", [x, drawn((2, 4, 5), dtype, 1)], axis=-2)
    check("Gather", [x, Known(np.array([[1, -1], [0, 0]]))], axis=1)
    check("Split", [x, known(1, 2)], outputs=2, axis=1)
    for upper in (0, 1):
        check("Trilu", [drawn((2, 5, 7), dtype)], upper=upper)
        check("Trilu", [drawn((5, 5), dtype), Known(np.array(-2))], upper=upper)


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
    first = len(inputs) - constants
    operands = [*inputs[:first], *(None if one is None else Known(one) for one in inputs[first:])]
    check_node(kind, operands, "", **attributes)
    if kind.startswith("Reduce"):
        return
    model = ModelBuilder()
    names = ["" if one is None else model.constant(one) for one in inputs]
    assert inputs[0] is not None
    zero = np.zeros((), inputs[0].dtype)
    result = model.node("Add", model.node(kind, *names, **attributes), model.input("zero", (), zero.dtype.type))
    agreed(model.finish(result, dtype=None, version=18), zero)


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
        *(("Pow", [np.array([-(2**63), 2**62 + 7, 7]), np.array(e)], 1, {}) for e in (0, 2, 3, 2.0, np.float32(3))),
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
        ("Pow", [np.array([2**31 - 1], np.int32), np.array(2)], False, "must have several elements"),
        ("Pow", [np.array(2**31 + 1), np.array(3)], True, "must be exact in float64"),
        ("Pow", [np.arange(6, dtype=np.int32), np.array(4)], False, "exponent of i32 must be one of"),
        ("Pow", [np.arange(6, dtype=np.int32), np.array(31)], True, "must be exact in float64"),
        ("ReduceProd", [np.full(3, 2**30)], True, "must be exact in float64"),
        ("ReduceSum", [np.full(2, 2**30, np.int32)], True, "must be exact in float64"),
        ("Mod", [np.full(3, 2**60 + 1), np.array(10)], True, "must be exact in float64"),
    ],
)
def test_operators_that_onnx_runtime_computes_in_float64(
    kind: str, inputs: Sequence[Array], is_known: bool, reason: str
) -> None:
    operands = [Known(inputs[0]) if is_known else inputs[0], *map(Known, inputs[1:])]
    assert reason in refused(node(kind, operands, **({"fmod": 1} if kind == "Mod" else {}))[0])


@variants_together
@pytest.mark.parametrize("dtype", WIDE)
def test_integers_are_clipped(dtype: Any) -> None:
    x, low, high = drawn((3, 19), dtype), np.array(-9, dtype), np.array(70, dtype)
    for bounds in ([low, high], [low], [high, low]):
        check("Clip", [x, *bounds])
        check("Clip", [x, *map(Known, bounds)])
        check("Clip", [Known(x), *map(Known, bounds)])


# Elements at positions that are known at run time, running sums and orders.

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
    where = np.random.default_rng(3).integers(-shape[axis], shape[axis], indices)
    for wide in WIDE:
        check("Gather", [drawn(shape, dtype), where.astype(wide)], axis=axis)


def test_an_index_outside_names_the_nearest_element() -> None:
    rows, indices = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([4, 2**40, -5, -(2**40), -1, 3])
    content, _ = node("Gather", [Known(rows), indices])
    np.testing.assert_array_equal(run_both(content, indices)[:, 0], [9, 9, 0, 0, 9, 9])


@variants_together
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.bool_])
def test_scatters(dtype: Any) -> None:
    x = drawn((5, 3, 7), dtype)
    check("ScatterND", [x, np.array([[1], [4], [0]]), drawn((3, 3, 7), dtype, 1)])
    check("ScatterND", [x, np.array([[[1, 2], [4, 0]]]), drawn((1, 2, 7), dtype, 1)])
    indices = np.random.default_rng(0).permuted(np.tile(np.arange(3), (2, 7, 1)), axis=-1).transpose(0, 2, 1)
    check("ScatterElements", [x, np.ascontiguousarray(indices), drawn((2, 3, 7), dtype, 1)], axis=1)
    rows, indices = (np.random.default_rng(0).integers(*at) for at in ((0, 5, (6, 1)), (-3, 3, (2, 9, 7))))
    for reduction in ("add", "mul", "min", "max") if dtype is not np.bool_ else ():
        check("ScatterND", [x, rows, drawn((6, 3, 7), dtype, 1)], reduction=reduction)
        check("ScatterElements", [x, indices, drawn((2, 9, 7), dtype, 1)], axis=1, reduction=reduction)


@variants_together
@pytest.mark.parametrize("dtype", [*WIDE, np.float32])
def test_running_sums(dtype: Any) -> None:
    for axis in (0, -1, 1):
        for exclusive, reverse in [(0, 0), (1, 0), (0, 1), (1, 1)]:
            operands = [drawn((3, 5, 19), dtype), Known(np.array(axis))]
            check("CumSum", operands, exclusive=exclusive, reverse=reverse)


@variants_together
@pytest.mark.parametrize("dtype", [*WIDE, np.float32, np.uint8])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("largest", [0, 1])
def test_the_first_few(dtype: Any, axis: int, largest: int) -> None:
    """Of equal numbers the first comes first, of the least ones too; of 300 the largest are found by a heap."""
    ends = np.finfo(dtype) if dtype is np.float32 else np.iinfo(dtype)
    for x in [*(drawn(shape, dtype) for shape in ((7, 19), (5, 3, 11), (2, 300))), np.full((5, 4), ends.min, dtype)]:
        count = min(4, x.shape[axis])
        content, _ = node("TopK", [x, known(count)], outputs=2, axis=axis, largest=largest)
        values, indices = found_by(content, x)
        keys = x.astype(np.float64)
        order = np.argsort(-keys if largest else keys, axis=axis, kind="stable")
        np.testing.assert_array_equal(indices, np.take(order, np.arange(count), axis=axis), strict=True)
        np.testing.assert_array_equal(np.take_along_axis(x, indices, axis), values)


@variants_together
@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", [*WIDE, np.float32])
def test_indices_of_extremes(kind: str, dtype: Any) -> None:
    for axis, keepdims, last in [(0, 0, 0), (-1, 1, 0), (1, 0, 1), (2, 1, 1)]:
        check(kind, [drawn((3, 5, 19), dtype)], axis=axis, keepdims=keepdims, select_last_index=last)


@variants_together
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_element_of_many(axis: int) -> None:
    indices, values = np.array([[0, 3, -1], [4, 2, -5]]), np.array([-1, 3], np.float32)
    check("OneHot", [indices, Known(np.array(5)), Known(values)], axis=axis)


@variants_together
@pytest.mark.parametrize("has_many", [False, True])
def test_rows_of_a_quantized_table(has_many: bool) -> None:
    """They stay quantized where the table has one scale."""
    model, ids = ModelBuilder(), np.array([[3, 9, 0], [-1, 5, 5]])
    values = np.random.default_rng(0).integers(-128, 128, (10, 33)).astype(np.int8)
    scales = [float(2.0**-i) for i in range(10)] if has_many else 0.1
    rows = model.node("Gather", model.weight(values, scales), model.input("ids", ids.shape, np.int64))
    content = model.finish(rows if has_many else model.quantize(rows, (0.1, 0), np.int8), dtype=None)
    assert ("f32" in str(import_onnx(content)).replace("qnn.name", "")) == has_many
    wanted = values.astype(np.float32) * np.array(scales, np.float32)[:, np.newaxis] if has_many else values
    np.testing.assert_array_equal(run_both(content, ids), wanted[ids])


X = np.zeros((3, 5), np.int64)
REFUSED: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    ("k must be in [1, 5], but got 0", "TopK", [X, known(0)], {}),
    ("k must be in [1, 5], but got", "TopK", [X, known(2**40)], {}),
    ("k must have 1 entry, but got 2", "TopK", [X, known(1, 2)], {}),
    ("axes must be in [-2, 2), but got [2]", "CumSum", [X, Known(np.array(2))], {}),
    ("axis must have 1 entry, but got 2", "CumSum", [X, known(0, 1)], {}),
    ("indices must lie in a tensor of shape [3, 5]", "GatherElements", [X, Known(np.zeros((3, 6), np.int64))], {}),
    ("indices must lie in a tensor of shape [3, 5]", "GatherElements", [X, known(0, 0, 0)], {}),
    ("indices must name 1 to 2 dimensions, but name 3", "GatherND", [X, Known(np.zeros((2, 3), np.int64))], {}),
    ("batch_dims must be dimensions that data and", "GatherND", [X, Known(X[:2, :1])], {"batch_dims": 1}),
    ("batch_dims must be dimensions that data and indices", "GatherND", [X, Known(np.array(0))], {}),
    ("updates must have the shape [2, 5]", "ScatterND", [X, Known(X[:2, :1]), Known(X[:2, :4])], {}),
    (
        "reduction must be none or add or mul or min or max, but got mean",
        "ScatterElements",
        [X, Known(X[:1]), Known(X[:1])],
        {"reduction": "mean"},
    ),
    ("k must have 1 entry, but got 2", "Trilu", [X, known(1, 2)], {}),
    *(
        ("depth must be in [1, 2147483647]", "OneHot", [X, Known(np.array(depth)), Known((2,))], {})
        for depth in (2**62, np.float32(np.nan))
    ),
    ("inputs must be of one type, but got i32 and i64", "Equal", [X, Known(np.zeros((3, 5), np.int32))], {}),
    ("inputs must be of one type, but got i32 and i64", "Add", [X, np.zeros((3, 5), np.int32)], {}),
    ("inputs must be i1, but got i64", "And", [X, Known(X)], {}),
    ("inputs must be f32, but got i64", "IsNaN", [X], {}),
    ("indices must be i32 or i64, but got ui8", "Gather", [X, np.zeros(2, np.uint8)], {}),
    ("operator is not supported", "NonZero", [X], {}),
    *(("bounds must have 1 element", "Clip", [Known(np.arange(8)), Known(X[:, :n])], {}) for n in (1, 5)),
]


@pytest.mark.parametrize(("reason", "kind", "operands", "attributes"), REFUSED)
def test_refusals(reason: str, kind: str, operands: list[Operand], attributes: dict[str, Any]) -> None:
    assert reason in refused(node(kind, operands, **attributes)[0])
