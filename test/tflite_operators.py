"""Models of one .tflite operator, compared with LiteRT's reference kernels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tflite
from flatbuffers import Builder
from litert import reference
from numpy.typing import NDArray
from together import check_compiled

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.reference import interpreter

Array = NDArray[Any]
Option = tuple[int, Callable[[Builder], int]]


@dataclass(frozen=True)
class Given:
    """An input: its elements, whether the file has them, and what they stand for."""

    data: Array
    is_constant: bool = False
    quantization: Quantization | None = None


@dataclass(frozen=True)
class Result:
    """An output."""

    shape: tuple[int, ...]
    dtype: type[np.generic]
    quantization: Quantization | None = None


def one_operator(kind: int, inputs: Sequence[Given], outputs: Sequence[Result], option: Option | None = None) -> bytes:
    """The file of an operator with these tensors."""
    writer = ModelWriter("one operator")
    names = [
        writer.constant(f"c{i}", one.data, one.quantization)
        if one.is_constant
        else writer.tensor(f"x{i}", one.data.shape, one.data.dtype.type, one.quantization)
        for i, one in enumerate(inputs)
    ]
    results = [writer.tensor(f"y{i}", one.shape, one.dtype, one.quantization) for i, one in enumerate(outputs)]
    options_type, write_options = option or (tflite.BuiltinOptions.NONE, None)
    writer.operator(kind, names, results, options_type, write_options)
    free = [name for name, one in zip(names, inputs, strict=True) if not one.is_constant]
    return writer.finish(free, results)


def check_operator(
    kind: int, inputs: Sequence[Given], outputs: Sequence[Result], option: Option | None = None
) -> Sequence[Array]:
    """Interpreted and compiled, the operator gives LiteRT's elements; what they are."""
    content = one_operator(kind, inputs, outputs, option)
    arrays = [one.data for one in inputs if not one.is_constant]
    wanted = reference(content, arrays)
    module = import_tflite(content)
    for value, one in zip(interpreter.run(module, arrays), wanted, strict=True):
        np.testing.assert_array_equal(value, one)
        assert value.dtype == one.dtype
    check_compiled(module, "host", [arrays], [wanted])
    return wanted
