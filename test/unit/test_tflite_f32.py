"""Operators between float32 tensors, against what TFLite's reference kernels gave (recorded)."""

from typing import Any

import numpy as np
import pytest
import recordings
import tflite
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


def test_an_operand_may_be_a_constant_that_broadcasts() -> None:
    x, y = (np.random.default_rng(i).normal(size=shape).astype(np.float32) for i, shape in enumerate([(3, 1), (19,)]))
    np.testing.assert_array_equal(result_of(OPERATOR.MINIMUM, x, y, constants=1, shape=(3, 19)), np.minimum(x, y))


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    x, y = np.zeros((3, 2), np.float32), np.zeros((3, 19), np.float32)
    with pytest.raises(ImportModelError) as caught:
        result_of(OPERATOR.MAXIMUM, x, y)
    assert "inputs must broadcast to [3, 2], but got [[3, 2], [3, 19]]" in caught.value.render()
