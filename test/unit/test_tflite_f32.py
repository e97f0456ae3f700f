"""Operators between float32 tensors, against what TFLite's reference kernels gave (recorded)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import recordings
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
OPERATOR = tflite.BuiltinOperator
CASES = recordings.read_family("f32_tflite")
# Units of the last place of the larger term: a C library's functions are not always rounded correctly.
DISTANCES = {"network": 0, "softmax": 0, "arithmetic": 0, "functions": 32}


@pytest.mark.parametrize("name", DISTANCES)
def test_recorded_results(name: str) -> None:
    recorded = CASES[name]
    module = import_tflite(recorded.model)
    (data,), (wanted,) = recorded.inputs, recorded.outputs
    (found,) = interpreter.run(module, [data])
    distance = np.abs(found.view(np.int32).astype(np.int64) - wanted.view(np.int32))
    assert distance.max() <= DISTANCES[name]
    for target in ("host", "generic"):
        np.testing.assert_array_equal(compile_module(module, target=target)(data), found)


def result_of(code: int, *inputs: Array, constants: int = 0, shape: tuple[int, ...] | None = None) -> Array:
    """An operator without options; the last `constants` inputs are known."""
    writer, free = ModelWriter("one operator"), len(inputs) - constants
    names = [writer.tensor(f"x{i}", array.shape, np.float32) for i, array in enumerate(inputs[:free])]
    names += [writer.constant(f"c{i}", array) for i, array in enumerate(inputs[free:])]
    output = writer.tensor("y", inputs[0].shape if shape is None else shape, np.float32)
    writer.operator(code, names, output)
    module = import_tflite(writer.finish(names[:free], [output]))
    (wanted,) = interpreter.run(module, inputs[:free])
    np.testing.assert_array_equal(compile_module(module)(*inputs[:free]), wanted)
    return wanted


OfOne = Callable[[Array], Any]
FUNCTIONS: dict[int, OfOne] = {
    OPERATOR.CEIL: np.ceil,
    OPERATOR.FLOOR: np.floor,
    OPERATOR.HARD_SWISH: lambda x: x * np.minimum(np.maximum(x + np.float32(3), 0), 6) / np.float32(6),
    OPERATOR.NEG: np.negative,
    OPERATOR.RELU: lambda x: np.maximum(x, 0),
    OPERATOR.RELU6: lambda x: np.clip(x, 0, 6),
    OPERATOR.RELU_N1_TO_1: lambda x: np.clip(x, -1, 1),
    OPERATOR.ROUND: np.rint,
    OPERATOR.SQUARE: np.square,
}


@pytest.mark.parametrize("code", FUNCTIONS)
@pytest.mark.parametrize("shape", [(3, 19), ()])
def test_functions(code: int, shape: tuple[int, ...]) -> None:
    x = np.asarray(np.random.default_rng(0).normal(size=shape) * 4, dtype=np.float32)
    np.testing.assert_array_equal(result_of(code, x), FUNCTIONS[code](x))


def test_an_operand_may_be_a_constant_that_broadcasts() -> None:
    x, y = (np.random.default_rng(i).normal(size=shape).astype(np.float32) for i, shape in enumerate([(3, 1), (19,)]))
    np.testing.assert_array_equal(result_of(OPERATOR.MINIMUM, x, y, constants=1, shape=(3, 19)), np.minimum(x, y))


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    x, y = np.zeros((3, 2), np.float32), np.zeros((3, 19), np.float32)
    with pytest.raises(ImportModelError) as caught:
        result_of(OPERATOR.MAXIMUM, x, y)
    assert "inputs must broadcast to [3, 2], but got [[3, 2], [3, 19]]" in caught.value.render()


def test_parts_side_by_side() -> None:
    def options(builder: Builder) -> int:
        tflite.ConcatenationOptionsStart(builder)
        tflite.ConcatenationOptionsAddAxis(builder, -1)
        return tflite.ConcatenationOptionsEnd(builder)

    writer = ModelWriter("concatenation")
    parts = [writer.tensor(f"x{i}", (3, extent), np.float32) for i, extent in enumerate((5, 19))]
    output = writer.tensor("y", (3, 24), np.float32)
    writer.operator(OPERATOR.CONCATENATION, parts, output, tflite.BuiltinOptions.ConcatenationOptions, options)
    inputs = [np.random.default_rng(i).normal(size=(3, extent)).astype(np.float32) for i, extent in enumerate((5, 19))]
    found = compile_module(import_tflite(writer.finish(parts, [output])))(*inputs)
    np.testing.assert_array_equal(found, np.concatenate(inputs, axis=1))
