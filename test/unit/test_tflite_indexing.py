"""Elements at run-time indices, compared with LiteRT's reference kernels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tflite
from litert import reference
from numpy.typing import NDArray
from tflite_graphs import options

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions
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
    check(KIND.GATHER, [drawn(dtype, 6, 4, 5), at], shape, OPTIONS.GatherOptions, options(axis))


@pytest.mark.parametrize(("axis", "shape"), [(1, (3, 2, 5)), (2, (3, 4, 2))])
def test_gather_of_batches(axis: int, shape: tuple[int, ...]) -> None:
    at = positions((4, 5)[axis - 1], 3, 2)
    check(KIND.GATHER, [drawn(np.float32, 3, 4, 5), at], shape, OPTIONS.GatherOptions, options(axis, 1))


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
@pytest.mark.parametrize(("depth", "after"), [(1, (4, 5)), (2, (5,)), (3, ())])
def test_gather_nd(dtype: Any, depth: int, after: tuple[int, ...]) -> None:
    at = np.stack([positions((6, 4, 5)[axis], 7, 2) for axis in range(depth)], axis=-1)
    check(KIND.GATHER_ND, [drawn(dtype, 6, 4, 5), at], (7, 2, *after), OPTIONS.GatherNdOptions, options())


@pytest.mark.parametrize(("time", "batch"), [(1, 0), (0, 1), (2, 0), (1, 2)])
def test_reverse_sequence(time: int, batch: int) -> None:
    data = drawn(np.float32, 3, 4, 5)
    lengths = positions(data.shape[time], data.shape[batch]) + 1
    how = OPTIONS.ReverseSequenceOptions, options(time, batch)
    check(KIND.REVERSE_SEQUENCE, [data, lengths], data.shape, *how)


@pytest.mark.parametrize("start", [0, 2, 9, -4])
@pytest.mark.parametrize(("axis", "update"), [(0, (2, 4)), (1, (6, 3)), (0, (6, 4))])
def test_dynamic_update_slice(start: int, axis: int, update: tuple[int, ...]) -> None:
    first = np.zeros(2, np.int32)
    first[axis] = start
    inputs = [drawn(np.float32, 6, 4), drawn(np.float32, *update), first]
    check(KIND.DYNAMIC_UPDATE_SLICE, inputs, (6, 4), OPTIONS.DynamicUpdateSliceOptions, options())


REFUSED = [
    (KIND.GATHER_ND, [(6, 4), (2, 3)], "indices must name 1 to 2 dimensions, but got 3", OPTIONS.GatherNdOptions),
    (
        KIND.DYNAMIC_UPDATE_SLICE,
        [(6, 4), (3, 2)],
        "update must be smaller in one dimension, but is in 2",
        OPTIONS.DynamicUpdateSliceOptions,
    ),
]


@pytest.mark.parametrize(("kind", "shapes", "message", "option"), REFUSED)
def test_what_is_refused(kind: int, shapes: Sequence[tuple[int, ...]], message: str, option: int) -> None:
    is_update = kind == KIND.DYNAMIC_UPDATE_SLICE
    second = drawn(np.float32 if is_update else np.int32, *shapes[1])
    third = [positions(2, 2)] if is_update else []
    content = content_of(kind, [drawn(np.float32, *shapes[0]), second, *third], shapes[0], option, options())
    with pytest.raises(ImportModelError, match=message):
        import_tflite(content)
