"""Shape arithmetic is done when a model is read."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray
from tflite_graphs import HALF, i32, options

from qdialect.frontends.tflite import folding, import_tflite
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter
from qdialect.frontends.tflite.folding import fold_constants
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions


def relu(builder: Builder) -> int:
    builder.StartObject(1)
    builder.PrependInt8Slot(0, 1, 0)
    return builder.EndObject()


def reshaped(by: int = 7) -> bytes:
    """The rows of the shape that a graph computes from another tensor's: [extent 0, `by`, 2]."""
    writer = ModelWriter("shapes")
    x = writer.tensor("x", (3, 14), np.int8, HALF)
    shape, row = writer.tensor("shape", (2,), np.int32), writer.tensor("row", (), np.int32)
    packed, y = writer.tensor("packed", (3,), np.int32), writer.tensor("y", (3, by, 2), np.int8, HALF)
    begin, end = writer.constant("begin", i32([0])), writer.constant("end", i32([1]))
    writer.operator(KIND.SHAPE, [x], shape, OPTIONS.ShapeOptions, options(2))
    writer.operator(
        KIND.STRIDED_SLICE, [shape, begin, end, end], row, OPTIONS.StridedSliceOptions, options(0, 0, 0, 0, 1)
    )
    parts = [row, writer.constant("by", i32(by)), writer.constant("two", i32(2))]
    writer.operator(KIND.PACK, parts, packed, OPTIONS.PackOptions, options(3, 0))
    writer.operator(KIND.RESHAPE, [x, packed], y)
    return writer.finish([x], [y])


def operations(module: ir.Module) -> list[str]:
    return [op.operation.name for op in module.body.operations[0].regions[0].blocks[0].operations]


def test_a_computed_shape_leaves_nothing_behind() -> None:
    module = import_tflite(reshaped())
    assert operations(module) == ["qnn.reshape", "func.return"]
    values = np.arange(42, dtype=np.int8).reshape(3, 14)
    assert np.array_equal(interpreter.run(module, [values])[0], values.reshape(3, 7, 2))


def test_a_computed_shape_that_does_not_fit_is_told() -> None:
    with pytest.raises(ImportModelError) as caught:
        import_tflite(reshaped(5))
    assert "node 3 RESHAPE ('y'): output must have 42 elements, but got 30" in caught.value.render()


def arithmetic(kind: int, inputs: Sequence[NDArray[Any]], shape: Sequence[int], *option: Any) -> bytes:
    writer = ModelWriter("arithmetic")
    constants = [writer.constant(f"c{i}", array) for i, array in enumerate(inputs)]
    out = writer.tensor("out", shape, np.int32)
    x, y = (writer.tensor(name, (4,), np.int8, HALF) for name in "xy")
    writer.operator(kind, constants, out, *option)
    writer.operator(KIND.RESHAPE, [x], y)
    return writer.finish([x], [y])


A, C = i32([[7, -7], [3, 2]]), i32([2, -3])
FOLDED: dict[str, tuple[int, Sequence[NDArray[Any]], Any, tuple[Any, ...]]] = {
    "add": (KIND.ADD, (A, C), A + C, (OPTIONS.AddOptions, options(0))),
    "sub": (KIND.SUB, (A, C), A - C, (OPTIONS.SubOptions, options(0))),
    "mul": (KIND.MUL, (A, C), A * C, (OPTIONS.MulOptions, options(0))),
    "div": (KIND.DIV, (A, C), [[3, 2], [1, 0]], (OPTIONS.DivOptions, options(0))),
    "floor_div": (KIND.FLOOR_DIV, (A, C), A // C, ()),
    "floor_mod": (KIND.FLOOR_MOD, (A, C), np.mod(A, C), ()),
    "abs": (KIND.ABS, (A,), np.abs(A), ()),
    "neg": (KIND.NEG, (A,), -A, ()),
    "sign": (KIND.SIGN, (A,), np.sign(A), ()),
    "slice": (KIND.SLICE, (A, i32([0, 1]), i32([-1, 1])), A[:, 1:], ()),
    "select": (KIND.SELECT, (A > 0, A, -A), np.abs(A), ()),
    "select_v2": (KIND.SELECT_V2, (A > 0, A, C), np.where(A > 0, A, C), ()),
    "sum": (KIND.SUM, (A, i32([1])), A.sum(1), (OPTIONS.ReducerOptions, options(0))),
    "reduce_max": (KIND.REDUCE_MAX, (A, i32([0])), A.max(0), (OPTIONS.ReducerOptions, options(0))),
    "reduce_min": (KIND.REDUCE_MIN, (A, i32([0, 1])), A.min(), (OPTIONS.ReducerOptions, options(0))),
    "maximum": (KIND.MAXIMUM, (A, C), np.maximum(A, C), ()),
    "minimum": (KIND.MINIMUM, (A, C), np.minimum(A, C), ()),
    "cast": (KIND.CAST, (A.astype(np.int64),), A, ()),
    "concatenation": (
        KIND.CONCATENATION,
        (A, A),
        np.concatenate([A, A], 1),
        (OPTIONS.ConcatenationOptions, options(1)),
    ),
    "gather": (KIND.GATHER, (A, i32([1, 0, 1])), A[:, [1, 0, 1]], (OPTIONS.GatherOptions, options(1))),
    "reduce_prod": (KIND.REDUCE_PROD, (A, i32([0])), A.prod(0), (OPTIONS.ReducerOptions, options(0))),
    "squeeze": (KIND.SQUEEZE, (A[None],), A, ()),
    "expand_dims": (KIND.EXPAND_DIMS, (C, i32(0)), C[None], ()),
    "strided_slice": (
        KIND.STRIDED_SLICE,
        (A, i32([1, 1]), i32([0, 5]), i32([-1, 1])),
        A[::-1, 1:],
        (OPTIONS.StridedSliceOptions, options(0, 1)),
    ),
}


@pytest.mark.parametrize("case", FOLDED)
def test_arithmetic_on_known_integers(case: str) -> None:
    kind, inputs, wanted, option = FOLDED[case]
    graph = fold_constants(read_graph(arithmetic(kind, inputs, np.shape(wanted), *option)))
    assert [operator.kind for operator in graph.operators] == ["RESHAPE"]
    found = graph.tensors[len(inputs)].data
    assert found is not None
    assert found.dtype == np.int32
    assert np.array_equal(found, wanted)


LEFT: dict[str, bytes] = {
    "division by zero": arithmetic(KIND.DIV, (A, i32([1, 0])), A.shape, OPTIONS.DivOptions, options(0)),
    "floor division by zero": arithmetic(KIND.FLOOR_DIV, (A, i32([1, 0])), A.shape),
    "a remainder by zero": arithmetic(KIND.FLOOR_MOD, (A, i32([1, 0])), A.shape),
    "a slice that ends outside": arithmetic(KIND.SLICE, (A, i32([0, 1]), i32([2, 2])), A.shape),
    "another shape": arithmetic(KIND.FLOOR_DIV, (A, C), (4,)),
    "shapes that do not broadcast": arithmetic(KIND.MAXIMUM, (A, i32([1, 2, 3])), A.shape),
    "an operand too few": arithmetic(KIND.MAXIMUM, (A,), A.shape),
    "an index outside": arithmetic(KIND.GATHER, (C, i32([2])), (1,), OPTIONS.GatherOptions, options(0)),
    "a negative index": arithmetic(KIND.GATHER, (C, i32([-1])), (1,), OPTIONS.GatherOptions, options(0)),
    "floats": arithmetic(KIND.FLOOR_DIV, (np.ones(3, np.float32),) * 2, (3,)),
    "many entries": arithmetic(KIND.FLOOR_DIV, (np.ones(1025, np.int64),) * 2, (1025,)),
    "a clamp": arithmetic(KIND.ADD, (A, C), A.shape, OPTIONS.AddOptions, relu),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_does_not_fit_stays_a_node(case: str) -> None:
    assert len(fold_constants(read_graph(LEFT[case])).operators) == 2
    with pytest.raises(ImportModelError):
        import_tflite(LEFT[case])


def with_open_extents() -> bytes:
    """Rows of `x` behind a run-time SLICE whose size is only known when shapes are; the file has 1 for each extent."""
    writer = ModelWriter("open extents")
    x = writer.tensor("x", (5, 6), np.float32)
    shape, size = writer.tensor("shape", (2,), np.int32), writer.tensor("size", (2,), np.int32)
    rows = writer.tensor("rows", (1, 1), np.float32, signature=(-1, -1))
    square = writer.tensor("square", (1, 1), np.float32, signature=(-1, 6))
    y = writer.tensor("y", (1, 1), np.float32, signature=(-1, -1))
    writer.operator(KIND.SHAPE, [x], shape, OPTIONS.ShapeOptions, options(2))
    writer.operator(KIND.SUB, [shape, writer.constant("two", i32([2, 0]))], size, OPTIONS.SubOptions, options(0))
    writer.operator(KIND.SLICE, [x, writer.constant("begin", i32([1, 0])), size], rows)
    writer.operator(KIND.SQUARE, [rows], square)
    writer.operator(KIND.CONCATENATION, [square, rows], y, OPTIONS.ConcatenationOptions, options(1))
    return writer.finish([x], [y])


def test_extents_that_the_file_leaves_open_are_those_of_the_operators() -> None:
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    (found,) = interpreter.run(import_tflite(with_open_extents()), [x])
    np.testing.assert_array_equal(found, np.concatenate([np.square(x[1:4]), x[1:4]], axis=1))


def test_an_extent_below_zero_is_told() -> None:
    """Windows that do not fit into an image whose extents the file leaves open."""
    writer = ModelWriter("windows")
    x = writer.tensor("x", (1, 1, 1, 2), np.float32)
    weight = writer.constant("weight", np.ones((2, 3, 3, 2), np.float32))
    y = writer.tensor("y", (1, 1, 1, 2), np.float32, signature=(1, -1, -1, 2))
    z = writer.tensor("z", (1, 1, 1, 2), np.float32, signature=(1, -1, -1, 2))
    bias = writer.constant("bias", np.zeros(2, np.float32))
    writer.operator(KIND.CONV_2D, [x, weight, bias], y, OPTIONS.Conv2DOptions, options(1, 1, 1))
    writer.operator(KIND.SQUARE, [y], z)
    with pytest.raises(ImportModelError):
        import_tflite(writer.finish([x], [z]))


def test_shapes_of_many_nodes_are_found_in_one_context(monkeypatch: pytest.MonkeyPatch) -> None:
    count: list[None] = []
    monkeypatch.setattr(folding, "make_context", lambda: count.append(None) or make_context())
    writer = ModelWriter("a chain")
    tensors = [writer.tensor("x0", (1, 8, 8, 2), np.float32)]
    for index in range(40):
        tensors.append(writer.tensor(f"x{index + 1}", (), np.float32))
        writer.operator(KIND.RELU, [tensors[-2]], tensors[-1])
    fold_constants(read_graph(writer.finish(tensors[:1], tensors[-1:])))
    assert len(count) == 1
