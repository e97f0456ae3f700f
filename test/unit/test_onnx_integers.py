"""Operators on integers and booleans at run time: the package's reference says what they give, bit for bit."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx_graphs import ModelBuilder

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]
TARGETS = ("host", "generic")
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


def found_by(content: bytes, *inputs: Array) -> tuple[Array, ...]:
    """What the interpreter and every target give."""
    module = import_onnx(content)
    wanted = interpreter.run(module, inputs)
    for target in TARGETS:
        results = compile_module(module, target=target)(*inputs)
        for found, one in zip(results if isinstance(results, tuple) else (results,), wanted, strict=True):
            np.testing.assert_array_equal(found, one, err_msg=target, strict=True)
    return wanted


def expected(content: bytes, inputs: dict[str, Array]) -> list[Array]:
    evaluator: Any = ReferenceEvaluator(ModelProto.FromString(content))
    with np.errstate(all="ignore"):
        results: Any = evaluator.run(None, inputs)
    return [np.asarray(result) for result in results]


def check(
    kind: str, inputs: Sequence[Array], constants: int = 0, outputs: int = 1, version: int = 18, **attributes: Any
) -> tuple[Array, ...]:
    """The last `constants` inputs are known."""
    model = ModelBuilder()
    free = len(inputs) - constants
    names = [model.input(f"x{i}", array.shape, array.dtype.type) for i, array in enumerate(inputs[:free])]
    names += [model.constant(array) for array in inputs[free:]]
    results = [f"y{i}" for i in range(outputs)]
    model.node_of_many(kind, names, results, **attributes)
    content = model.finish(*results, dtype=np.float32, version=version)
    wanted = expected(content, dict(zip(names, inputs, strict=False)))
    found = found_by(content, *inputs[:free])
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
    return found


def refused(content: bytes) -> str:
    with pytest.raises(ImportModelError) as caught:
        import_onnx(content)
    return caught.value.render()


@pytest.mark.parametrize("kind", ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
@pytest.mark.parametrize("dtype", TYPES)
def test_comparisons(kind: str, dtype: Any) -> None:
    if dtype is np.bool_ and kind != "Equal":
        return
    check(kind, [drawn((2, 3, 19), dtype), drawn((3, 1), dtype, 1)])
    check(kind, [drawn((19,), dtype), drawn((), dtype, 1)], constants=1)


@pytest.mark.parametrize("kind", ["And", "Or", "Xor"])
def test_logic(kind: str) -> None:
    check(kind, [drawn((2, 3, 19), np.bool_), drawn((3, 1), np.bool_, 1)])
    for dtype in (np.int8, np.uint8, np.int64):
        check(f"Bitwise{kind}", [drawn((3, 19), dtype), drawn((19,), dtype, 1)])


def test_negations() -> None:
    check("Not", [drawn((3, 19), np.bool_)])
    check("BitwiseNot", [drawn((3, 19), np.uint8)])


SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1, 2.5], np.float32)


def test_numbers_that_are_none_and_numbers_that_are_infinite() -> None:
    check("IsNaN", [SPECIAL])
    check("IsInf", [SPECIAL])
    check("IsInf", [SPECIAL], detect_negative=0)
    check("IsInf", [SPECIAL], detect_positive=0)


@pytest.mark.parametrize("dtype", TYPES)
def test_choices(dtype: Any) -> None:
    condition = drawn((2, 1, 19), np.bool_)
    check("Where", [condition, drawn((3, 1), dtype, 1), drawn((2, 3, 19), dtype, 2)])
    check("Where", [condition, drawn((3, 1), dtype, 1), drawn((), dtype, 2)], constants=2)


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_casts(source: Any, target: Any) -> None:
    from onnx import helper

    if source is np.float32 and target not in (np.float32, np.bool_):
        low = max(int(np.iinfo(target).min), -(2**24))
        high = min(int(np.iinfo(target).max), 2**24)
        values = np.array([low, high, 0.5, 1.5, 100.9, -0.5, 0.0, -0.0, 3, *([-3.7] if low else [])], np.float32)
    else:
        values = drawn((3, 19), source)
    check("Cast", [values], to=int(helper.np_dtype_to_tensor_dtype(np.dtype(target))))


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
        from onnx import helper

        cast = model.node(
            "Cast", model.input("x", values.shape), to=int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        )
        (found,) = found_by(model.finish(cast, dtype=dtype), values)
        np.testing.assert_array_equal(found, np.array(numbers, dtype))


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_arithmetic_wraps_around(kind: str, dtype: Any) -> None:
    check(kind, [drawn((2, 3, 19), dtype), drawn((3, 1), dtype, 1)])
    check(kind, [drawn((3, 19), dtype), drawn((19,), dtype, 1)], constants=1)


@pytest.mark.parametrize("dtype", WIDE)
def test_quotients_are_cut_towards_zero(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    lhs = np.array([7, -7, 7, -7, limits.min, limits.max, 5, limits.min, 0], dtype)
    rhs = np.array([2, 2, -2, -2, -1, -1, 0, 0, 3], dtype)
    model = ModelBuilder()
    names = [model.input(name, lhs.shape, dtype) for name in ("x", "y")]
    (found,) = found_by(model.finish(model.node("Div", *names), dtype=dtype), lhs, rhs)
    np.testing.assert_array_equal(found, np.array([3, -3, -3, 3, limits.min, -limits.max, 0, 0, 0], dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders(dtype: Any, fmod: int) -> None:
    lhs, rhs = drawn((3, 19), dtype), drawn((19,), dtype, 1)
    check("Mod", [lhs, np.where(rhs == 0, dtype(3), rhs)], fmod=fmod)


@pytest.mark.parametrize("kind", ["Max", "Min"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_extremes_of_several(kind: str, dtype: Any) -> None:
    check(kind, [drawn((3, 19), dtype), drawn((19,), dtype, 1), drawn((3, 1), dtype, 2)])


@pytest.mark.parametrize("kind", ["Abs", "Neg", "Sign"])
@pytest.mark.parametrize("dtype", SIGNED)
def test_functions_of_one_integer(kind: str, dtype: Any) -> None:
    check(kind, [drawn((3, 19), dtype)])


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


GATHERS: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
    ((7, 5), (2, 3), 0),
    ((7, 5), (4,), -1),
    ((3, 7, 5), (2, 3), 1),
    ((3, 7, 5), (), 2),
    ((9,), (3,), 0),
]


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


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.uint8])
def test_elements_and_tuples(dtype: Any) -> None:
    x = drawn((3, 7, 5), dtype)
    rng = np.random.default_rng(0)
    for axis, extent in enumerate(x.shape):
        shape = (*x.shape[:axis], 4, *x.shape[axis + 1 :])
        check("GatherElements", [x, rng.integers(-extent, extent, shape)], axis=axis)
    tuples = np.stack([rng.integers(0, extent, (4, 2)) for extent in x.shape], axis=-1)
    check("GatherND", [x, tuples])
    check("GatherND", [x, tuples[..., :2].astype(np.int64)])
    check("GatherND", [x, rng.integers(0, 5, (3, 2, 2))], batch_dims=1)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
def test_scatters(dtype: Any) -> None:
    x = drawn((5, 3, 7), dtype)
    check("ScatterND", [x, np.array([[1], [4], [0]]), drawn((3, 3, 7), dtype, 1)])
    check("ScatterND", [x, np.array([[[1, 2], [4, 0]]]), drawn((1, 2, 7), dtype, 1)])
    indices = np.random.default_rng(0).permuted(np.tile(np.arange(3), (2, 7, 1)), axis=-1).transpose(0, 2, 1)
    check("ScatterElements", [x, np.ascontiguousarray(indices), drawn((2, 3, 7), dtype, 1)], axis=1)


@pytest.mark.parametrize("dtype", [*WIDE, np.float32])
def test_running_sums(dtype: Any) -> None:
    for axis in (0, -1, 1):
        for exclusive, reverse in [(0, 0), (1, 0), (0, 1), (1, 1)]:
            how = {"exclusive": exclusive, "reverse": reverse}
            check("CumSum", [drawn((3, 5, 19), dtype), np.array(axis)], constants=1, **how)


REDUCTIONS: dict[str, Callable[[Array, Any], Any]] = {
    "ReduceL1": lambda x, how: np.abs(x).sum(**how),
    "ReduceMax": lambda x, how: x.max(**how),
    "ReduceMin": lambda x, how: x.min(**how),
    "ReduceProd": lambda x, how: x.prod(**how),
    "ReduceSum": lambda x, how: x.sum(**how),
    "ReduceSumSquare": lambda x, how: (x * x).sum(**how),
}


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions(kind: str, dtype: Any) -> None:
    """Of the type of the input, which wraps around; the package's reference sums in 64 bits."""
    for axes, keepdims in [((0, 2), True), ((2,), False), ((1,), True)]:
        x, model = drawn((3, 5, 19), dtype), ModelBuilder()
        names = model.input("x", x.shape, dtype), model.constant(np.array(axes))
        content = model.finish(model.node(kind, *names, keepdims=int(keepdims)), dtype=dtype, version=18)
        with np.errstate(all="ignore"):
            wanted = REDUCTIONS[kind](x, {"axis": axes, "keepdims": keepdims}).astype(dtype)
        np.testing.assert_array_equal(found_by(content, x)[0], wanted, strict=True)


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
    codes = np.random.default_rng(0).integers(-128, 128, (10, 33)).astype(np.int8)
    rows = model.node("Gather", model.weight(codes, 0.1), model.input("ids", ids.shape, np.int64))
    content = model.finish(model.quantize(rows, (0.1, 0), np.int8), dtype=np.int8)
    assert "f32" not in str(import_onnx(content)).replace("qnn.name", "")
    np.testing.assert_array_equal(found_by(content, ids)[0], codes[ids])


def test_rows_of_a_table_with_a_scale_for_each() -> None:
    model, ids = ModelBuilder(), np.array([[3, 9, 0], [-1, 5, 5]])
    codes = np.random.default_rng(0).integers(-128, 128, (10, 33)).astype(np.int8)
    scales = [float(2.0**-i) for i in range(10)]
    rows = model.node("Gather", model.weight(codes, scales), model.input("ids", ids.shape, np.int64))
    wanted = codes.astype(np.float32) * np.array(scales, np.float32)[:, np.newaxis]
    np.testing.assert_array_equal(found_by(model.finish(rows, dtype=np.float32), ids)[0], wanted[ids])


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


EINSUMS = [
    ("bhid,bhjd->bhij", (2, 3, 5, 4), (2, 3, 7, 4)),
    ("bhij,bhjd->bhid", (2, 3, 5, 7), (2, 3, 7, 4)),
    ("bij,jk->bik", (2, 5, 7), (7, 4)),
    ("ij,jk", (5, 7), (7, 4)),
    ("...ij,...jk->...ik", (2, 3, 5, 7), (2, 3, 7, 4)),
    ("bi,bj->bij", (2, 5), (2, 4)),
    ("i,i->", (5,), (5,)),
    ("bqnd,bknd->bnqk", (2, 5, 3, 4), (2, 7, 3, 4)),
    ("bnqk,bknd->bqnd", (2, 3, 5, 7), (2, 7, 3, 4)),
    ("ijk,ik->j", (3, 4, 5), (3, 5)),
]


@pytest.mark.parametrize(("equation", "lhs", "rhs"), EINSUMS)
def test_sums_of_products_by_their_labels(equation: str, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> None:
    """Of small whole numbers, whose sums are exact in every order."""
    check("Einsum", [drawn(lhs, np.float32), drawn(rhs, np.float32, 1)], equation=equation)


@pytest.mark.parametrize("equation", ["ijk->kij", "ijk->ik", "...k->k...", "ijk->"])
def test_labels_of_one_tensor(equation: str) -> None:
    check("Einsum", [drawn((2, 3, 5), np.float32)], equation=equation)


def test_equations_that_do_not_fit_are_refused() -> None:
    cases = {
        "ii->i": "labels of a term must differ",
        "ij->k": "must name labels of its operands",
        "i->i": "a label for",
    }
    for equation, message in cases.items():
        model = ModelBuilder()
        found = model.node("Einsum", model.input("x", (3, 3)), equation=equation)
        assert message in refused(model.finish(found))


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
@pytest.mark.parametrize("upper", [0, 1])
def test_triangles(dtype: Any, upper: int) -> None:
    check("Trilu", [drawn((2, 5, 7), dtype)], upper=upper)
    check("Trilu", [drawn((5, 5), dtype), np.array(-2)], constants=1, upper=upper)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_element_of_many(axis: int) -> None:
    indices = np.array([[0, 3, -1], [4, 2, -5]])
    check("OneHot", [indices, np.array(5), np.array([-1, 3], np.float32)], constants=2, axis=axis)


NORMS = ["ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceProd"]


@pytest.mark.parametrize("kind", NORMS)
def test_norms_of_floats(kind: str) -> None:
    """Of rows in which one number is not a one, so that every order of terms gives the same."""
    x = np.abs(drawn((3, 5, 19), np.float32)) + 1
    model = ModelBuilder()
    found = model.node(kind, model.input("x", x.shape), model.constant(np.array([-1])), keepdims=0)
    content = model.finish(found, dtype=np.float32, version=18)
    np.testing.assert_allclose(found_by(content, x)[0], expected(content, {"x": x})[0], rtol=1e-6)
