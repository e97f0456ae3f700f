"""Forms in which one network may be written: every version of the operators, nodes in any order, shared extents."""

import random
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx_graphs import ModelBuilder, drawn

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
FIRST, LAST = 10, 24
"""The versions of the standard operators with quantization: QuantizeLinear came with the first."""


def convolution(version: int = 17, weight_scale: float = 0.01) -> bytes:
    """A convolution in QDQ form."""
    model = ModelBuilder()
    data = model.dequantize(model.quantize(model.input("x", (1, 3, 6, 6)), (0.02, 3)), (0.02, 3))
    sums = model.node("Conv", data, model.weight(drawn((4, 3, 3, 3), np.int8), weight_scale))
    return model.finish(model.quantize(model.node("Relu", sums), (0.1, 9)), version=version)


def result_of(content: bytes) -> Array:
    x = np.random.default_rng(0).normal(size=(1, 3, 6, 6)).astype(np.float32)
    return interpreter.run(import_onnx(content), [x])[0]


@pytest.mark.parametrize("version", range(FIRST, LAST + 1))
def test_every_version_of_the_operators(version: int) -> None:
    np.testing.assert_array_equal(result_of(convolution(version)), result_of(convolution()))


@pytest.mark.parametrize("seed", range(4))
def test_nodes_in_any_order(seed: int) -> None:
    model = onnx.load_from_string(convolution())
    nodes: list[onnx.NodeProto] = list(model.graph.node)
    order = list(range(len(nodes)))
    random.Random(seed).shuffle(order)
    assert order != sorted(order)
    del model.graph.node[:]
    model.graph.node.extend(nodes[index] for index in order)
    np.testing.assert_array_equal(result_of(model.SerializeToString()), result_of(convolution()))


def test_inputs_share_an_extent_that_is_open() -> None:
    model = ModelBuilder()
    lhs, rhs = (model.input(name, ("length", 3)) for name in "ab")
    content = model.finish(model.node("Add", lhs, rhs), dtype=np.float32)
    arrays = [np.full((5, 3), number, np.float32) for number in (1, 2)]
    (found,) = interpreter.run(import_onnx(content, dims={"length": 5}), arrays)
    np.testing.assert_array_equal(found, arrays[0] + arrays[1])


@pytest.mark.parametrize("scale", [1e-19, 1e-30, 1e-38])
def test_scales_of_channels_below_2_to_the_minus_60(scale: float) -> None:
    """With an i32 bias at the product of both scales, as quantizers write them for channels without weights."""
    model = ModelBuilder()
    data = model.dequantize(model.quantize(model.input("x", (1, 3, 6, 6)), (0.02, 3)), (0.02, 3))
    scales = np.array([0.01, scale, 0.02, scale], np.float32)
    weight = model.weight(drawn((4, 3, 3, 3), np.int8), scales.tolist())
    names = [
        model.constant(one) for one in (np.arange(4, dtype=np.int32), np.float32(0.02) * scales, np.zeros(4, np.int32))
    ]
    sums = model.node("Conv", data, weight, model.node("DequantizeLinear", *names, axis=0))
    found = result_of(model.finish(model.quantize(sums, (0.1, 9))))
    assert (found[:, [1, 3]] == 9).all()
    assert len(np.unique(found[:, [0, 2]])) > 2


def test_a_cycle_is_damage() -> None:
    model = ModelBuilder()
    model.node("Max", model.input("x", (1,), np.uint8), "z", output="y")
    model.node("Relu", "y", output="z")
    with pytest.raises(ImportModelError, match="reads 'z', which nothing before it gives"):
        import_onnx(model.finish("y"))
