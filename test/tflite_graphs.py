"""Parts of small .tflite models: options tables without their schema, and integer constants."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray

from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization

HALF = Quantization((0.5,), (3,))
Entries = Sequence[int] | Sequence[Sequence[int]] | NDArray[Any]


def options(*entries: int) -> Callable[[Builder], int]:
    """An options table with these 32-bit fields, in the order of the schema."""

    def write(builder: Builder) -> int:
        builder.StartObject(len(entries))
        for slot, entry in enumerate(entries):
            builder.PrependInt32Slot(slot, entry, 0)
        return builder.EndObject()

    return write


def i32(entries: Entries | int) -> NDArray[np.int32]:
    return np.array(entries, dtype=np.int32)


def small_network() -> bytes:
    """A convolution, a sum and a softmax of int8 tensors of 1x2x2x2 elements, in less than 2 KB."""

    def conv_options(builder: Builder) -> int:
        tflite.Conv2DOptionsStart(builder)
        tflite.Conv2DOptionsAddStrideH(builder, 1)
        tflite.Conv2DOptionsAddStrideW(builder, 1)
        return tflite.Conv2DOptionsEnd(builder)

    def add_options(builder: Builder) -> int:
        tflite.AddOptionsStart(builder)
        return tflite.AddOptionsEnd(builder)

    def softmax_options(builder: Builder) -> int:
        tflite.SoftmaxOptionsStart(builder)
        tflite.SoftmaxOptionsAddBeta(builder, 1.0)
        return tflite.SoftmaxOptionsEnd(builder)

    writer, code, kind = ModelWriter("small"), tflite.BuiltinOperator, tflite.BuiltinOptions
    shape = 1, 2, 2, 2
    x, y, z = (writer.tensor(name, shape, np.int8, HALF) for name in "xyz")
    p = writer.tensor("p", shape, np.int8, Quantization((1 / 256,), (-128,)))
    weight = np.arange(4, dtype=np.int8).reshape(2, 1, 1, 2)
    w = writer.constant("w", weight, Quantization((0.5, 0.25), (0, 0)))
    b = writer.constant("b", np.array([7, -7], dtype=np.int32), Quantization((0.25, 0.125), (0, 0)))
    writer.operator(code.CONV_2D, [x, w, b], y, kind.Conv2DOptions, conv_options)
    writer.operator(code.ADD, [y, x], z, kind.AddOptions, add_options)
    writer.operator(code.SOFTMAX, [z], p, kind.SoftmaxOptions, softmax_options)
    return writer.finish([x], [p])
