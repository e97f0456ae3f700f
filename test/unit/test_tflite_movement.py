"""Nodes of .tflite models that move elements: those that do not fit are refused."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import Builder
from litert import reference
from tflite_graphs import HALF, i32, options

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.reference import interpreter
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
    return OPTIONS.SplitOptions, options(count)


def strided(*masks: int) -> tuple[int, Callable[[Builder], int]]:
    return OPTIONS.StridedSliceOptions, options(*masks)


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
    (
        "extent along axis must be 2, but got 3",
        KIND.UNPACK,
        (3, 4),
        [None],
        [(4,)] * 2,
        OPTIONS.UnpackOptions,
        options(2),
    ),
    ("must have 3 outputs, but got 2", KIND.UNPACK, (3, 4), [None], [(4,)] * 2, OPTIONS.UnpackOptions, options(3)),
    ("must have 3 inputs, but got 2", KIND.PACK, (4,), [None, None], [(2, 4)], OPTIONS.PackOptions, options(3)),
    (
        "inputs and output must have one type, but got i32 and i8",
        KIND.PACK,
        (4,),
        [None, [1]],
        [(2, 4)],
        OPTIONS.PackOptions,
        options(2),
    ),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_refused(case: int) -> None:
    message, *node = REFUSED[case]
    assert one_node(*node) == message


def resize(kind: int, size: Any, extents: Sequence[int], *flags: int) -> str:
    """Why a node that resizes `x` is refused."""
    table = OPTIONS.ResizeBilinearOptions if kind == KIND.RESIZE_BILINEAR else OPTIONS.ResizeNearestNeighborOptions

    def write(builder: Builder) -> int:
        # Two fields that are no longer used come first in the older operator.
        first = 2 if kind == KIND.RESIZE_BILINEAR else 0
        builder.StartObject(first + 2)
        for slot, flag in enumerate(flags):
            builder.PrependInt8Slot(first + slot, flag, 0)
        return builder.EndObject()

    return one_node(kind, extents, [None, size], [extents], table, write)


RESIZERS = (KIND.RESIZE_BILINEAR, KIND.RESIZE_NEAREST_NEIGHBOR)


@pytest.mark.parametrize("kind", RESIZERS)
def test_resizing_that_does_not_fit(kind: int) -> None:
    image = (1, 4, 4, 2)
    assert resize(kind, [4, 4], image, 1, 1) == "corners and centers must not both be aligned"
    assert resize(kind, [4, 4], (4, 4, 2)) == "input must have 4 dimensions, but got 3"
    assert resize(kind, [4], image) == "size must be 2 integers of at least 1, but got [4]"
    assert resize(kind, [0, 4], image) == "size must be 2 integers of at least 1, but got [0, 4]"
    assert resize(kind, None, image) == "size must be i32 or i64, but got i8"


def entries(slots: int, at: int, entry: int) -> Callable[[Builder], int]:
    """An options table whose field `at` is a byte."""

    def write(builder: Builder) -> int:
        builder.StartObject(slots)
        builder.PrependInt8Slot(at, entry, 0)
        return builder.EndObject()

    return write


MIRROR, GATHERED = OPTIONS.MirrorPadOptions, OPTIONS.GatherOptions
ROW = (KIND.SPACE_TO_BATCH_ND, (1, 6, 3), [None, [4], [[0, 1]]], [(4, 2, 3)])
BATCH = (KIND.BATCH_TO_SPACE_ND, (3, 2, 3), [None, [2], [[0, 0]]], [(1, 4, 3)])
NOT_MOVED: list[tuple[Any, ...]] = [
    (
        "input and indices must share 1 leading dimensions before the axis, but got [6] and [1]",
        KIND.GATHER,
        (6,),
        [None, [1]],
        [(1,)],
        GATHERED,
        options(0, 1),
    ),
    ("axis must be in [-1, 1), but got 1", KIND.GATHER, (6,), [None, [1]], [(1,)], GATHERED, options(1)),
    ("indices must be i32 or i64, but got i8", KIND.GATHER, (6,), [None, None], [(6,)], GATHERED, options(0)),
    (
        "indices must be in [0, 6), at least one, but got [0, 6]",
        KIND.GATHER,
        (6,),
        [None, [0, 6]],
        [(2,)],
        GATHERED,
        options(0),
    ),
    ("mode must be 0 or 1, but got 2", KIND.MIRROR_PAD, (6,), [None, [[1, 1]]], [(8,)], MIRROR, entries(1, 0, 2)),
    (
        "paddings must be at most 5 in mode reflect, but got 6",
        KIND.MIRROR_PAD,
        (6,),
        [None, [[6, 0]]],
        [(12,)],
        MIRROR,
        entries(1, 0, 0),
    ),
    (
        "paddings must be at most 6 in mode symmetric, but got 7",
        KIND.MIRROR_PAD,
        (6,),
        [None, [[0, 7]]],
        [(13,)],
        MIRROR,
        entries(1, 0, 1),
    ),
    (
        "paddings must be at least 0, but got -1",
        KIND.MIRROR_PAD,
        (6,),
        [None, [[-1, 1]]],
        [(6,)],
        MIRROR,
        entries(1, 0, 1),
    ),
    (
        "paddings must have 2 entries, but got 4",
        KIND.MIRROR_PAD,
        (6,),
        [None, [[1, 1], [1, 1]]],
        [(8,)],
        MIRROR,
        entries(1, 0, 1),
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
        OPTIONS.DepthToSpaceOptions,
        options(2),
    ),
    (
        "channels must be a multiple of the square of block size 2, but got 6",
        KIND.DEPTH_TO_SPACE,
        (1, 2, 2, 6),
        [None],
        [(1, 4, 4, 1)],
        OPTIONS.DepthToSpaceOptions,
        options(2),
    ),
    (
        "height and width must be multiples of block size 0, but got 2 and 3",
        KIND.SPACE_TO_DEPTH,
        (1, 2, 3, 6),
        [None],
        [(1, 1, 1, 24)],
        OPTIONS.SpaceToDepthOptions,
        options(0),
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
    how = OPTIONS.ReverseV2Options, options()
    writer.operator(KIND.REVERSE_V2, [data, writer.constant("axis", i32([1]))], result, *how)
    content, values = writer.finish([data], [result]), np.arange(10, dtype=np.int8).reshape(2, 5)
    (wanted,) = reference(content, [values])
    np.testing.assert_array_equal(interpreter.run(import_tflite(content), [values])[0], wanted)
    np.testing.assert_array_equal(wanted, values[:, ::-1])
