"""Nodes of .tflite models that move or pick elements: what they give, and which are refused."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import variants_together
from tflite_graphs import HALF, Array, Given, Result, check_operator, i32, node_of, one_operator, options, options_of

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from qdialect.support.diagnostics import ImportModelError

Shape = tuple[int, ...]
X, LONG = None, 2**31 - 1
# A message, an operator and the shape of its data; its inputs, where X is the data and others are constants; the number
# of its outputs and the fields of its options.
REFUSED: list[tuple[Any, ...]] = [
    ("must have 3 outputs, but got 2", "Split", (6,), [0, X], 2, 3),
    ("extent must be a multiple of 2, but got 5", "Split", (5,), [0, X], 2, 2),
    ("axis must be in [-1, 1), but got 1", "Split", (6,), [1, X], 2, 2),
    ("axis must have 1 entry, but got 2", "Split", (6,), [[0, 0], X], 2, 2),
    ("axis must be i32 or i64, but got i8", "Split", (6,), [X, X], 2, 2),
    ("must have 2 outputs, but got 1", "SplitV", (6,), [X, [2, 4], 0], 1),
    ("sizes must be at least 1 and add up to 6, but got [2, 3]", "SplitV", (6,), [X, [2, 3], 0], 2),
    ("sizes must be at least 1 and add up to 6, but got [6, 0]", "SplitV", (6,), [X, [6, -1], 0], 2),
    ("begin and size must have 2 entries", "Slice", (3, 4), [X, [0], [1]], 1),
    ("slice must lie in 4 elements and not be empty, but takes 2 from 3 on", "Slice", (3, 4), [X, [0, 3], [3, 2]], 1),
    ("stride must not be 0", "StridedSlice", (4,), [X, [0], [2], [0]], 1),
    ("result must not be empty, but takes [2, 2) of 4", "StridedSlice", (4,), [X, [2], [2], [1]], 1),
    ("begin must be in [-4, 4), but got 4", "StridedSlice", (4,), [X, [4], [5], [1]], 1, 0, 0, 0, 0, 1),
    ("ellipsis must stand at most once, but got 2", "StridedSlice", (4,), [X, [0, 0], [0, 0], [1, 1]], 1, 0, 0, 3),
    ("entries must index at most 1 dimensions, but got 2", "StridedSlice", (4,), [X, [0, 0], [1, 1], [1, 1]], 1),
    ("begin, end and strides must have as many entries, but got", "StridedSlice", (4,), [X, [0], [1, 1], [1]], 1),
    ("extent along axis must be 2, but got 3", "Unpack", (3, 4), [X], 2, 2),
    ("must have 3 outputs, but got 2", "Unpack", (3, 4), [X], 2, 3),
    ("must have 3 inputs, but got 2", "Pack", (4,), [X, X], 1, 3),
    ("inputs and output must have one type, but got i32 and i8", "Pack", (4,), [X, [1]], 1, 2),
    ("input and indices must share 1 leading dimensions before the axis", "Gather", (6,), [X, [1]], 1, 0, 1),
    ("axis must be in [-1, 1), but got 1", "Gather", (6,), [X, [1]], 1, 1),
    ("indices must be i32 or i64, but got i8", "Gather", (6,), [X, X], 1, 0),
    ("indices must be in [0, 6), at least one, but got [0, 6]", "Gather", (6,), [X, [0, 6]], 1, 0),
    ("mode must be 0 or 1, but got 2", "MirrorPad", (6,), [X, [[1, 1]]], 1, 2),
    ("paddings must be at most 5 in mode reflect, but got 6", "MirrorPad", (6,), [X, [[6, 0]]], 1, 0),
    ("paddings must be at most 6 in mode symmetric, but got 7", "MirrorPad", (6,), [X, [[0, 7]]], 1, 1),
    ("paddings must be at least 0, but got -1", "MirrorPad", (6,), [X, [[-1, 1]]], 1, 1),
    ("paddings must have 2 entries, but got 4", "MirrorPad", (6,), [X, [[1, 1], [1, 1]]], 1, 1),
    ("multiples must be 1 integers of at least 1, but got [0]", "Tile", (6,), [X, [0]], 1),
    ("at most 1048576 elements of a dimension can be placed, but got 2147483647", "ReverseV2", (LONG,), [X, [0]], 1),
    ("at most 1048576 elements of a dimension", "StridedSlice", (LONG,), [X, [-1], [0], [-1]], 1, 0, 1),
    ("axis must be in [-1, 1), but got 3", "ReverseV2", (6,), [X, [3]], 1),
    ("input must have 4 dimensions, but got 1", "DepthToSpace", (6,), [X], 1, 2),
    ("channels must be a multiple of the square of block size 2, but got 6", "DepthToSpace", (1, 2, 2, 6), [X], 1, 2),
    ("height and width must be multiples of block size 0, but got 2", "SpaceToDepth", (1, 2, 3, 6), [X], 1, 0),
    ("padded extents must be multiples of [4], but got [7]", "SpaceToBatchNd", (1, 6, 3), [X, [4], [[0, 1]]], 1),
    ("paddings must have 2 entries, but got 4", "SpaceToBatchNd", (1, 6, 3), [X, [4], [[0, 1], [0, 1]]], 1),
    ("paddings and crops must be at least 0, but got -2", "SpaceToBatchNd", (1, 6, 3), [X, [4], [[0, -2]]], 1),
    ("block shape must be 1 to 2 integers of at least 1, but", "SpaceToBatchNd", (1, 6, 3), [X, [0], [[0, 1]]], 1),
    ("batch must be a multiple of 2, but got 3", "BatchToSpaceNd", (3, 2, 3), [X, [2], [[0, 0]]], 1),
    ("crops must leave something of [4], but leave [0]", "BatchToSpaceNd", (4, 2, 3), [X, [2], [[2, 2]]], 1),
    # Two fields that are no longer used come first.
    ("corners and centers must not both be aligned", "ResizeBilinear", (1, 4, 4, 2), [X, [4, 4]], 1, 0, 0, 1, 1),
    ("corners and centers must not both be aligned", "ResizeNearestNeighbor", (1, 4, 4, 2), [X, [4, 4]], 1, 1, 1),
    *(
        (message, kind, shape, [X, size], 1)
        for kind in ("ResizeBilinear", "ResizeNearestNeighbor")
        for message, shape, size in (
            ("input must have 4 dimensions, but got 3", (4, 4, 2), [4, 4]),
            ("size must be 2 integers of at least 1, but got [4]", (1, 4, 4, 2), [4]),
            ("size must be 2 integers of at least 1, but got [0, 4]", (1, 4, 4, 2), [0, 4]),
            ("size must be i32 or i64, but got i8", (1, 4, 4, 2), X),
        )
    ),
]


def message_of(name: str, inputs: list[Given], outputs: list[Result], *fields: int) -> str:
    kind, option = node_of(name)
    with pytest.raises(ImportModelError) as caught:
        import_tflite(one_operator(kind, inputs, outputs, (option, options(*fields)) if option else None))
    return caught.value.diagnostics[0].notes[0].message.partition(": ")[2]


@pytest.mark.parametrize(("message", "name", "shape", "entries", "count", "fields"), [(*r[:5], r[5:]) for r in REFUSED])
def test_refusals(
    message: str, name: str, shape: Shape, entries: list[Any], count: int, fields: tuple[int, ...]
) -> None:
    data = np.broadcast_to(np.int8(0), shape)
    inputs = [Given(data, False, HALF) if one is X else Given(i32(one), is_constant=True) for one in entries]
    assert message_of(name, inputs, [Result(shape, np.int8, HALF)] * count, *fields).startswith(message)


# Elements at run-time indices, and joined ones.

QUARTER = Quantization((0.25,), (3,))


def check(name: str, inputs: list[Given], shape: Shape, *fields: int, output: Quantization | None = QUARTER) -> None:
    kind, _ = node_of(name)
    dtype = inputs[0].data.dtype
    by = output if dtype.itemsize == 1 else None
    check_operator(kind, inputs, [Result(shape, dtype.type, by)], options_of(name, *fields))


def drawn(dtype: Any, *shape: int, seed: int = 1) -> Given:
    """Bytes are quantized."""
    values = np.random.default_rng(seed).integers(-99, 100, shape)
    data = (values / 7 if dtype is np.float32 else values).astype(dtype)
    return Given(data, False, QUARTER if data.dtype.itemsize == 1 else None)


def positions(extent: int, *shape: int) -> Array:
    return np.random.default_rng(2).integers(0, extent, shape).astype(np.int32)


def test_a_reversal_copies_elements_whatever_they_stand_for() -> None:
    axis = Given(i32([1]), is_constant=True)
    check("ReverseV2", [drawn(np.int8, 2, 5), axis], (2, 5), output=Quantization((0.5,), (-7,)))


@variants_together
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int32])
def test_gather(dtype: Any) -> None:
    for axis, shape in ((0, (2, 3, 4, 5)), (1, (6, 2, 3, 5)), (2, (6, 4, 2, 3))):
        check("Gather", [drawn(dtype, 6, 4, 5), Given(positions((6, 4, 5)[axis], 2, 3))], shape, axis)
    for axis, shape in ((1, (3, 2, 5)), (2, (3, 4, 2))):
        check("Gather", [drawn(dtype, 3, 4, 5), Given(positions((4, 5)[axis - 1], 3, 2))], shape, axis, 1)
    for depth, after in ((1, (4, 5)), (2, (5,)), (3, ())) if dtype is not np.int32 else ():
        at = np.stack([positions((6, 4, 5)[axis], 7, 2) for axis in range(depth)], axis=-1)
        check("GatherNd", [drawn(dtype, 6, 4, 5), Given(at)], (7, 2, *after))


@variants_together
@pytest.mark.parametrize(("time", "batch"), [(1, 0), (0, 1), (2, 0), (1, 2)])
def test_reverse_sequence(time: int, batch: int) -> None:
    lengths = Given(positions((3, 4, 5)[time], (3, 4, 5)[batch]) + 1)
    check("ReverseSequence", [drawn(np.float32, 3, 4, 5), lengths], (3, 4, 5), time, batch)


@variants_together
@pytest.mark.parametrize("start", [0, 2, 9, -4])
@pytest.mark.parametrize(("axis", "update"), [(0, (2, 4)), (1, (6, 3)), (0, (6, 4))])
def test_dynamic_update_slice(start: int, axis: int, update: Shape) -> None:
    first = np.zeros(2, np.int32)
    first[axis] = start
    check("DynamicUpdateSlice", [drawn(np.float32, 6, 4), drawn(np.float32, *update), Given(first)], (6, 4))


def test_indices_that_are_refused() -> None:
    data, result = drawn(np.float32, 6, 4), [Result((6, 4), np.float32)]
    message = message_of("GatherNd", [data, Given(positions(6, 2, 3))], result)
    assert message == "indices must name 1 to 2 dimensions, but got 3"
    message = message_of("DynamicUpdateSlice", [data, drawn(np.float32, 3, 2), Given(positions(2, 2))], result)
    assert message == "update must be smaller in one dimension, but is in 2"


def test_an_ellipsis_for_no_dimension_is_refused() -> None:
    """LiteRT takes one for it at least."""
    bounds = [Given(i32(one), is_constant=True) for one in ([0, 0], [0, 6], [1, 1])]
    message = message_of("StridedSlice", [drawn(np.int8, 6), *bounds], [Result((6,), np.int8, QUARTER)], 0, 0, 1)
    assert message == "ellipsis must stand for a dimension, as LiteRT takes one for it"


@variants_together
@pytest.mark.parametrize("count", [1, 17, 33])
@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_joined(count: int, dtype: Any) -> None:
    inputs = [drawn(dtype, 3, 5, seed=seed) for seed in range(count)]
    check("Pack", inputs, (3, count, 5), count, 1)
    check("Concatenation", inputs, (3, 5 * count), 1)


def test_joined_with_parameters_of_their_own() -> None:
    inputs = [drawn(np.uint8, 2, 3, seed=seed) for seed in range(20)]
    rescaled = [Given(one.data, False, Quantization((0.125,), (7,)) if i % 2 else HALF) for i, one in enumerate(inputs)]
    check("Concatenation", rescaled, (40, 3), 0, output=HALF)
