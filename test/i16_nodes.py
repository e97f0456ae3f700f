"""One operator of 16-bit activations as a model, compared with LiteRT's reference kernels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tflite
from compiled_ops import check_compiled
from numpy.typing import NDArray
from tflite_graphs import reference

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions
Array = NDArray[Any]
Shape = tuple[int, ...]
RELU, RELU6 = tflite.ActivationFunctionType.RELU, tflite.ActivationFunctionType.RELU6
SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
LOW, HIGH = -(2**15), 2**15 - 1


def q(*scales: float, axis: int = 0) -> Quantization:
    return Quantization(scales, (0,) * len(scales), axis)


def drawn(shape: Shape, dtype: Any = np.int16, seed: int = 0) -> Array:
    """Values of all magnitudes, the ends of the type among them."""
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    values = rng.integers(info.min, info.max, shape, endpoint=True) >> rng.integers(0, info.bits - 1, shape)
    values.flat[:: max(values.size // 3, 1)] = rng.choice([info.min, info.max])
    return values.astype(dtype)


@dataclass
class Node:
    """One operator: its inputs as arrays, some of them constant, and what its tensors are quantized by."""

    kind: int
    inputs: Sequence[Array]
    quantizations: Sequence[Quantization | None]
    output: Quantization | None
    shape: Shape
    option: Sequence[Any] = ()
    constants: Sequence[int] = ()
    dtype: Any = np.int16

    def content(self) -> bytes:
        writer, names, free = ModelWriter("one operator"), list[int](), list[int]()
        for i, (array, quantization) in enumerate(zip(self.inputs, self.quantizations, strict=True)):
            if i in self.constants:
                names.append(writer.constant(f"c{i}", array, quantization))
            else:
                names.append(writer.tensor(f"x{i}", array.shape, array.dtype.type, quantization))
                free.append(names[-1])
        result = writer.tensor("y", self.shape, self.dtype, self.output)
        writer.operator(self.kind, names, result, *self.option)
        return writer.finish(free, [result])

    @property
    def given(self) -> list[Array]:
        return [array for i, array in enumerate(self.inputs) if i not in self.constants]


def check(node: Node) -> Array:
    content, given = node.content(), node.given
    (wanted,) = reference(content, given)
    module = import_tflite(content)
    (found,) = interpreter.run(module, given)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    check_compiled(module, "host", [given], [[wanted]])
    return wanted


def message_of(node: Node) -> str:
    with pytest.raises(ImportModelError) as caught:
        import_tflite(node.content())
    return caught.value.render()


def extents(data: Shape, window: Sequence[int], padding: int, strides: Sequence[int], dilation: Any) -> list[int]:
    """Of the windows of an image."""
    whole = [(window[i] - 1) * dilation[i] + 1 for i in range(2)]
    return [
        -(-data[1 + i] // strides[i]) if padding == SAME else (data[1 + i] - whole[i]) // strides[i] + 1
        for i in range(2)
    ]
