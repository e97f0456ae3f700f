"""Files of one operator between float32 tensors, compiled and run by LiteRT's reference kernels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from litert import reference
from numpy.typing import NDArray

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]


def both(
    kind: int,
    inputs: Sequence[Array],
    shape: Sequence[int],
    *option: Any,
    constants: int = 0,
    order: Sequence[int] | None = None,
) -> tuple[Array, Array]:
    """What is compiled gives, and what LiteRT gives; the last `constants` inputs are known.

    The operator reads the inputs in this `order`.
    """
    writer, free = ModelWriter("one operator"), len(inputs) - constants
    tensors = [writer.tensor(f"x{i}", array.shape, array.dtype.type) for i, array in enumerate(inputs[:free])]
    names = tensors + [writer.constant(f"c{i}", array) for i, array in enumerate(inputs[free:])]
    output = writer.tensor("y", shape, np.float32)
    writer.operator(kind, [names[i] for i in order or range(len(names))], output, *option)
    content = writer.finish(tensors, [output])
    (wanted,) = reference(content, inputs[:free])
    return compiled(content, inputs[:free]), wanted


def compiled(content: bytes, inputs: Sequence[Array]) -> Array:
    module = import_tflite(content)
    (wanted,) = interpreter.run(module, inputs)
    np.testing.assert_array_equal(compile_module(module)(*inputs), wanted)
    return wanted
