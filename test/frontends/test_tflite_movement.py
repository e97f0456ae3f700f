"""Nodes of .tflite models that move or pick elements: what they give, and which are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray
from tflite_graphs import HALF, i32, options, options_of, reference

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions


def one_node(
    kind: int, extents: Sequence[int], constants: Sequence[Any], outputs: Sequence[Sequence[int]], *option: Any
) -> str:
    """Why a node on `x` of shape `extents` is refused; None among `constants` is `x` itself."""
    writer = ModelWriter("node")
    x = writer.tensor("x", extents, np.int8, HALF)
    inputs = [x if entry is None else writer.constant(f"c{i}", i32(entry)) for i, entry in enumerate(constants)]
    results = [writer.tensor(f"y{i}", shape, np.int8, HALF) for i, shape in enumerate(outputs)]
    writer.operator(kind, inputs, results, *option)
    with pytest.raises(ImportModelError) as caught:
        import_tflite(writer.finish([x], results))
    return caught.value.diagnostics[0].notes[0].message.split(": ", 1)[1]


def split(count: int) -> tuple[int, Callable[[Builder], int]]:
    return options_of("Split", count)


def strided(*masks: int) -> tuple[int, Callable[[Builder], int]]:
    return options_of("StridedSlice", *masks)


REFUSED: list[tuple[Any, ...]] = [
    ("must have 3 outputs, but got 2", KIND.SPLIT, (6,), [0, None], [(3,)] * 2, *split(3)),
    ("extent must be a multiple of 2, but got 5", KIND.SPLIT, (5,), [0, None], [(3,), (2,)], *split(2)),
    ("axis must be in [-1, 1), but got 1", KIND.SPLIT, (6,), [1, None], [(3,)] * 2, *split(2)),
    ("axis must have 1 entry, but got 2", KIND.SPLIT, (6,), [[0, 0], None], [(3,)] * 2, *split(2)),
    ("axis must be i32 or i64, but got i8", KIND.SPLIT, (6,), [None, None], [(3,)] * 2, *split(2)),
    ("must have 2 outputs, but got 1", KIND.SPLIT_V, (6,), [None, [2, 4], 0], [(2,)]),
    ("sizes must be at least 1 and add up to 6, but got [2, 3]", KIND.SPLIT_V, (6,), [None, [2, 3], 0], [(2,), (3,)]),
    ("sizes must be at least 1 and add up to 6, but got [6, 0]", KIND.SPLIT_V, (6,), [None, [6, -1], 0], [(6,), (1,)]),
    ("begin and size must have 2 entries", KIND.SLICE, (3, 4), [None, [0], [1]], [(1,)]),
    (
        "slice must lie in 4 elements and not be empty, but takes 2 from 3 on",
        KIND.SLICE,
        (3, 4),
        [None, [0, 3], [3, 2]],
        [(3, 2)],
    ),
    ("stride must not be 0", KIND.STRIDED_SLICE, (4,), [None, [0], [2], [0]], [(2,)], *strided()),
    (
        "result must not be empty, but takes [2, 2) of 4",
        KIND.STRIDED_SLICE,
        (4,),
        [None, [2], [2], [1]],
        [(1,)],
        *strided(),
    ),
    (
        "begin must be in [-4, 4), but got 4",
        KIND.STRIDED_SLICE,
        (4,),
        [None, [4], [5], [1]],
        [()],
        *strided(0, 0, 0, 0, 1),
    ),
    (
        "ellipsis must stand at most once, but got 2",
        KIND.STRIDED_SLICE,
        (4,),
        [None, [0, 0], [0, 0], [1, 1]],
        [(4,)],
        *strided(0, 0, 3),
    ),
    (
        "entries must index at most 1 dimensions, but got 2",
        KIND.STRIDED_SLICE,
        (4,),
        [None, [0, 0], [1, 1], [1, 1]],
        [(1,)],
        *strided(),
    ),
    (
        "begin, end and strides must have as many entries, but got [1, 2]",
        KIND.STRIDED_SLICE,
        (4,),
        [None, [0], [1, 1], [1]],
        [(1,)],
        *strided(),
    ),
    ("extent along axis must be 2, but got 3", KIND.UNPACK, (3, 4), [None], [(4,)] * 2, *options_of("Unpack", 2)),
    ("must have 3 outputs, but got 2", KIND.UNPACK, (3, 4), [None], [(4,)] * 2, *options_of("Unpack", 3)),
    ("must have 3 inputs, but got 2", KIND.PACK, (4,), [None, None], [(2, 4)], *options_of("Pack", 3)),
    (
        "inputs and output must have one type, but got i32 and i8",
        KIND.PACK,
        (4,),
        [None, [1]],
        [(2, 4)],
        *options_of("Pack", 2),
    ),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_refused(case: int) -> None:
    message, *node = REFUSED[case]
    assert one_node(*node) == message


def resize(kind: int, size: Any, extents: Sequence[int], *flags: int) -> str:
    """Why a node that resizes `x` is refused."""
    table = OPTIONS.ResizeBilinearOptions if kind == KIND.RESIZE_BILINEAR else OPTIONS.ResizeNearestNeighborOptions
    # Two fields that are no longer used come first in the older operator.
    unused = [0, 0] if kind == KIND.RESIZE_BILINEAR else []
    return one_node(kind, extents, [None, size], [extents], table, options(*unused, *flags))


RESIZERS = (KIND.RESIZE_BILINEAR, KIND.RESIZE_NEAREST_NEIGHBOR)


@pytest.mark.parametrize("kind", RESIZERS)
def test_resizing_that_does_not_fit(kind: int) -> None:
    image = (1, 4, 4, 2)
    assert resize(kind, [4, 4], image, 1, 1) == "corners and centers must not both be aligned"
    assert resize(kind, [4, 4], (4, 4, 2)) == "input must have 4 dimensions, but got 3"
    assert resize(kind, [4], image) == "size must be 2 integers of at least 1, but got [4]"
    assert resize(kind, [0, 4], image) == "size must be 2 integers of at least 1, but got [0, 4]"
    assert resize(kind, None, image) == "size must be i32 or i64, but got i8"


ROW = (KIND.SPACE_TO_BATCH_ND, (1, 6, 3), [None, [4], [[0, 1]]], [(4, 2, 3)])
BATCH = (KIND.BATCH_TO_SPACE_ND, (3, 2, 3), [None, [2], [[0, 0]]], [(1, 4, 3)])
NOT_MOVED: list[tuple[Any, ...]] = [
    (
        "input and indices must share 1 leading dimensions before the axis, but got [6] and [1]",
        KIND.GATHER,
        (6,),
        [None, [1]],
        [(1,)],
        *options_of("Gather", 0, 1),
    ),
    ("axis must be in [-1, 1), but got 1", KIND.GATHER, (6,), [None, [1]], [(1,)], *options_of("Gather", 1)),
    ("indices must be i32 or i64, but got i8", KIND.GATHER, (6,), [None, None], [(6,)], *options_of("Gather", 0)),
    (
        "indices must be in [0, 6), at least one, but got [0, 6]",
        KIND.GATHER,
        (6,),
        [None, [0, 6]],
        [(2,)],
        *options_of("Gather", 0),
    ),
    ("mode must be 0 or 1, but got 2", KIND.MIRROR_PAD, (6,), [None, [[1, 1]]], [(8,)], *options_of("MirrorPad", 2)),
    (
        "paddings must be at most 5 in mode reflect, but got 6",
        KIND.MIRROR_PAD,
        (6,),
        [None, [[6, 0]]],
        [(12,)],
        *options_of("MirrorPad", 0),
    ),
    (
        "paddings must be at most 6 in mode symmetric, but got 7",
        KIND.MIRROR_PAD,
        (6,),
        [None, [[0, 7]]],
        [(13,)],
        *options_of("MirrorPad", 1),
    ),
    (
        "paddings must be at least 0, but got -1",
        KIND.MIRROR_PAD,
        (6,),
        [None, [[-1, 1]]],
        [(6,)],
        *options_of("MirrorPad", 1),
    ),
    (
        "paddings must have 2 entries, but got 4",
        KIND.MIRROR_PAD,
        (6,),
        [None, [[1, 1], [1, 1]]],
        [(8,)],
        *options_of("MirrorPad", 1),
    ),
    ("multiples must be 1 integers of at least 1, but got [0]", KIND.TILE, (6,), [None, [0]], [(6,)]),
    (
        "at most 1048576 elements of a dimension can be placed, but got 2147483647",
        KIND.REVERSE_V2,
        (2**31 - 1,),
        [None, [0]],
        [(2**31 - 1,)],
    ),
    (
        "at most 1048576 elements of a dimension can be placed, but got 2147483647",
        KIND.STRIDED_SLICE,
        (2**31 - 1,),
        [None, [-1], [0], [-1]],
        [(2**31 - 1,)],
        *strided(0, 1),
    ),
    ("axis must be in [-1, 1), but got 3", KIND.REVERSE_V2, (6,), [None, [3]], [(6,)]),
    (
        "input must have 4 dimensions, but got 1",
        KIND.DEPTH_TO_SPACE,
        (6,),
        [None],
        [(6,)],
        *options_of("DepthToSpace", 2),
    ),
    (
        "channels must be a multiple of the square of block size 2, but got 6",
        KIND.DEPTH_TO_SPACE,
        (1, 2, 2, 6),
        [None],
        [(1, 4, 4, 1)],
        *options_of("DepthToSpace", 2),
    ),
    (
        "height and width must be multiples of block size 0, but got 2 and 3",
        KIND.SPACE_TO_DEPTH,
        (1, 2, 3, 6),
        [None],
        [(1, 1, 1, 24)],
        *options_of("SpaceToDepth", 0),
    ),
    ("padded extents must be multiples of [4], but got [7]", *ROW),
    ("paddings must have 2 entries, but got 4", *ROW[:2], [None, [4], [[0, 1], [0, 1]]], *ROW[3:]),
    ("paddings and crops must be at least 0, but got -2", *ROW[:2], [None, [4], [[0, -2]]], *ROW[3:]),
    ("block shape must be 1 to 2 integers of at least 1, but got [0]", *ROW[:2], [None, [0], [[0, 1]]], *ROW[3:]),
    ("batch must be a multiple of 2, but got 3", *BATCH),
    ("crops must leave something of [4], but leave [0]", BATCH[0], (4, 2, 3), [None, [2], [[2, 2]]], *BATCH[3:]),
]


@pytest.mark.parametrize("case", range(len(NOT_MOVED)))
def test_what_is_not_moved(case: int) -> None:
    message, *node = NOT_MOVED[case]
    assert one_node(*node) == message


def test_a_reversal_copies_elements_whatever_they_stand_for() -> None:
    writer = ModelWriter("reversal")
    data = writer.tensor("x", (2, 5), np.int8, Quantization((0.5,), (3,)))
    result = writer.tensor("y", (2, 5), np.int8, Quantization((0.25,), (-7,)))
    how = options_of("ReverseV2")
    writer.operator(KIND.REVERSE_V2, [data, writer.constant("axis", i32([1]))], result, *how)
    content, values = writer.finish([data], [result]), np.arange(10, dtype=np.int8).reshape(2, 5)
    (wanted,) = reference(content, [values])
    np.testing.assert_array_equal(interpreter.run(import_tflite(content), [values])[0], wanted)
    np.testing.assert_array_equal(wanted, values[:, ::-1])


# Elements at run-time indices, compared with LiteRT's reference kernels.

Array = NDArray[Any]
QUARTER = Quantization((0.25,), (3,))


def content_of(kind: int, inputs: Sequence[Array], shape: Sequence[int], *option: Any) -> bytes:
    """A model of one operator of inputs that are all given at run time; bytes are quantized."""
    writer = ModelWriter("one operator")
    tensors = [
        writer.tensor(f"x{i}", array.shape, array.dtype.type, QUARTER if array.dtype == np.int8 else None)
        for i, array in enumerate(inputs)
    ]
    first = inputs[0].dtype
    output = writer.tensor("y", shape, first.type, QUARTER if first == np.int8 else None)
    writer.operator(kind, tensors, output, *option)
    return writer.finish(tensors, [output])


def check(kind: int, inputs: Sequence[Array], shape: Sequence[int], *option: Any) -> None:
    content = content_of(kind, inputs, shape, *option)
    (wanted,) = reference(content, inputs)
    module = import_tflite(content)
    np.testing.assert_array_equal(interpreter.run(module, inputs)[0], wanted)
    np.testing.assert_array_equal(compile_module(module)(*inputs), wanted)


def drawn(dtype: Any, *shape: int) -> Array:
    values = np.random.default_rng(1).integers(-99, 100, shape)
    return (values / 7 if dtype is np.float32 else values).astype(dtype)


def positions(extent: int, *shape: int, dtype: Any = np.int32) -> Array:
    return np.random.default_rng(2).integers(0, extent, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int32])
@pytest.mark.parametrize(("axis", "shape"), [(0, (2, 3, 4, 5)), (1, (6, 2, 3, 5)), (2, (6, 4, 2, 3))])
def test_gather(dtype: Any, axis: int, shape: tuple[int, ...]) -> None:
    at = positions((6, 4, 5)[axis], 2, 3)
    check(KIND.GATHER, [drawn(dtype, 6, 4, 5), at], shape, *options_of("Gather", axis))


@pytest.mark.parametrize(("axis", "shape"), [(1, (3, 2, 5)), (2, (3, 4, 2))])
def test_gather_of_batches(axis: int, shape: tuple[int, ...]) -> None:
    at = positions((4, 5)[axis - 1], 3, 2)
    check(KIND.GATHER, [drawn(np.float32, 3, 4, 5), at], shape, *options_of("Gather", axis, 1))


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
@pytest.mark.parametrize(("depth", "after"), [(1, (4, 5)), (2, (5,)), (3, ())])
def test_gather_nd(dtype: Any, depth: int, after: tuple[int, ...]) -> None:
    at = np.stack([positions((6, 4, 5)[axis], 7, 2) for axis in range(depth)], axis=-1)
    check(KIND.GATHER_ND, [drawn(dtype, 6, 4, 5), at], (7, 2, *after), *options_of("GatherNd"))


@pytest.mark.parametrize(("time", "batch"), [(1, 0), (0, 1), (2, 0), (1, 2)])
def test_reverse_sequence(time: int, batch: int) -> None:
    data = drawn(np.float32, 3, 4, 5)
    lengths = positions(data.shape[time], data.shape[batch]) + 1
    how = options_of("ReverseSequence", time, batch)
    check(KIND.REVERSE_SEQUENCE, [data, lengths], data.shape, *how)


@pytest.mark.parametrize("start", [0, 2, 9, -4])
@pytest.mark.parametrize(("axis", "update"), [(0, (2, 4)), (1, (6, 3)), (0, (6, 4))])
def test_dynamic_update_slice(start: int, axis: int, update: tuple[int, ...]) -> None:
    first = np.zeros(2, np.int32)
    first[axis] = start
    inputs = [drawn(np.float32, 6, 4), drawn(np.float32, *update), first]
    check(KIND.DYNAMIC_UPDATE_SLICE, inputs, (6, 4), *options_of("DynamicUpdateSlice"))


REFUSED_INDICES = [
    (KIND.GATHER_ND, [(6, 4), (2, 3)], "indices must name 1 to 2 dimensions, but got 3", OPTIONS.GatherNdOptions),
    (
        KIND.DYNAMIC_UPDATE_SLICE,
        [(6, 4), (3, 2)],
        "update must be smaller in one dimension, but is in 2",
        OPTIONS.DynamicUpdateSliceOptions,
    ),
]


@pytest.mark.parametrize(("kind", "shapes", "message", "option"), REFUSED_INDICES)
def test_indices_that_are_refused(kind: int, shapes: Sequence[tuple[int, ...]], message: str, option: int) -> None:
    is_update = kind == KIND.DYNAMIC_UPDATE_SLICE
    second = drawn(np.float32 if is_update else np.int32, *shapes[1])
    third = [positions(2, 2)] if is_update else []
    content = content_of(kind, [drawn(np.float32, *shapes[0]), second, *third], shapes[0], option, options())
    with pytest.raises(ImportModelError, match=message):
        import_tflite(content)


# PACK and CONCATENATION of any count of inputs and of every type that tensors have.

FIRST, OTHER = Quantization((0.5,), (3,)), Quantization((0.25,), (7,))
COUNTS = [1, 17, 33]


def check_joined(writer: ModelWriter, inputs: list[int], output: int, arrays: list[Any], wanted: Any) -> None:
    module = import_tflite(writer.finish(inputs, [output]))
    (found,) = interpreter.run(module, arrays)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(compile_module(module)(*arrays), wanted)


def arrays_of(count: int, shape: tuple[int, ...], dtype: Any) -> list[Any]:
    random = np.random.default_rng(count)
    return [random.integers(0, 100, shape).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_packed(count: int, dtype: Any) -> None:
    writer, arrays = ModelWriter("pack"), arrays_of(count, (3, 5), dtype)
    parameters = None if dtype is np.float32 else FIRST
    inputs = [writer.tensor(f"x{i}", (3, 5), dtype, parameters) for i in range(count)]
    output = writer.tensor("y", (3, count, 5), dtype, parameters)
    writer.operator(KIND.PACK, inputs, output, *options_of("Pack", count, 1))
    check_joined(writer, inputs, output, arrays, np.stack(arrays, axis=1))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_joined(count: int, dtype: Any) -> None:
    writer, arrays = ModelWriter("concatenation"), arrays_of(count, (3, 5), dtype)
    parameters = None if dtype is np.float32 else FIRST
    inputs = [writer.tensor(f"x{i}", (3, 5), dtype, parameters) for i in range(count)]
    output = writer.tensor("y", (3, 5 * count), dtype, parameters)
    writer.operator(KIND.CONCATENATION, inputs, output, *options_of("Concatenation", 1))
    check_joined(writer, inputs, output, arrays, np.concatenate(arrays, axis=1))


def test_joined_with_parameters_of_their_own() -> None:
    """Half of a quarter step is half the value: ``(x - 7) / 2 + 3``, ties away from zero."""
    writer, arrays = ModelWriter("rescaled"), arrays_of(20, (2, 3), np.uint8)
    inputs = [writer.tensor(f"x{i}", (2, 3), np.uint8, OTHER if i % 2 else FIRST) for i in range(20)]
    output = writer.tensor("y", (40, 3), np.uint8, FIRST)
    writer.operator(KIND.CONCATENATION, inputs, output, *options_of("Concatenation", 0))
    halves = [(array.astype(np.float64) - 7) / 2 for array in arrays]
    rescaled = [np.clip(np.sign(half) * np.floor(np.abs(half) + 0.5) + 3, 0, 255) for half in halves]
    wanted = np.concatenate([rescaled[i] if i % 2 else arrays[i] for i in range(20)]).astype(np.uint8)
    check_joined(writer, inputs, output, arrays, wanted)
