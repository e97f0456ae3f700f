"""Integer ops, bits and reductions: compiled they are the reference."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from compiled_ops import (
    EIGHT_BIT,
    Attributes,
    check,
    check_op,
    check_variants,
    ends,
    numbers_of,
    quantization,
    tensor,
    variants_together,
)
from drawn_graphs import graph
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.arithmetic import Rounding
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]
Shape = tuple[int, ...]


def far_indices(shape: Shape, extent: int, dtype: str) -> Array:
    """Indices inside, from the end, and outside on both sides."""
    found = np.random.default_rng(7).integers(-2 * extent, 2 * extent, shape).astype(dtype)
    if found.size >= 2:
        found.flat[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return found


GATHERS: list[tuple[Shape, Shape, int]] = [
    ((7, 5), (2, 3), 0),
    ((7, 5), (4,), 1),
    ((3, 7, 5), (2, 3), 1),
    ((3, 7, 5), (), 0),
    ((2, 3, 7, 5), (1, 5), 3),
    ((2, 3, 7, 5), (6,), 2),
    ((9,), (2, 5), 0),
    ((9,), (), 0),
    ((11, 67), (3, 2, 2), 0),
]


@variants_together
@pytest.mark.parametrize(("data", "indices", "axis"), GATHERS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_gathers(data: Shape, indices: Shape, axis: int, dtype: str) -> None:
    types = [tensor(data, "f32"), tensor(indices, {"int32": "i32", "int64": "i64"}[dtype])]
    given = [numbers_of(data, "f32"), far_indices(indices, data[axis], dtype)]
    check_op(qnn.DynamicGatherOp, types, "f32", given, axis=axis)


def test_a_gather_counts_from_the_end_and_stays_inside() -> None:
    data, indices = np.arange(5, dtype=np.float32), np.array([-1, -5, -6, 4, 5, 2**40, -(2**40)])
    wanted = np.array([4, 0, 0, 4, 4, 4, 0], np.float32)

    def body(x: ir.Value, i: ir.Value) -> ir.Value:
        return qnn.build(qnn.DynamicGatherOp, x, i, element="f32", axis=0).output

    module = graph([tensor((5,), "f32"), tensor((7,), "i64")], body)
    check(module, [data, indices])
    np.testing.assert_array_equal(interpreter.run(module, [data, indices])[0], wanted)


SCATTERS: list[tuple[Shape, int]] = [((5,), 9), ((7, 3), 4), ((4, 3, 19), 6), ((2, 3, 5, 4), 3)]


@variants_together
@pytest.mark.parametrize(("data", "count"), SCATTERS)
def test_scatters_write_in_order(data: Shape, count: int) -> None:
    updates = (count, *data[1:])
    given = [numbers_of(data, "f32"), far_indices((count,), data[0], "int32"), numbers_of(updates, "f32", 1)]
    check_op(qnn.DynamicScatterOp, [tensor(data, "f32"), tensor((count,), "i32"), tensor(updates, "f32")], "f32", given)


@pytest.mark.parametrize("element", ["i16", "i32", "i64", "f32"])
def test_scatters_reduce_in_order(element: str) -> None:
    how = [{"reduction": kind} for kind in ("add", "mul", "max", "min")]
    for data, count in [((5,), 40), ((4, 3, 19), 12), ((2, 70), 5)]:
        updates = (count, *data[1:])
        given = [numbers_of(data, element), far_indices((count,), data[0], "int64"), numbers_of(updates, element, 1)]
        types = [tensor(data, element), tensor((count,), "i64"), tensor(updates, element)]
        check_variants(qnn.DynamicScatterOp, types, element, how, given)


@variants_together
@pytest.mark.parametrize("element", ["i32", "i64", "f32"])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(element: str, exclusive: bool, reverse: bool) -> None:
    shapes = [((7,), 0), ((3, 19), 1), ((3, 19), 0), ((2, 3, 5, 7), 2), ((1,), 0), ((4, 1), 1), ((2, 19, 6), 2)]
    for shape, axis in shapes:
        how: dict[str, Any] = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
        check_op(qnn.CumSumOp, [tensor(shape, element)], element, [numbers_of(shape, element)], **how)


@variants_together
@pytest.mark.parametrize("element", ["i32", "i64"])
def test_the_largest_elements(element: str) -> None:
    """Ties, the smallest number and the largest, all of a row and one of it."""
    few = [((7,), 0, 7), ((3, 37), 1, 5), ((37, 3), 0, 37), ((2, 5, 19), 1, 4), ((1,), 0, 1)]
    many = [((2, 331), 1, 7), ((131, 2), 0, 131), ((2, 131), 1, 50), ((67, 2), 0, 33), ((2, 1105), 1, 33)]
    for shape, axis, count in [*few, *many, ((6503,), 0, 40)]:
        values = numbers_of(shape, element)
        if count % 2:
            values //= 2 ** (29 if element == "i32" else 61)
            values[: shape[0] // 2] = np.iinfo(values.dtype.name).min
        check_op(qnn.TopKOp, [tensor(shape, element)], element, [values], axis=axis, count=count)


REDUCTIONS: list[tuple[Shape, Shape]] = [
    ((7,), (0,)),
    ((3, 19), (1,)),
    ((3, 19), (0,)),
    ((2, 5, 7, 19), (1, 3)),
    ((2, 517), (1,)),
]


@variants_together
@pytest.mark.parametrize("op", [qnn.IntSumOp, qnn.IntProdOp, qnn.IntMaxOp, qnn.IntMinOp])
@pytest.mark.parametrize("element", ["i16", "i32", "i64"])
@pytest.mark.parametrize("keep_dims", [False, True])
def test_reductions(op: Any, element: str, keep_dims: bool) -> None:
    for shape, axes in REDUCTIONS:
        given = [numbers_of(shape, element)]
        check_op(op, [tensor(shape, element)], element, given, axes=axes, keep_dims=keep_dims)


@variants_together
@pytest.mark.parametrize("element", ["i8", "ui8"])
@pytest.mark.parametrize("keep_dims", [False, True])
def test_sums_of_bytes_have_32_bits(element: str, keep_dims: bool) -> None:
    for shape, axes in REDUCTIONS:
        given = [numbers_of(shape, element)]
        check_op(qnn.IntSumOp, [tensor(shape, element)], "i32", given, axes=axes, keep_dims=keep_dims)


def test_two_threads_compute_the_same() -> None:
    """Whatever is divided among threads: rows read, rows written in order, sums in order, and comparisons."""
    element = "i64"
    x, updates = numbers_of((257, 67), element), numbers_of((999, 67), element, 1)
    where = far_indices((999,), 257, "int64")
    cases: list[tuple[Any, list[Array], dict[str, Any]]] = [
        (qnn.DynamicGatherOp, [x, where], {"axis": 0}),
        (qnn.DynamicScatterOp, [x, where, updates], {}),
        (qnn.DynamicScatterOp, [x, where, updates], {"reduction": "add"}),
        (qnn.CumSumOp, [x], {"axis": 0}),
        (qnn.CumSumOp, [x], {"axis": 1, "reverse": True}),
        (qnn.TopKOp, [x], {"axis": 0, "count": 100}),
        (qnn.IntSumOp, [x], {"axes": (0,)}),
    ]
    for op, inputs, attributes in cases:

        def body(*operands: ir.Value, op: Any = op, attributes: dict[str, Any] = attributes) -> ir.Value:
            return qnn.build(op, *operands, element=element, **attributes).output

        module = graph([tensor(array.shape, element) for array in inputs], body)
        (wanted,) = interpreter.run(module, inputs)
        found = compile_module(module, threads=2, min_cycles=0)(*inputs)
        np.testing.assert_array_equal(found, wanted, err_msg=op.OPERATION_NAME)


# Shifts and leading zeros of integers: compiled they are the reference, which is that of Python's integers.

_WIDTHS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}


def numbers(bits: int) -> Array:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    near = [low, low + 1, -77, -2, -1, 0, 1, 2, 3, 100, high - 1, high]
    return np.array(near, dtype=f"int{bits}")


def shifted(name: str, x: int, amount: int, bits: int) -> int:
    """By the unsigned value of the amount: from the width on every bit is gone, or is the sign."""
    amount = min(amount % (1 << bits), bits)
    unsigned = x % (1 << bits)
    wide = {"arith.shli": unsigned << amount, "arith.shrui": unsigned >> amount, "arith.shrsi": x >> amount}[name]
    return (wide + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def of_two(name: str, element: str, count: int) -> ir.Module:
    def body(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        return ir.Operation.create(name, results=[lhs.type], operands=[lhs, rhs]).results[0]

    return graph([tensor((count,), element)] * 2, body)


@variants_together
@pytest.mark.parametrize("name", ["arith.shli", "arith.shrsi", "arith.shrui"])
@pytest.mark.parametrize("element", list(_WIDTHS))
def test_shifts(name: str, element: str) -> None:
    bits = _WIDTHS[element]
    amounts = np.array([0, 1, 2, bits // 2, bits - 1, bits, bits + 1, 100, -1, -bits], dtype=f"int{bits}")
    x, amount = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(numbers(bits), amounts))
    module = of_two(name, element, x.size)
    wanted = [shifted(name, a, b, bits) for a, b in zip(x.tolist(), amount.tolist(), strict=True)]
    assert interpreter.run(module, [x, amount])[0].tolist() == wanted
    check(module, [x, amount])


@variants_together
@pytest.mark.parametrize("element", list(_WIDTHS))
def test_leading_zeros(element: str) -> None:
    bits = _WIDTHS[element]
    x = np.concatenate([numbers(bits), np.array([1 << i for i in range(bits - 1)], dtype=f"int{bits}")])

    def body(value: ir.Value) -> ir.Value:
        return ir.Operation.create("math.ctlz", results=[value.type], operands=[value]).results[0]

    module = graph([tensor(x.shape, element)], body)
    wanted = [bits - (value % (1 << bits)).bit_length() for value in x.tolist()]
    assert interpreter.run(module, [x])[0].tolist() == wanted
    check(module, [x])


def test_leading_zeros_of_a_bit() -> None:
    def body(value: ir.Value) -> ir.Value:
        return ir.Operation.create("math.ctlz", results=[value.type], operands=[value]).results[0]

    module = graph([tensor((2,), "i1")], body)
    assert interpreter.run(module, [np.array([False, True])])[0].tolist() == [True, False]
    check(module, [np.array([False, True])])


# Compiled reductions over axes equal the reference, on odd shapes, every axis, many equal quantized values.

SHAPES = [(1,), (7,), (70,), (3, 5), (2, 3, 66), (2, 5, 7, 21), (1, 2, 2, 64), (300, 3), (2, 300), (3, 1, 257)]


@variants_together
@pytest.mark.parametrize("op", [qnn.ArgMaxOp, qnn.ArgMinOp])
@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_arg(op: Any, number: int) -> None:
    shape, source = SHAPES[number], EIGHT_BIT[number % 2]
    rng = np.random.default_rng(number)
    values = rng.choice(np.array([-128, 0, 3, 127]), shape).astype(np.int64).astype(NUMPY_DTYPES[source])
    for axis in range(len(shape)):
        element = ("i32", "i64")[(number + axis) % 2]
        keep_dims, last = bool((number + axis) % 3), bool((number // 2 + axis + (op is qnn.ArgMaxOp)) % 2)
        check_op(op, [tensor(shape, source)], element, [values], axis=axis, keep_dims=keep_dims, last=last)


AXES = [
    *(((2, 5, 7, 19), axes) for axes in ((0,), (1, 2), (3,), (2, 3), (1, 3), (0, 1, 2, 3))),
    *(((70,), (0,)), ((3, 66), (1,)), ((3, 66), (0,)), ((1, 2, 2, 64), (1, 2)), ((9, 517), (1,))),
]


@variants_together
@pytest.mark.parametrize("op", [qnn.ReduceMaxOp, qnn.ReduceMinOp])
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
    check_variants(qnn.SumOp, [tensor(shape, source)], result, variants)


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
        return qnn.build(qnn.L2NormalizeOp, x, element=element, input_zero_point=zero_point).output

    module = graph([tensor(shape, element)], body)
    check(module, [values], [np.full(shape, zero_point, dtype=dtype)], [quiet])
