"""One network in every operator set from 10 to 24: inputs that were attributes, axes, defaults."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from onnx_graphs import ModelBuilder, drawn, run
from tolerances import assert_floats_within

ORT: Any = import_module("onnxruntime")
X, Y = (0.03, 120), (0.1, 0)
IMAGE = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)


def _network(version: int) -> bytes:
    model = ModelBuilder()
    data = model.dequantize(model.quantize(model.input("x", IMAGE.shape), X), X)
    product = model.node("Conv", data, model.weight(drawn((4, 3, 3, 3), np.int8), 0.01), pads=[1, 1, 1, 1])
    rows = model.dequantize(model.quantize(model.node("Relu", product), Y), Y)
    pooled = model.node("MaxPool", rows, kernel_shape=[2, 2], strides=[2, 2])
    shares = model.node("Softmax", model.node("Reshape", pooled, model.constant(np.array([4, 16]))), axis=-1)
    padded = _with_integers(model, "Pad", shares, "pads", [0, 1, 0, 0], version >= 11)
    clipped = (
        model.node("Clip", padded, model.constant(0.0), model.constant(0.2))
        if version >= 11
        else model.node("Clip", padded, min=0.0, max=0.2)
    )
    wider = _with_integers(model, "Unsqueeze", clipped, "axes", [1], version >= 13)
    mean = _with_integers(model, "ReduceMean", wider, "axes", [2], version >= 18)
    total = _with_integers(model, "ReduceSum", mean, "axes", [0], version >= 13)
    return model.finish(
        _with_integers(model, "Squeeze", total, "axes", [0], version >= 13), dtype=np.float32, version=version
    )


def _with_integers(model: ModelBuilder, kind: str, source: str, name: str, integers: list[int], is_input: bool) -> str:
    if is_input:
        return model.node(kind, source, model.constant(np.array(integers)))
    return model.node(kind, source, **{name: integers})


@pytest.mark.parametrize("version", range(10, 25))
def test_every_operator_set_is_read(version: int) -> None:
    content = _network(version)
    (wanted,) = ORT.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, {"x": IMAGE})
    assert_floats_within(run(content, IMAGE), wanted, "function")
