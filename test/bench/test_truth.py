"""qdialect/bench/truth: the float64 evaluators against formulas, PyTorch's float64 and the operators of onnx itself."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
import torch
from onnx import load_from_string
from onnx_graphs import (
    CONTRIB,
    Array,
    ModelBuilder,
    Quantization,
    convolved,
    drawn,
    drawn_weights,
    f32_values,
    numbers,
    of_onnx_runtime,
    quantized_of,
)
from recurrent_models import BidirectionalLstm, Lstm
from tflite_graphs import options_of, reference, small_network
from torch import Tensor, nn
from torch.nn import functional
from torch_models import dequantized, network, quantized

from qdialect.bench import frameworks, truth
from qdialect.bench.truth.onnx_truth import in_double
from qdialect.bench.truth.tflite_truth import in_double as tflite_in_double
from qdialect.bench.truth.windows import convolution, maximum
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter
from qdialect.frontends.tflite.flatbuffer.writer import Quantization as Parameters
from tools.zoo.tensors import tensors

BY = (0.05, 7)


def _truth(builder: ModelBuilder, output: str, *inputs: Any, dtype: type[np.generic] = np.float32) -> Any:
    (found,) = in_double(load_from_string(builder.finish(output, dtype=dtype, version=20)))(list(inputs))
    assert found.dtype == np.float64
    return found


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convolution_is_the_sum_of_products(groups: int) -> None:
    random = np.random.default_rng(groups)
    data, weights = random.standard_normal((2, 4, 9, 8)), random.standard_normal((8, 4 // groups, 3, 2))
    found = convolution(data, weights, [1, 0, 1, 0], [2, 1], [1, 3], groups)
    one, other = tensors([data, weights])
    wanted = functional.conv2d(one, other, None, (2, 1), (1, 0), (1, 3), groups)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rounds_up", [False, True])
@pytest.mark.parametrize("size", [7, 8, 9])
def test_a_pool_is_that_of_pytorch(size: int, rounds_up: bool) -> None:
    data = np.random.default_rng(size).standard_normal((1, 2, size, size))
    found = maximum(data, [3, 2], [1, 1, 1, 1], [3, 2], [1, 2], rounds_up=rounds_up)
    wanted = functional.max_pool2d(tensors([data])[0], (3, 2), (3, 2), (1, 1), (1, 2), rounds_up)
    np.testing.assert_array_equal(found, wanted.numpy())


def test_a_quantized_convolution_has_no_rounding_but_its_last() -> None:
    builder = ModelBuilder()
    weights, scales = drawn((6, 2, 3, 3), np.int8), np.linspace(0.01, 0.02, 6).astype(np.float32)
    data = builder.dequantize(builder.input("x", (1, 4, 6, 6), np.uint8), BY)
    window = {"pads": [1, 1, 1, 1], "group": 2}
    sums = builder.node("Conv", data, builder.weight(weights, scales.tolist()), **window)
    quantized = drawn((1, 4, 6, 6), np.uint8)
    exact = convolved(quantized.astype(np.int64) - BY[1], weights, window).astype(np.float64)
    wanted = exact * float(np.float32(BY[0])) * scales.astype(np.float64).reshape(1, -1, 1, 1)
    np.testing.assert_allclose(_truth(builder, sums, quantized), wanted, rtol=1e-14)


def test_operators_of_com_microsoft_quantize_the_exact_result() -> None:
    builder = ModelBuilder()
    parameters = [*builder.parameters((0.1, 10), np.uint8), "y", *builder.parameters((0.2, 20), np.uint8)]
    builder.input("x", (9,), np.uint8)
    builder.input("y", (9,), np.uint8)
    result = builder.parameters((0.3, 5), np.uint8)
    found = builder.node(f"{CONTRIB}.QLinearAdd", "x", *parameters, *result)
    x, y = drawn((9,), np.uint8, 1), drawn((9,), np.uint8, 2)
    wanted = quantized_of(f32_values(x, (0.1, 10)) + f32_values(y, (0.2, 20)), (0.3, 5))
    assert _truth(builder, found, x, y, dtype=np.uint8).tolist() == wanted.tolist()


# qdialect/bench/truth/contrib_operators.py, of decoders: within roundings of what ONNX Runtime gives.


def _near(builder: ModelBuilder, outputs: list[str], *inputs: Array) -> None:
    content = builder.finish(*outputs, dtype=None, version=21)
    found, wanted = in_double(load_from_string(content))(list(inputs)), of_onnx_runtime(content, *inputs)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-6 * float(np.abs(other).max()))


@pytest.mark.parametrize(
    ("earlier", "steps", "options"),
    [
        (5, 3, {"do_rotary": 1, "softcap": 2.5, "scale": 0.5}),
        (5, 3, {"do_rotary": 1, "rotary_interleaved": 1, "local_window_size": 4}),
        (0, 6, {"local_window_size": 4}),
        (4, 1, {"do_rotary": 1, "local_window_size": 4, "sliding_window_cache": 1}),
        (6, 3, {"local_window_size": 4, "sliding_window_cache": 1}),
    ],
)
@pytest.mark.parametrize("has_sinks", [False, True])
def test_attention_with_caches_is_that_of_onnx_runtime(
    earlier: int, steps: int, options: dict[str, Any], has_sinks: bool
) -> None:
    builder, heads, shared, width = ModelBuilder(), 4, 2, 16
    total = np.array(earlier + steps, np.int32)
    arrays = [numbers(1, steps, (heads + 2 * shared) * width)]
    arrays += [numbers(1, shared, earlier, width, seed=seed) for seed in (1, 2)]
    names = [builder.input(f"x{index}", array.shape) for index, array in enumerate(arrays)]
    counts = [builder.constant(one) for one in (total[None] - np.int32(1), total)]
    turns = (
        [builder.constant(turn(numbers(16, 8))) for turn in (np.cos, np.sin)] if "do_rotary" in options else [""] * 2
    )
    sinks = ["", "", builder.constant(numbers(heads, seed=3))] if has_sinks else []
    outputs = ["y", "keys", "values"]
    given = [names[0], "", "", *names[1:], *counts, *turns, *sinks]
    how = {"num_heads": heads, "kv_num_heads": shared, **options}
    builder.node_of_many(f"{CONTRIB}.GroupQueryAttention", given, outputs, **how)
    _near(builder, outputs, *arrays)


def test_normalized_rows_of_a_table_go_through_experts() -> None:
    builder, random = ModelBuilder(), np.random.default_rng(5)
    table = builder.constant(random.integers(0, 256, (20, 32), np.uint8))
    scales = builder.constant(random.uniform(0.01, 0.02, (20, 2)).astype(np.float32))
    ids = builder.input("ids", (1, 3), np.int64)
    how = {"bits": 4, "block_size": 32, "gather_axis": 0, "quantize_axis": 1}
    rows = builder.node(f"{CONTRIB}.GatherBlockQuantized", table, ids, scales, **how)
    gamma = builder.constant(numbers(64))
    normed = builder.node("SimplifiedLayerNormalization", rows, gamma, axis=-1, epsilon=1e-6)
    builder.node_of_many(
        f"{CONTRIB}.SkipSimplifiedLayerNormalization", [rows, normed, gamma], ["left", "", "", "sum"], epsilon=1e-5
    )
    experts: list[str] = []
    for size, depth in ((256, 64), (64, 128)):
        experts.append(builder.constant(random.integers(0, 256, (4, size, depth // 2), np.uint8)))
        experts.append(builder.constant(random.uniform(0.01, 0.02, (4, size, depth // 32)).astype(np.float32)))
        experts.append(builder.constant(numbers(4, size, seed=size)))
    swiglu = {"activation_type": "swiglu", "swiglu_fusion": 1, "swiglu_limit": 0.9, "activation_alpha": 1.7}
    how = {"k": 2, "expert_weight_bits": 4, "block_size": 32, "normalize_routing_weights": 1, "activation_beta": 1.0}
    router = builder.constant(numbers(3, 4))
    found = builder.node(f"{CONTRIB}.QMoE", "left", router, *experts, **swiglu, **how)
    _near(builder, [found, "sum"], np.array([[3, 19, 0]]))


PADS = [
    ([0, -1, 2, -2], None, "constant", 18),
    ([1, 0], [-1], "constant", 18),
    ([-1, 3], [1], "edge", 18),
    ([0, -1, 0, 2], None, "reflect", 17),
    ([1, -1, 0, 0], None, "constant", 17),
]


@pytest.mark.parametrize(("pads", "axes", "mode", "version"), PADS)
def test_negative_pads_remove_elements(
    pads: list[int], axes: list[int] | None, mode: str, version: int, tmp_path: Path
) -> None:
    builder, data = ModelBuilder(), np.arange(28, dtype=np.float32).reshape(4, 7)
    given = [builder.constant(np.array(pads)), builder.constant(np.array(5, np.float32)) if mode == "constant" else ""]
    given += [builder.constant(np.array(axes))] if axes else []
    padded = builder.node("Pad", builder.input("x", (4, 7)), *given, mode=mode)
    path = tmp_path / "model.onnx"
    path.write_bytes(builder.finish(padded, dtype=np.float32, version=version))
    (found,) = truth.load(str(path), ".onnx")([data])
    (wanted,) = frameworks.load("onnx_runtime", str(path))([data])
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("quantizer", ["x86", "xnnpack"])
def test_a_program_of_pytorch_has_the_quantized_values_of_its_file(tmp_path: Path, quantizer: str) -> None:
    converted = network("resnet", quantizer)
    path = tmp_path / "model.pt2"
    torch.export.save(converted.exported(), path)
    (found,) = truth.load(str(path), ".pt2")([converted.images[0].numpy()])
    assert found.dtype == np.float64
    # PyTorch computes the same graph in float32: apart from ties, both are at the same quantized values.
    wanted = converted.results()[0]
    assert np.abs(found - wanted).max() < 0.05 * np.ptp(wanted)
    assert not np.array_equal(found, wanted.astype(np.float64))


class _Requantized(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return dequantized(quantized(x, 0.3, 3, torch.uint8), 1.0, 0, torch.uint8)


def test_pytorch_quantizations_round_the_float64_quotient(tmp_path: Path) -> None:
    near_ties = ((np.arange(100) + 0.5) * 0.3).astype(np.float32)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(_Requantized(), tensors([near_ties])), path)
    (found,) = truth.load(str(path), ".pt2")([near_ties])
    exact = np.rint(near_ties.astype(np.float64) / 0.3)
    assert not np.array_equal(exact, np.rint(near_ties / np.float32(0.3)))
    assert found.tolist() == (exact + 3).tolist()


# qdialect/bench/truth/contrib_operators.py: every evaluator is within a rounding of the kernel of ONNX Runtime.

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
WEIGHTS = [drawn_weights((2, 6, 12), np.int8, 7)], [drawn_weights((2, 3, 12), np.int8, 8)]
SCALES = [np.array([0.01, 0.02], np.float32)], [np.zeros(2, np.int8)]
STATES = [np.full((2, 2, 3), 0.3, np.float32)], [np.full((2, 2, 3), -0.2, np.float32)]
GATES = [np.linspace(-1, 1, 48).reshape(2, 24).astype(np.float32)]

ROWS = np.random.default_rng(8).normal(size=(3, 40)).astype(np.float32)
SHIFT = [np.arange(6, dtype=np.float32)]


def _blocks(bits: int) -> list[Any]:
    """Two blocks of 32 for each of 6 outputs, and their scales."""
    return [[drawn((6, 2, 4 * bits), np.uint8, 9)], [np.linspace(0.01, 0.03, 12).astype(np.float32)]]


OF_FLOATS: list[tuple[str, list[Any], dict[str, Any], int]] = [
    ("MatMulIntegerToFloat", [QUANTIZED[0], MATRIX, [np.float32(0.1)], PER_COLUMN[0]], {}, 1),
    (
        "MatMulIntegerToFloat",
        [QUANTIZED[0], MATRIX, [np.float32(0.1)], PER_COLUMN[0], [np.array(9, np.uint8)], PER_COLUMN[1], BIAS],
        {},
        1,
    ),
    ("DynamicQuantizeMatMul", [FLOATS, MATRIX, *PER_COLUMN, BIAS], {}, 1),
    *(
        ("MatMulNBits", [ROWS, *_blocks(bits), *more], {"K": 40, "N": 6, "bits": bits, "block_size": 32}, 1)
        for bits, more in ((4, []), (8, []), (4, [[drawn((6,), np.uint8, 11)], None, SHIFT]))
    ),
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


# qdialect/bench/truth: .tflite graphs in float64, compared with formulas and LiteRT's reference kernels.

KIND = tflite.BuiltinOperator
SAME = tflite.Padding.SAME


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(1, 3, shape).astype(np.float32)


def ints(*entries: int) -> Array:
    return np.array(entries, np.int32)


PIXELS = normal(1, 2, 5, 6, 4)
CASES: dict[str, tuple[list[Array], int, tuple[int, ...], tuple[Any, ...]]] = {
    "CONV_2D": ([PIXELS, normal(2, 3, 3, 2, 4), normal(3, 3)], 2, (2, 3, 3, 3), options_of("Conv2D", SAME, 2, 2, 1)),
    "DEPTHWISE_CONV_2D": (
        [PIXELS, normal(2, 1, 3, 2, 8), normal(3, 8)],
        2,
        (2, 5, 6, 8),
        options_of("DepthwiseConv2D", SAME, 1, 1, 2, 3),
    ),
    "AVERAGE_POOL_2D": ([PIXELS], 0, (2, 3, 3, 4), options_of("Pool2D", SAME, 2, 2, 3, 3, 0)),
    "SOFTMAX": ([PIXELS], 0, PIXELS.shape, options_of("Softmax", 0.5)),
    "GELU": ([PIXELS], 0, PIXELS.shape, options_of("Gelu", False)),
    "HARD_SWISH": ([PIXELS], 0, PIXELS.shape, ()),
    "LOGISTIC": ([PIXELS], 0, PIXELS.shape, ()),
    "MEAN": ([PIXELS, ints(1, 2)], 1, (2, 4), options_of("Reducer", False)),
    "STRIDED_SLICE": (
        [PIXELS, ints(0, 4, 1, 2), ints(2, 0, 6, 3), ints(1, -2, 2, 1)],
        3,
        (2, 2, 3),
        options_of("StridedSlice", 1, 4, 0, 0, 8),
    ),
    "RESIZE_BILINEAR": (
        [PIXELS, ints(7, 11)],
        1,
        (2, 7, 11, 4),
        options_of("ResizeBilinear", False, False, False, True),
    ),
    **{
        f"RESIZE_NEAREST_NEIGHBOR {i}": (
            [PIXELS, ints(*size)],
            1,
            (2, *size, 4),
            options_of("ResizeNearestNeighbor", *choices),
        )
        for i, choices in enumerate(((False, False), (True, False), (False, True)))
        for size in ((9, 13), (3, 4))
    },
    **{
        f"MIRROR_PAD {i}": ([PIXELS, ints(1, 0, 1, 2, 0, 1, 0, 2).reshape(4, 2)], 1, (3, 8, 7, 6), o)
        for i, o in enumerate((options_of("MirrorPad", 0), options_of("MirrorPad", 1)))
    },
    "L2_NORMALIZATION": ([PIXELS], 0, PIXELS.shape, options_of("L2Norm", 0)),
    "GATHER": ([PIXELS, ints(4, 0, 1)], 1, (2, 5, 3, 4), options_of("Gather", 2, 0)),
    "GATHER of each": ([PIXELS, ints(4, 0, 1, 2).reshape(2, 2)], 1, (2, 2, 6, 4), options_of("Gather", 1, 1)),
    "GATHER_ND": ([PIXELS, ints(1, 4, 0, 2).reshape(2, 2)], 1, (2, 6, 4), ()),
    **{
        f"CUMSUM {i}": ([PIXELS, ints(axis)], 1, PIXELS.shape, options_of("Cumsum", *o))
        for i, (axis, *o) in enumerate(((1, False, False), (-2, True, True)))
    },
    **{kind: ([PIXELS, normal(6, 4)], 1, PIXELS.shape, ()) for kind in ("FLOOR_DIV", "FLOOR_MOD")},
    "BROADCAST_TO": ([normal(6, 5, 1, 4), ints(2, 5, 6, 4)], 1, PIXELS.shape, ()),
    "PRELU": ([PIXELS, normal(5, 4)], 1, PIXELS.shape, ()),
    "PAD": ([PIXELS, ints(0, 0, 1, 2, 0, 1, 0, 0).reshape(4, 2)], 1, (2, 8, 7, 4), ()),
    **{kind: ([PIXELS], 0, PIXELS.shape, ()) for kind in ("COS", "FLOOR", "SIN", "SIGN", "RELU_N1_TO_1")},
    "RELU_0_TO_1": ([PIXELS], 0, PIXELS.shape, ()),
    "LOG_SOFTMAX": ([PIXELS], 0, PIXELS.shape, options_of("LogSoftmax")),
    "ADD_N": ([PIXELS, PIXELS, PIXELS], 0, PIXELS.shape, options_of("AddN")),
    "POW": ([np.abs(PIXELS), normal(5, 4)], 1, PIXELS.shape, options_of("Pow")),
    "REDUCE_PROD": ([PIXELS, ints(1, 2)], 1, (2, 4), options_of("Reducer", False)),
    "TRANSPOSE": ([PIXELS, ints(3, 0, 2, 1)], 1, (4, 2, 6, 5), ()),
}


@pytest.mark.parametrize("kind", CASES)
def test_operators_are_those_of_litert(kind: str) -> None:
    inputs, constants, shape, option = CASES[kind]
    writer, free = ModelWriter("one operator"), len(inputs) - constants
    given = [writer.tensor(f"x{i}", array.shape, array.dtype.type) for i, array in enumerate(inputs[:free])]
    known = [writer.constant(f"c{i}", array) for i, array in enumerate(inputs[free:])]
    output = writer.tensor("y", shape, np.float32)
    writer.operator(getattr(KIND, kind.partition(" ")[0]), [*given, *known], output, *option)
    content = writer.finish(given, [output])
    (found,) = tflite_in_double(read_graph(content))(inputs[:free])
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, reference(content, inputs[:free])[0], rtol=2e-6, atol=2e-6)


def test_quantized_tensors_hold_numbers_of_their_grid() -> None:
    """Every kernel of this network rounds once: an exact result differs at ties alone."""
    content = small_network()
    given = np.random.default_rng(1).integers(-128, 128, (1, 2, 2, 2)).astype(np.int8)
    (found,) = tflite_in_double(read_graph(content))([given])
    (wanted,) = reference(content, [given])
    assert found.dtype == np.float64
    assert set(np.unique(found % 1)) == {0.0}
    assert np.abs(found - wanted).max() <= 1


@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_dynamic_range_products_round_their_activations(is_asymmetric: bool) -> None:
    writer, random = ModelWriter("hybrid"), np.random.default_rng(3)
    weight, scale = random.integers(-127, 128, (3, 8)).astype(np.int8), float(np.float32(0.02))
    x, y = (writer.tensor(name, shape, np.float32) for name, shape in (("x", (2, 8)), ("y", (2, 3))))
    w = writer.constant("w", weight, Parameters((scale,), (0,)))
    writer.operator(KIND.FULLY_CONNECTED, [x, w], y, *options_of("FullyConnected", 0, 0, 0, is_asymmetric))
    content, data = writer.finish([x], [y]), normal(4, 2, 8)
    (found,) = tflite_in_double(read_graph(content))([data])
    rows: list[Array] = []
    for row in data.astype(np.float64):
        step = (max(row.max(), 0) - min(row.min(), 0)) / 255 if is_asymmetric else np.abs(row).max() / 127
        zero_point = np.rint(-128 - min(row.min(), 0) / step) if is_asymmetric else 0
        rows.append((np.clip(np.rint(row / step) + zero_point, -128, 127) - zero_point) * step)
    np.testing.assert_allclose(found, np.array(rows) @ (weight * scale).T, rtol=1e-12)
    np.testing.assert_allclose(found, reference(content, [data])[0], rtol=1e-5, atol=1e-5)


# qdialect/bench/truth/tflite_lstm.py: long short-term memory in float64, compared with LiteRT's reference kernels.

FLOAT = Lstm(data=np.float32, weights=np.float32)
HYBRID = FLOAT.but(weights=np.int8)
ALL = {"has_peepholes": True, "has_norms": True, "width": 5, "batch": 2}
LSTMS: dict[str, Lstm | BidirectionalLstm] = {
    "plain": FLOAT,
    "time major": FLOAT.but(batch=2, is_time_major=True, seed=2),
    "relu": FLOAT.but(activation=1, cell_clip=0.4, seed=7),
    "projection": FLOAT.but(width=4, projection_clip=0.3, seed=5),
    "all": FLOAT.but(is_coupled=True, seed=8, **ALL),
    "hybrid": HYBRID.but(batch=3, seed=1),
    "hybrid all": HYBRID.but(is_asymmetric=True, seed=4, **ALL),
    "both": BidirectionalLstm(FLOAT),
    "apart": BidirectionalLstm(FLOAT.but(seed=9), is_merged=False),
    "auxiliary": BidirectionalLstm(FLOAT.but(batch=2, is_time_major=True), has_auxiliary=True),
}
BASE = Lstm()
INTEGERS = {
    "plain": BASE,
    "time major": BASE.but(batch=3, is_time_major=True, seed=2),
    "coupled peepholes": BASE.but(has_peepholes=True, is_coupled=True, seed=5),
    "projection": BASE.but(width=4, seed=6),
    "cell clip": BASE.but(cell_clip=0.75, seed=8),
}


@pytest.mark.parametrize("model", LSTMS.values(), ids=LSTMS)
def test_floats_are_those_of_litert(model: Lstm | BidirectionalLstm) -> None:
    content, inputs = model.content(), model.inputs()
    found, wanted = tflite_in_double(read_graph(content))(inputs), reference(content, inputs)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, other, atol=2e-5)


@pytest.mark.parametrize("model", INTEGERS.values(), ids=INTEGERS)
def test_integers_are_near_those_of_litert(model: Lstm) -> None:
    content, inputs = model.content(), model.inputs()
    (found,), (wanted,) = tflite_in_double(read_graph(content))(inputs), reference(content, inputs)
    assert set(np.unique(found % 1)) == {0.0}
    assert len(np.unique(found)) > 10
    # The kernel rounds each gate to 16 bits, and looks its functions up.
    assert np.abs(found - wanted).max() <= 2
