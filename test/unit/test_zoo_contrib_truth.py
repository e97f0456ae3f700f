"""tools/zoo/truth/contrib_operators.py: every evaluator is within a rounding of the kernel of ONNX Runtime."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import load_from_string
from onnx_graphs import CONTRIB, ModelBuilder, Quantization, drawn

from tools.zoo.truth.contrib_operators import CONTRIB_OPERATORS
from tools.zoo.truth.onnx_truth import in_double

Array = NDArray[Any]
ORT: Any = import_module("onnxruntime")
Given = Array | Quantization | list[Any] | None
X, Y, Z = (0.043, 117), (0.031, 5), (0.057, 90)
OUT = (0.02, 30)
QUANTIZED = drawn((2, 4, 6), np.uint8, 1)
OTHER = drawn((2, 4, 6), np.uint8, 2)
IMAGE = drawn((1, 3, 6, 6), np.uint8, 3)
FLOATS = np.random.default_rng(4).normal(size=(5, 2, 6)).astype(np.float32)


def _session(content: bytes) -> Any:
    options = ORT.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ORT.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ORT.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _model(
    kind: str, inputs: Sequence[Given], attributes: dict[str, Any], dtype: Any, outputs: int
) -> tuple[bytes, Any]:
    """Inputs are arrays of the call, pairs of a scale and a zero point, lists of one constant, or None."""
    model, names, given = ModelBuilder(), list[str](), list[Array]()
    for one in inputs:
        if one is None:
            names.append("")
        elif isinstance(one, tuple):
            names += model.parameters(one, np.uint8)
        elif isinstance(one, list):
            names.append(model.constant(one[0]))
        else:
            names.append(model.input(f"x{len(given)}", one.shape, one.dtype.type))
            given.append(one)
    results = [f"y{i}" for i in range(outputs)]
    model.node_of_many(f"{CONTRIB}.{kind}", names, results, **attributes)
    return model.finish(*results, dtype=dtype), given


def _found(kind: str, inputs: Sequence[Given], attributes: dict[str, Any], dtype: Any, outputs: int = 1) -> Any:
    content, given = _model(kind, inputs, attributes, dtype, outputs)
    exact = in_double(load_from_string(content))(given)
    ours = _session(content).run(None, {f"x{i}": array for i, array in enumerate(given)})
    return zip(exact, ours, strict=True)


OF_QUANTIZED: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("QLinearAdd", [QUANTIZED, X, OTHER, Y, Z], {}),
    ("QLinearMul", [QUANTIZED, X, OTHER, Y, Z], {}),
    ("QLinearSigmoid", [QUANTIZED, X, (1 / 256, 0)], {}),
    ("QLinearLeakyRelu", [QUANTIZED, X, OUT], {"alpha": 0.2}),
    ("QLinearSoftmax", [QUANTIZED, X, (1 / 256, 0)], {"opset": 13, "axis": 1}),
    ("QLinearSoftmax", [QUANTIZED, X, (1 / 256, 0)], {"opset": 12, "axis": 1}),
    ("QLinearWhere", [QUANTIZED > 100, QUANTIZED, X, OTHER, Y, Z], {}),
    ("QLinearConcat", [Z, QUANTIZED, X, OTHER, Y], {"axis": 1}),
    ("QLinearGlobalAveragePool", [IMAGE, X, OUT], {"channels_last": 0}),
    ("QLinearAveragePool", [IMAGE, X, OUT], {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [0, 1, 0, 1]}),
    ("QLinearAveragePool", [IMAGE, X, OUT], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("QLinearAveragePool", [IMAGE, X, OUT], {"kernel_shape": [2, 2], "channels_last": 1}),
    ("QGemm", [QUANTIZED[0], X, [drawn((6, 3), np.uint8, 5)], Y, None, OUT], {"transB": 0}),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes"), OF_QUANTIZED)
def test_quantized_results_differ_by_one_step_at_most(kind: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    for exact, kernel in _found(kind, inputs, attributes, np.uint8):
        apart = np.abs(exact - kernel)
        assert apart.max() <= 1
        assert apart.mean() < 0.05


MATRIX = [drawn((6, 3), np.int8, 6)]
PER_COLUMN = [np.array([0.01, 0.02, 0.03], np.float32)], [np.zeros(3, np.int8)]
BIAS = [np.array([1.0, -2.0, 3.0], np.float32)]
GAMMA = [np.linspace(0.5, 2, 6).astype(np.float32)]
WEIGHTS = [drawn((2, 6, 12), np.int8, 7)], [drawn((2, 3, 12), np.int8, 8)]
SCALES = [np.array([0.01, 0.02], np.float32)], [np.zeros(2, np.int8)]
STATES = [np.full((2, 2, 3), 0.3, np.float32)], [np.full((2, 2, 3), -0.2, np.float32)]
GATES = [np.linspace(-1, 1, 48).reshape(2, 24).astype(np.float32)]

OF_FLOATS: list[tuple[str, list[Any], dict[str, Any], int]] = [
    ("MatMulIntegerToFloat", [QUANTIZED[0], MATRIX, [np.float32(0.1)], PER_COLUMN[0]], {}, 1),
    (
        "MatMulIntegerToFloat",
        [QUANTIZED[0], MATRIX, [np.float32(0.1)], PER_COLUMN[0], [np.array(9, np.uint8)], PER_COLUMN[1], BIAS],
        {},
        1,
    ),
    ("DynamicQuantizeMatMul", [FLOATS, MATRIX, *PER_COLUMN, BIAS], {}, 1),
    ("DynamicQuantizeMatMul", [FLOATS, MATRIX, PER_COLUMN[0]], {}, 1),
    ("SkipLayerNormalization", [FLOATS, FLOATS[::-1].copy(), GAMMA, GAMMA, GAMMA], {"epsilon": 1e-3}, 1),
    ("SkipLayerNormalization", [FLOATS, FLOATS[::-1].copy(), GAMMA], {}, 4),
    *(
        (
            "DynamicQuantizeLSTM",
            [FLOATS, *WEIGHTS, GATES, None, *STATES, None, SCALES[0], SCALES[1], SCALES[0], SCALES[1]],
            {"direction": "bidirectional", "hidden_size": 3},
            outputs,
        )
        for outputs in (1, 3)
    ),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "outputs"), OF_FLOATS)
def test_f32_results_are_close(kind: str, inputs: list[Any], attributes: dict[str, Any], outputs: int) -> None:
    for index, (exact, kernel) in enumerate(_found(kind, inputs, attributes, np.float32, outputs)):
        # ONNX Runtime does not compute the statistics.
        if kind != "SkipLayerNormalization" or index in (0, 3):
            np.testing.assert_allclose(kernel, exact, rtol=2e-5, atol=2e-5)


def test_every_evaluator_is_tested() -> None:
    tested = {one[0] for one in OF_QUANTIZED} | {one[0] for one in OF_FLOATS}
    assert tested == {operator.__name__ for operator in CONTRIB_OPERATORS}
