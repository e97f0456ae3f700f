"""Compiled data movement equals the reference and moves no more than it must; kernels are vector code."""

from itertools import permutations
from math import prod

import numpy as np
import pytest
from compiled_ops import (
    ANY_ELEMENT,
    EIGHT_BIT,
    INTEGERS,
    TABLE,
    Attributes,
    check,
    check_compiled,
    check_op,
    ends,
    quantization,
    tensor,
    variants_together,
)
from drawn_graphs import graph

from qdialect import dialect as qnn
from qdialect import targets
from qdialect.arithmetic import Rounding
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.targets import TARGETS


@variants_together
@pytest.mark.parametrize(("number", "order"), list(enumerate(permutations(range(4)))))
def test_transpose(number: int, order: tuple[int, ...]) -> None:
    shape, element = ((2, 5, 7, 19), (1, 33, 3, 40))[order[1] % 2], ANY_ELEMENT[number % len(ANY_ELEMENT)]
    check_op(qnn.TransposeOp, [tensor(shape, element)], element, permutation=order)


def test_bytes_are_transposed_in_squares() -> None:
    """Lines of 64 along one side or the other, squares of 16, and what is left of them."""
    shapes = [(21, 150), (150, 21), (70, 85), (5, 7)]

    def body(*arrays: ir.Value) -> list[ir.Value]:
        return [qnn.build(qnn.TransposeOp, one, element="ui8", permutation=(1, 0)).output for one in arrays]

    module = graph([tensor(shape, "ui8") for shape in shapes], body)
    inputs = [np.random.default_rng(i).integers(0, 256, shape).astype(np.uint8) for i, shape in enumerate(shapes)]
    for target in (targets.host().name, "avx2", "generic"):
        if targets.resolve(target).features <= targets.host_features():
            check_compiled(module, target, [inputs], [[one.T for one in inputs]])


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
@pytest.mark.parametrize(("channels", "height", "width"), [(3, 33, 1), (5, 1, 19), (17, 6, 7), (40, 3, 35)])
def test_arrays_of_planes_are_transposed_where_they_lie(channels: int, height: int, width: int, element: str) -> None:
    """Quantized values of `i8` are stored unsigned in between; one result is read by a second op, too."""
    kernel: Attributes = {"kernel": (1, 1), "strides": (1, 1), "padding": (0, 0, 0, 0)}
    bounds = dict(zip(("output_min", "output_max"), ends(element), strict=True))

    def body(image: ir.Value) -> list[ir.Value]:
        pixels = qnn.build(qnn.TransposeOp, image, element=element, permutation=(0, 2, 3, 1)).output
        pooled = qnn.build(qnn.MaxPool2DOp, pixels, element=element, **kernel, **bounds).output
        planes = qnn.build(qnn.TransposeOp, pooled, element=element, permutation=(0, 3, 1, 2)).output
        looked_up = qnn.build(qnn.LutOp, planes, element=element, table=TABLE, **quantization(element, element)).output
        return [planes, looked_up]

    module = graph([tensor((2, channels, height, width), element)], body)
    check(module)
    labels = lower(module, TARGETS["generic"], Phase.LINALG).labels
    assert [label for label in labels if label.startswith(("input", "output"))] == []


def test_constants_are_read_where_they_lie() -> None:
    """With a border of their own for each consumer that wants one; no call stores or copies them."""
    values = np.random.default_rng(5).integers(-128, 128, (1, 4, 6, 5)).astype(np.int8)
    pads: Attributes = {"kernel": (3, 3), "strides": (1, 1), "padding": (1, 1, 1, 1)}
    bounds: Attributes = {"output_min": -128, "output_max": 127}

    def body(image: ir.Value) -> list[ir.Value]:
        known = constant(values)
        pooled = qnn.build(qnn.MaxPool2DOp, known, element="i8", **pads, **bounds).output
        how: Attributes = {"zero_point": 3, "division": "half_away", "count_include_pad": True}
        mean = qnn.build(qnn.AvgPool2DOp, known, element="i8", **pads, **bounds, **how).output
        scales: Attributes = {"output_scale": 0.5, "output_zero_point": 0, "output_min": -128, "output_max": 127}
        for name in ("lhs", "rhs"):
            scales |= {f"{name}_scale": 0.3, f"{name}_zero_point": -2}
        scales |= {"arithmetic": "shifted_fixed", "rounding": "fixed32_double", "multiplier": "f64"}
        joined = qnn.build(qnn.AddOp, mean, pooled, element="i8", **scales).output
        added = qnn.build(qnn.AddOp, image, known, element="i8", **scales).output
        turned = qnn.build(qnn.ReshapeOp, known, element="i8", shape=(1, 120)).output
        return [joined, added, turned, known]

    module = graph([tensor(values.shape, "i8")], body)
    check(module)
    labels = lower(module, TARGETS["generic"], Phase.LINALG).labels
    assert [label for label in labels if label == "padding" or label.startswith(("constant", "pad"))] == []


RESHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((1, 1, 1, 101), (1, 101)),
    ((1, 4, 4, 3), (1, 48)),
    ((6, 4), (4, 6)),
    ((3, 5, 7), (5, 21)),
    ((), (1, 1)),
    ((1, 1), ()),
    ((2, 1, 3, 5), (6, 5)),
    ((1, 64), (1, 1, 1, 64)),
]


@variants_together
@pytest.mark.parametrize("number", range(len(RESHAPES)))
def test_reshape(number: int) -> None:
    before, after = RESHAPES[number]
    for element in (ANY_ELEMENT[number], ANY_ELEMENT[number - 3]):
        check_op(qnn.ReshapeOp, [tensor(before, element)], element, shape=after)


@variants_together
@pytest.mark.parametrize("element", ANY_ELEMENT)
@pytest.mark.parametrize(
    ("shape", "low", "high"),
    [
        ((), (), ()),
        ((5,), (2,), (3,)),
        ((2, 5, 7, 19), (0, 1, 2, 0), (0, 3, 0, 0)),
        ((2, 5, 7, 19), (1, 0, 0, 3), (0, 0, 0, 67)),
        ((2, 3), (0, 0), (0, 0)),
    ],
)
def test_pad(shape: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...], element: str) -> None:
    value = ends(element)[1] - 3 if element in INTEGERS else {"i1": 1}.get(element, -(2**24))
    check_op(qnn.PadOp, [tensor(shape, element)], element, low=low, high=high, value=value)


PADDED = [
    ((3, 19), (2, 0), (1, 0)),
    ((1, 5, 19), (0, 4, 0), (0, 1, 0)),
    ((3, 5, 19), (0, 4, 0), (0, 0, 0)),
    ((5, 3, 16), (2, 0, 0), (0, 0, 0)),
    ((2, 5, 7, 19), (0, 1, 2, 0), (0, 3, 0, 0)),
    ((1, 1, 7, 16), (0, 0, 4, 0), (0, 0, 0, 0)),
    ((2, 5, 7, 16), (1, 0, 2, 0), (0, 0, 0, 0)),
]


@variants_together
@pytest.mark.parametrize("element", ["ui8", "i8", "f32"])
@pytest.mark.parametrize(("shape", "low", "high"), PADDED)
def test_pad_of_a_result(shape: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...], element: str) -> None:
    check(padded_twice(shape, low, high, element))


def padded_twice(shape: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...], element: str) -> ir.Module:
    """A network that pads its input and an element-wise result, and computes on what was padded."""
    name = "arith.addf" if element == "f32" else "qnn.pad"

    def body(x: ir.Value) -> list[ir.Value]:
        value = 0 if element == "f32" else ends(element)[0] + 3
        sides: Attributes = {"low": low, "high": high, "value": value}
        inner = qnn.build(qnn.PadOp, x, element=element, **sides).output
        changed = changed_values(inner, name, element)
        outer = qnn.build(qnn.PadOp, changed, element=element, **sides).output
        return [changed_values(outer, name, element)]

    return graph([tensor(shape, element)], body)


def changed_values(value: ir.Value, name: str, element: str) -> ir.Value:
    if element == "f32":
        return ir.Operation.create(name, [value.type], [value, value]).result
    return qnn.build(qnn.LutOp, value, element=element, table=TABLE, **quantization(element, element)).output


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
@pytest.mark.parametrize("is_same", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis", "extents"),
    [
        ((2, 5, 7, 19), 3, (19, 3, 64)),
        ((2, 5, 7, 19), 1, (1, 4)),
        ((7,), 0, (7, 1, 70)),
        ((3, 5), 0, (2, 3)),
        ((3, 5), 1, (5,)),
    ],
)
def test_concat(shape: tuple[int, ...], axis: int, extents: tuple[int, ...], is_same: bool, element: str) -> None:
    sources = [element if is_same else EIGHT_BIT[i % 2] for i in range(len(extents))]
    shapes = [(*shape[:axis], extent, *shape[axis + 1 :]) for extent in extents]
    scales = [0.1 if is_same else 0.05 + 0.1 * i for i in range(len(extents))]
    points = [ends(element)[0] + 5 if is_same else ends(source)[i % 2] for i, source in enumerate(sources)]

    def body(*operands: ir.Value) -> ir.Value:
        output: Attributes = {
            "output_scale": 0.1,
            "output_zero_point": ends(element)[0] + 5,
            "rounding": Rounding.FIXED32_DOUBLE,
        }
        attributes: Attributes = {"axis": axis, "input_scales": scales, "input_zero_points": points, **output}
        return qnn.build(qnn.ConcatOp, *operands, element=element, **attributes).output

    check(graph([tensor(one, source) for one, source in zip(shapes, sources, strict=True)], body))


BROADCASTS = [((), (3, 19)), ((19,), (2, 3, 19)), ((3, 1), (3, 70)), ((2, 1, 7, 1), (2, 5, 7, 19)), ((4, 6), (4, 6))]


@variants_together
@pytest.mark.parametrize("element", ANY_ELEMENT)
@pytest.mark.parametrize(("before", "after"), BROADCASTS)
def test_broadcast(before: tuple[int, ...], after: tuple[int, ...], element: str) -> None:
    check_op(qnn.BroadcastOp, [tensor(before, element)], element, shape=after)


SLICES: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
    ((), (), (), ()),
    ((9,), (2,), (5,), (1,)),
    ((9,), (1,), (3,), (3,)),
    ((2, 5, 7, 19), (0, 1, 2, 0), (2, 3, 2, 19), (1, 1, 3, 1)),
    ((2, 5, 7, 19), (1, 0, 0, 3), (1, 5, 7, 16), (1, 1, 1, 1)),
    ((2, 5, 7, 19), (1, 4, 6, 18), (1, 1, 1, 1), (1, 1, 1, 1)),
    ((3, 4, 5, 6, 70), (0, 1, 0, 2, 0), (3, 2, 3, 4, 24), (1, 2, 2, 1, 3)),
]


@variants_together
@pytest.mark.parametrize("element", ANY_ELEMENT)
@pytest.mark.parametrize(("shape", "begin", "size", "strides"), SLICES)
def test_slice(
    shape: tuple[int, ...], begin: tuple[int, ...], size: tuple[int, ...], strides: tuple[int, ...], element: str
) -> None:
    check_op(qnn.SliceOp, [tensor(shape, element)], element, begin=begin, size=size, strides=strides)


STRETCHES: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], bool]] = [
    ((1, 5, 7, 16), (0, 2, 0, 0), (1, 3, 7, 16), True),
    ((1, 5, 7, 16), (0, 2, 1, 0), (1, 1, 3, 16), True),
    ((2, 5, 7, 16), (1, 0, 0, 0), (1, 5, 7, 16), True),
    ((2, 5, 7, 16), (0, 2, 0, 0), (2, 3, 7, 16), False),
    ((1, 5, 7, 16), (0, 0, 0, 8), (1, 5, 7, 8), False),
    ((5, 7, 19), (2, 0, 0), (2, 7, 19), True),
]


@variants_together
@pytest.mark.parametrize(("shape", "begin", "size", "is_stretch"), STRETCHES)
def test_a_slice_of_one_stretch_moves_nothing(
    shape: tuple[int, ...], begin: tuple[int, ...], size: tuple[int, ...], is_stretch: bool
) -> None:
    lut: Attributes = {"table": TABLE, **quantization("i8", "i8")}

    def body(x: ir.Value) -> list[ir.Value]:
        first = qnn.build(qnn.LutOp, x, element="i8", **lut).output
        part = qnn.build(qnn.SliceOp, first, element="i8", begin=begin, size=size, strides=(1,) * len(size)).output
        flat = qnn.build(qnn.ReshapeOp, part, element="i8", shape=(size[-1], prod(size[:-1]))).output
        return [
            qnn.build(qnn.LutOp, flat, element="i8", **lut).output,
            qnn.build(qnn.LutOp, part, element="i8", **lut).output,
        ]

    module = graph([tensor(shape, "i8")], body)
    labels = lower(module, targets.GENERIC, Phase.LINALG).labels
    assert ("qnn.slice" in labels) == (not is_stretch)
    check(module)


GATHERS: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = [
    ((9,), 0, (3,)),
    ((9,), 0, (8, 0, 8, 3, 1, 2, 2, 7, 4, 4)),
    ((2, 5, 7, 19), 1, (4, 3, 2, 1, 0)),
    ((2, 5, 7, 19), 2, (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6)),
    ((2, 5, 7, 70), 0, (1, 0, 1)),
    ((2, 5, 7, 19), 3, (18, 1, 7, 7, 0, 2, 1, 5)),
    ((2, 5, 19), 2, (0, 2, 4, 6, 18)),
    ((6, 2, 3, 2, 19), 0, (5, 1, 4, 4, 0, 3, 2, 1)),
    # Rows and columns mirrored at both ends.
    ((2, 5, 19), 2, (4, 3, 2, 1, *range(19), 17, 16, 15)),
    ((2, 11, 7), 1, (4, 3, 2, 1, *range(11), 9, 8, 7)),
    # Rows whose elements lie near each other: one register has them, or two, or too few are there for one.
    ((3, 70), 1, tuple(i // 2 for i in range(140))),
    ((2, 3, 7), 2, tuple(i // 3 for i in range(21))),
    ((2, 20), 1, tuple(reversed(range(20)))),
    ((2, 150), 1, tuple(i * 2 % 149 for i in range(149))),
    ((2, 333), 1, tuple(i * 3 // 2 for i in range(222))),
    ((2, 333), 1, tuple(min(i + i % 7, 332) for i in range(333))),
    ((2, 333), 1, tuple(i * 7 for i in range(40, 0, -1))),
]


@variants_together
@pytest.mark.parametrize("element", ANY_ELEMENT)
@pytest.mark.parametrize(("shape", "axis", "indices"), GATHERS)
def test_gather(shape: tuple[int, ...], axis: int, indices: tuple[int, ...], element: str) -> None:
    check_op(qnn.GatherOp, [tensor(shape, element)], element, axis=axis, indices=indices)


@variants_together
@pytest.mark.parametrize("element", ANY_ELEMENT)
@pytest.mark.parametrize("is_returned", [False, True])
def test_gathers_of_gathers(element: str, is_returned: bool) -> None:
    """Mirrored, repeated and reversed; a gather that another op reads too is copied."""
    steps = [(1, (2, 1, *range(5), 3, 2)), (2, (0, *range(7), 6)), (1, (8, 0, 3, 3)), (3, (*range(19), 17, 16, 3))]

    def body(x: ir.Value) -> list[ir.Value]:
        found = [x]
        for axis, indices in steps:
            found.append(qnn.build(qnn.GatherOp, found[-1], element=element, axis=axis, indices=indices).output)
        return [found[-1], *(found[2:3] if is_returned else [])]

    check(graph([tensor((2, 5, 7, 19), element)], body))


# Windows along a dimension: padded, far apart, repeated. Sums copy them where elements count twice or backwards, and
# all do where they are not equally far apart, or read by another op too.
WINDOWS = [
    (((0, 0, 1), (1, 2, 3), (3, 4, 5), (5, 6, 5)), False, {qnn.F32SumOp}),
    (((0, 1, 2), (0, 1, 2), (0, 2, 4), (1, 3, 5), (4, 5, 6)), False, set[object]()),
    (((2, 1, 0), (4, 6, 4), (6, 6, 6)), False, {qnn.F32SumOp}),
    (((0, 1, 3), (1, 2, 4)), False, {qnn.F32MaxOp, qnn.F32MinOp, qnn.F32SumOp}),
    (((0, 0, 1), (1, 2, 3)), True, {qnn.F32MaxOp, qnn.F32MinOp, qnn.F32SumOp}),
]


@variants_together
@pytest.mark.parametrize("op", [qnn.F32MaxOp, qnn.F32MinOp, qnn.F32SumOp])
@pytest.mark.parametrize(("windows", "is_returned", "copying"), WINDOWS)
def test_windows_are_read_where_they_are(
    op: type[qnn.F32ReduceOp], windows: tuple[tuple[int, ...], ...], is_returned: bool, copying: set[object]
) -> None:
    shape, axis = (2, 7, 7, 19), 2 if op is qnn.F32MinOp else 1

    def body(x: ir.Value) -> list[ir.Value]:
        gathered = qnn.build(qnn.GatherOp, x, element="f32", axis=axis, indices=sum(windows, ())).output
        own = (*shape[:axis], len(windows), len(windows[0]), *shape[axis + 1 :])
        split = qnn.build(qnn.ReshapeOp, gathered, element="f32", shape=own).output
        return [qnn.build(op, split, element="f32", axes=(axis + 1,)).output, *([split] if is_returned else [])]

    module = graph([tensor(shape, "f32")], body)
    assert ("qnn.gather" in lower(module, targets.GENERIC, Phase.LINALG).labels) == (op in copying)
    check(module)
