"""TFLite models that are compiled in parts: the same bits as LiteRT on the whole, with the kernels of the profile."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray
from tflite_graphs import options, options_of
from tolerances import assert_floats_within

import qdialect
from qdialect.arithmetic.block_weights import pack
from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.division import extract
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.targets import resolve

Array = NDArray[Any]
FLEXBUFFERS: Any = import_module("flatbuffers.flexbuffers")
LITERT: Any = import_module("ai_edge_litert.interpreter")
SCHEMA: Any = import_module("ai_edge_litert.schema_py_generated")
Q = Quantization((0.05,), (3,))
SHAPE = (1, 12, 12, 8)
SAME = 0


class Net(ModelWriter):
    """Tensors are quantized images."""

    def __init__(self) -> None:
        super().__init__("test")
        self._count = 0

    def image(self) -> int:
        return self.tensor("image", SHAPE, np.int8, Q)

    def result(self, shape: Sequence[int] = SHAPE, dtype: type[np.generic] = np.int8) -> int:
        self._count += 1
        return self.tensor(f"t{self._count}", shape, dtype, Q if dtype is np.int8 else None)

    def convolution(self, data: int, seed: int = 0) -> int:
        drawn = np.random.default_rng(seed)
        weights = drawn.integers(-127, 128, (8, 3, 3, 8)).astype(np.int8)
        scales = tuple(float(s) for s in drawn.uniform(0.003, 0.006, 8).astype(np.float32))
        kernel = self.constant(f"w{self._count}", weights, Quantization(scales, (0,) * 8))
        bias = self.constant(
            f"b{self._count}", np.arange(8, dtype=np.int32), Quantization(tuple(0.05 * s for s in scales), (0,) * 8)
        )
        result = self.result()
        kind = tflite.BuiltinOptions.Conv2DOptions
        self.operator(tflite.BuiltinOperator.CONV_2D, [data, kernel, bias], result, kind, options(SAME, 1, 1))
        return result

    def unsupported(self, data: int) -> int:
        """An arc tangent of floats between two conversions."""
        floats, angle, result = self.result(dtype=np.float32), self.result(dtype=np.float32), self.result()
        self.operator(tflite.BuiltinOperator.DEQUANTIZE, [data], floats)
        self.operator(tflite.BuiltinOperator.ATAN2, [floats, floats], angle)
        self.operator(tflite.BuiltinOperator.QUANTIZE, [angle], result)
        return result

    def sum(self, lhs: int, rhs: int) -> int:
        result = self.result()
        self.operator(tflite.BuiltinOperator.ADD, [lhs, rhs], result, *options_of("Add"))
        return result


def middle() -> bytes:
    b = Net()
    image = b.image()
    return b.finish([image], [b.convolution(b.unsupported(b.convolution(image)))])


def beginning() -> bytes:
    b = Net()
    image = b.image()
    return b.finish([image], [b.convolution(b.unsupported(image))])


def end() -> bytes:
    b = Net()
    image = b.image()
    return b.finish([image], [b.unsupported(b.convolution(image))])


def diamond() -> bytes:
    b = Net()
    image = b.image()
    top = b.convolution(image)
    return b.finish([image], [b.sum(b.convolution(top, 1), b.unsupported(top))])


def many_outputs() -> bytes:
    """Of both sides, and one that both read."""
    b = Net()
    image = b.image()
    first = b.convolution(image)
    second = b.unsupported(first)
    return b.finish([image], [second, b.sum(first, second), first])


NETWORKS: list[Callable[[], bytes]] = [middle, beginning, end, diamond, many_outputs]


def with_detection(content: bytes) -> bytes:
    """The model with a custom operator behind its result: boxes of a detector and their scores.

    The result is the scores of 144 boxes in 8 classes, the first of which is the background.
    """
    model = SCHEMA.ModelT.InitFromObj(SCHEMA.Model.GetRootAs(content, 0))
    graph = model.subgraphs[0]
    scores = graph.outputs[0]
    reshaped = added(graph, "scores", (1, 144, 8), SCHEMA.TensorType.INT8, graph.tensors[scores].quantization)
    floats = added(graph, "floats", (1, 144, 8), SCHEMA.TensorType.FLOAT32)
    boxes = added(graph, "boxes", (1, 144, 4), SCHEMA.TensorType.FLOAT32)
    anchors = added(graph, "anchors", (144, 4), SCHEMA.TensorType.FLOAT32, buffer=len(model.buffers))
    held = SCHEMA.BufferT()
    held.data = memoryview(np.random.default_rng(3).uniform(0.1, 1, (144, 4)).astype(np.float32).tobytes())
    model.buffers.append(held)
    results = [
        added(graph, name, shape, SCHEMA.TensorType.FLOAT32)
        for name, shape in (("boxes", (1, 5, 4)), ("classes", (1, 5)), ("best", (1, 5)), ("count", (1,)))
    ]
    add_operator(model, SCHEMA.BuiltinOperator.RESHAPE, [scores], [reshaped], shape=(1, 144, 8))
    add_operator(model, SCHEMA.BuiltinOperator.DEQUANTIZE, [reshaped], [floats])
    custom = add_operator(model, SCHEMA.BuiltinOperator.CUSTOM, [boxes, floats, anchors], results)
    said: dict[str, int | float] = {
        "max_detections": 5,
        "max_classes_per_detection": 1,
        "num_classes": 7,
        "nms_score_threshold": 0.1,
        "nms_iou_threshold": 0.5,
    }
    custom.customOptions = list(
        FLEXBUFFERS.Dumps(
            said | dict.fromkeys(("y_scale", "x_scale"), 10.0) | dict.fromkeys(("h_scale", "w_scale"), 5.0)
        )
    )
    graph.inputs, graph.outputs = [*graph.inputs, boxes], results
    return packed(model)


def packed(model: Any) -> bytes:
    builder = Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def added(graph: Any, name: str, shape: Sequence[int], kind: int, quantization: Any = None, buffer: int = 0) -> int:
    tensor = SCHEMA.TensorT()
    tensor.name, tensor.shape, tensor.type = name, list(shape), kind
    tensor.quantization, tensor.buffer = quantization, buffer
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def add_operator(
    model: Any, code: int, inputs: list[int], outputs: list[int], shape: Sequence[int] | None = None
) -> Any:
    entry = SCHEMA.OperatorCodeT()
    entry.builtinCode, entry.deprecatedBuiltinCode = code, min(code, 127)
    entry.version = 1
    if code == SCHEMA.BuiltinOperator.CUSTOM:
        entry.customCode = "TFLite_Detection_PostProcess"
    model.operatorCodes.append(entry)
    operator = SCHEMA.OperatorT()
    operator.opcodeIndex, operator.inputs, operator.outputs = len(model.operatorCodes) - 1, inputs, outputs
    if shape is not None:
        operator.builtinOptionsType = SCHEMA.BuiltinOptions.ReshapeOptions
        operator.builtinOptions = SCHEMA.ReshapeOptionsT()
        operator.builtinOptions.newShape = list(shape)
    model.subgraphs[0].operators.append(operator)
    return operator


def saved(folder: Path, content: bytes) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return path


def image(seed: int = 5) -> Array:
    return np.random.default_rng(seed).integers(-128, 128, SHAPE).astype(np.int8)


def whole(path: Path, *inputs: Array, kernels: str = "BUILTIN_REF") -> list[Array]:
    """What LiteRT gives for the whole model, by its reference kernels unless others are named."""
    kind = LITERT.OpResolverType[kernels]
    interpreter = LITERT.Interpreter(model_path=str(path), experimental_op_resolver_type=kind)
    interpreter.allocate_tensors()
    for details, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def assert_equal(found: Array | tuple[Array, ...], wanted: Sequence[Array]) -> None:
    for one, other in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize(("profile", "kernels"), [("", "AUTO"), ("tflite", "BUILTIN_REF")])
@pytest.mark.parametrize("network", NETWORKS)
def test_bits_are_those_of_the_whole_model(
    network: Callable[[], bytes], profile: str, kernels: str, tmp_path: Path
) -> None:
    """Without a profile those of LiteRT's default run."""
    path = saved(tmp_path, network())
    executable = qdialect.compile(path, profile=profile, fallback="framework")
    assert {region.runner for region in executable.regions} == {"qdialect", "LiteRT"}
    for seed in (1, 2):
        assert_equal(executable(image(seed)), whole(path, image(seed), kernels=kernels))


def test_a_custom_operator_of_litert(tmp_path: Path) -> None:
    b = Net()
    given = b.image()
    path = saved(tmp_path, with_detection(b.finish([given], [b.convolution(given)])))
    executable = qdialect.compile(path, fallback="framework")
    assert [region.runner for region in executable.regions] == ["qdialect", "LiteRT"]
    boxes = np.random.default_rng(1).normal(size=(1, 144, 4)).astype(np.float32)
    wanted = whole(path, image(), boxes, kernels="AUTO")
    assert wanted[-1].tolist() == [5]
    assert_equal(executable(image(), boxes), wanted)


def test_a_custom_operator_that_nobody_has(tmp_path: Path) -> None:
    b = Net()
    given = b.image()
    content = with_detection(b.finish([given], [b.convolution(given)]))
    changed = content.replace(b"TFLite_Detection_PostProcess", b"TFLite_Detection_PostProcesS")
    with pytest.raises(qdialect.ImportModelError, match=r"(?s)CUSTOM:TFLite_Detection_PostProcesS.*LiteRT does not"):
        qdialect.compile(saved(tmp_path, changed), fallback="framework")


def test_the_delegate_runs_its_part_where_the_profile_names_it(tmp_path: Path) -> None:
    path = saved(tmp_path, middle())
    executable = qdialect.compile(path, profile="tflite-xnnpack", fallback="framework")
    assert_equal(executable(image()), whole(path, image(), kernels="AUTO"))


def streaming() -> bytes:
    """Its second subgraph sets a state up, to which the first adds each input."""
    code, kind, types = SCHEMA.BuiltinOperator, SCHEMA.BuiltinOptions, SCHEMA.TensorType
    model = SCHEMA.ModelT()
    model.version, model.operatorCodes, model.buffers = 3, [], [SCHEMA.BufferT(), SCHEMA.BufferT()]
    model.buffers[1].data = memoryview(np.full(4, 10, np.float32).tobytes())
    model.subgraphs = [SCHEMA.SubGraphT(), SCHEMA.SubGraphT()]

    def handle(graph: Any) -> int:
        held = added(graph, "state", (), types.RESOURCE)
        operator(graph, code.VAR_HANDLE, [], [held], "VarHandleOptions", sharedName="state", container="")
        return held

    def operator(graph: Any, number: int, inputs: list[int], outputs: list[int], table: str, **fields: Any) -> None:
        made = add_operator(model, number, inputs, outputs)
        model.subgraphs[0].operators.pop()
        graph.operators.append(made)
        made.builtinOptionsType, made.builtinOptions = getattr(kind, table), getattr(SCHEMA, f"{table}T")()
        for name, value in fields.items():
            setattr(made.builtinOptions, name, value)

    for graph in model.subgraphs:
        graph.tensors, graph.operators, graph.inputs, graph.outputs = [], [], [], []
    main, first = model.subgraphs
    operator(main, code.CALL_ONCE, [], [], "CallOnceOptions", initSubgraphIndex=1)
    x, old, new = (added(main, name, (4,), types.FLOAT32) for name in ("x", "old", "new"))
    held = handle(main)
    operator(main, code.READ_VARIABLE, [held], [old], "ReadVariableOptions")
    operator(main, code.ADD, [x, old], [new], "AddOptions")
    operator(main, code.ASSIGN_VARIABLE, [held, new], [], "AssignVariableOptions")
    main.inputs, main.outputs = [x], [new]
    held = handle(first)
    start = added(first, "start", (4,), types.FLOAT32, buffer=1)
    operator(first, code.ASSIGN_VARIABLE, [held, start], [], "AssignVariableOptions")
    return packed(model)


def test_a_state_between_calls_is_one_region(tmp_path: Path) -> None:
    executable = qdialect.compile(saved(tmp_path, streaming()), fallback="framework")
    (region,) = executable.regions
    assert "the network keeps a state between calls" in region.reasons.values()
    given = np.arange(4, dtype=np.float32)
    for trip in (1, 2, 3):
        np.testing.assert_array_equal(executable(given), 10 + trip * given)


def blockwise(
    block: int, kind: int = SCHEMA.TensorType.INT4, *, least: float = 0.01, activation: int = 0
) -> tuple[bytes, Array]:
    """FULLY_CONNECTED with int4 weights that have a scale for each block of a row, and the numbers they stand for."""
    code, types = SCHEMA.BuiltinOperator, SCHEMA.TensorType
    random = np.random.default_rng(2)
    weights = random.integers(-8, 8, (8, 192))
    scales = random.uniform(least, 0.1, (8, 192 // block)).astype(np.float16)
    model = SCHEMA.ModelT()
    model.version, model.operatorCodes, model.buffers = 3, [], [SCHEMA.BufferT() for _ in range(4)]
    pairs = (weights & 15).astype(np.uint8).reshape(-1, 2)
    model.buffers[1].data = memoryview((pairs[:, 0] | (pairs[:, 1] << 4)).astype(np.uint8).tobytes())
    model.buffers[2].data = memoryview(scales.tobytes())
    model.buffers[3].data = memoryview(np.arange(8, dtype=np.float32).tobytes())
    graph = SCHEMA.SubGraphT()
    model.subgraphs, graph.tensors, graph.operators = [graph], [], []
    details = SCHEMA.BlockwiseQuantizationT()
    details.scales, details.zeroPoints, details.blockSize = 2, -1, block
    quantization = SCHEMA.QuantizationParametersT()
    quantization.details, quantization.detailsType = details, SCHEMA.QuantizationDetails.BlockwiseQuantization
    x, weight = added(graph, "x", (4, 192), types.FLOAT32), added(graph, "w", (8, 192), kind, quantization, 1)
    added(graph, "scales", scales.shape, types.FLOAT16, buffer=2)
    bias, y = added(graph, "b", (8,), types.FLOAT32, buffer=3), added(graph, "y", (4, 8), types.FLOAT32)
    dense = add_operator(model, code.FULLY_CONNECTED, [x, weight, bias], [y])
    dense.builtinOptionsType = SCHEMA.BuiltinOptions.FullyConnectedOptions
    dense.builtinOptions = SCHEMA.FullyConnectedOptionsT()
    dense.builtinOptions.fusedActivationFunction = activation
    graph.inputs, graph.outputs = [x], [y]
    return packed(model), weights * np.repeat(scales.astype(np.float64), block, axis=1)


@pytest.mark.parametrize(("block", "least", "activation"), [(32, 0.01, 0), (64, 1e-5, 1), (192, 0.01, 0)])
def test_scales_by_block(block: int, least: float, activation: int, tmp_path: Path) -> None:
    """The bits of XNNPACK with AVX-512 VNNI, whose other kernels add in another order."""
    content, weights = blockwise(block, least=least, activation=activation)
    x = np.random.default_rng(1).normal(size=(4, 192)).astype(np.float32)
    x[1], x[2, :3] = 0, (1e4, -3, 0)
    path = saved(tmp_path, content)
    executable = qdialect.compile(path, fallback="framework")
    assert [region.runner for region in executable.regions] == ["qdialect"]
    found, real = np.asarray(executable(x)), x @ weights.T + np.arange(8)
    assert np.corrcoef(np.ravel(found), np.ravel(real if activation == 0 else np.maximum(real, 0)))[0, 1] > 0.99
    (wanted,) = whole(path, x, kernels="AUTO")
    largest = np.maximum(np.abs(wanted).max(axis=1, keepdims=True), 1)
    assert_floats_within(found / largest, wanted / largest, "formula")
    if resolve("host").has_vnni:
        np.testing.assert_array_equal(found, wanted)


def test_scales_by_block_that_are_refused(tmp_path: Path) -> None:
    """LiteRT's reference kernels take no notice of them."""
    path = saved(tmp_path, blockwise(32)[0])
    refused = r"(?s)scale for each \d+ elements, which only XNNPACK's delegate reads.*FULLY_CONNECTED of int4"
    with pytest.raises(qdialect.ImportModelError, match=refused):
        qdialect.compile(path, profile="tflite", fallback="framework")
    for other in (blockwise(16), blockwise(32, 19)):
        with pytest.raises(qdialect.ImportModelError, match=refused):
            qdialect.compile(saved(tmp_path, other[0]), fallback="framework")
    with pytest.raises(qdialect.ImportModelError, match="got blockwise int2"):
        qdialect.compile(saved(tmp_path, other[0]), fallback="none")
    for other, reason in (
        (blockwise(32, least=-1.0), "must be positive and finite"),
        (blockwise(16), "multiples of 32"),
    ):
        with pytest.raises(qdialect.ImportModelError, match=reason):
            qdialect.compile(saved(tmp_path, other[0]), profile="tflite-xnnpack")


NARROW_SHAPES = {"FULLY_CONNECTED": ((3, 9), (5, 9), (3, 5)), "CONV_2D": ((1, 4, 4, 3), (5, 2, 2, 3), (1, 3, 3, 5))}
NARROW_OPTIONS = {"FULLY_CONNECTED": "FullyConnectedOptions", "CONV_2D": "Conv2DOptions"}


def narrow(kind: str, bits: int, dtype: str) -> bytes:
    """A product of `dtype` data with constant weights of 2 or 4 bits, with a scale for each channel."""
    types, random = SCHEMA.TensorType, np.random.default_rng(bits)
    shapes = NARROW_SHAPES[kind]
    model = SCHEMA.ModelT()
    model.version, model.operatorCodes, model.buffers = 3, [], [SCHEMA.BufferT() for _ in range(3)]
    low = -(2 ** (bits - 1))
    values = random.integers(low, -low, shapes[1])
    held = pack(values.reshape(1, -1) & (2**bits - 1), bits)
    model.buffers[1].data = memoryview(held.tobytes())
    bias = random.integers(-50, 50, 5).astype(np.float32 if dtype == "FLOAT32" else np.int32)
    model.buffers[2].data = memoryview(bias.tobytes())
    graph = SCHEMA.SubGraphT()
    model.subgraphs, graph.tensors, graph.operators = [graph], [], []

    def by(*scales: float) -> Any:
        found = SCHEMA.QuantizationParametersT()
        found.scale, found.zeroPoint, found.quantizedDimension = list(scales), [0] * len(scales), 0
        return found

    steps = [0.01, 0.02, 0.03, 0.04, 0.05]
    element, is_f32 = getattr(types, dtype), dtype == "FLOAT32"
    x = added(graph, "x", shapes[0], element, None if is_f32 else by(0.05))
    w = added(graph, "w", shapes[1], types.INT4 if bits == 4 else 19, by(*steps), 1)
    scales = None if is_f32 else by(*(0.05 * one for one in steps))
    b = added(graph, "b", (5,), types.FLOAT32 if is_f32 else types.INT32, scales, 2)
    y = added(graph, "y", shapes[2], element, None if is_f32 else by(0.04))
    operator = add_operator(model, getattr(SCHEMA.BuiltinOperator, kind), [x, w, b], [y])
    name = NARROW_OPTIONS[kind]
    operator.builtinOptionsType = getattr(SCHEMA.BuiltinOptions, name)
    operator.builtinOptions = getattr(SCHEMA, f"{name}T")()
    if kind == "CONV_2D":
        operator.builtinOptions.padding, operator.builtinOptions.strideH, operator.builtinOptions.strideW = 1, 1, 1
    graph.inputs, graph.outputs = [x], [y]
    return packed(model)


@pytest.mark.parametrize(
    ("kind", "bits", "dtype"),
    [
        ("FULLY_CONNECTED", 4, "FLOAT32"),
        ("FULLY_CONNECTED", 2, "INT8"),
        ("CONV_2D", 4, "INT8"),
        ("CONV_2D", 4, "FLOAT32"),
    ],
)
def test_weights_of_few_bits(kind: str, bits: int, dtype: str, tmp_path: Path) -> None:
    """They compute as the same integers of 8 bits in the reference kernels, and otherwise in LiteRT's others."""
    path, random = saved(tmp_path, narrow(kind, bits, dtype)), np.random.default_rng(0)
    drawn = random.integers(-128, 128, NARROW_SHAPES[kind][0])
    x = drawn.astype(np.int8) if dtype == "INT8" else (drawn / np.float32(50)).astype(np.float32)
    is_packed = "qnn.block_dynamic_dense" in str(import_tflite(path.read_bytes()))
    assert is_packed == (kind == "FULLY_CONNECTED")
    assert_equal(qdialect.compile(path, profile="tflite", fallback="none")(x), whole(path, x))
    assert_equal(
        qdialect.compile(path, profile="tflite-xnnpack", fallback="framework")(x), whole(path, x, kernels="AUTO")
    )
    with pytest.raises(qdialect.ImportModelError, match=f"'w' must be of 8 bits with profile .*, but got {bits}"):
        qdialect.compile(path, profile="tflite-xnnpack", fallback="none")


@pytest.mark.parametrize(("depth", "is_packed"), [(8192, True), (8240, False)])
def test_sums_that_float32_may_not_hold(
    depth: int, is_packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NARROW_SHAPES, "FULLY_CONNECTED", ((2, depth), (5, depth), (2, 5)))
    path = saved(tmp_path, narrow("FULLY_CONNECTED", 4, "INT8"))
    assert ("qnn.block_dynamic_dense" in str(import_tflite(path.read_bytes()))) == is_packed
    x = np.random.default_rng(0).integers(-128, 128, (2, depth)).astype(np.int8)
    x[1] = -128
    assert_equal(qdialect.compile(path, profile="tflite", fallback="none")(x), whole(path, x))


@pytest.mark.parametrize(
    ("kind", "bits", "dtype", "wanted"),
    [("FULLY_CONNECTED", 4, "INT16", "8 bits beside i16"), ("CONV_2D", 2, "FLOAT32", "4 or 8 bits in a convolution")],
)
def test_weights_of_too_few_bits(kind: str, bits: int, dtype: str, wanted: str, tmp_path: Path) -> None:
    path = saved(tmp_path, narrow(kind, bits, dtype))
    with pytest.raises(qdialect.ImportModelError, match=f"'w' must be of {wanted}, but got {bits}"):
        qdialect.compile(path, profile="tflite", fallback="none")


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dtype"), [(2, 3, SAME, np.int8), (1, 2, SAME, np.uint8), (1, 2, 1, np.int8)]
)
def test_transposed_windows_with_gaps(
    kernel: int, stride: int, padding: int, dtype: type[np.int8 | np.uint8], tmp_path: Path
) -> None:
    """Those of SAME the delegate leaves to a kernel of LiteRT that rounds the last channels otherwise."""
    b, drawn, rows = ModelWriter("gaps"), np.random.default_rng(7), 5
    low = np.iinfo(dtype).min
    points = low + 131, low + 133, low + 128
    extent = (rows - 1) * stride + kernel if padding else rows * stride
    of_weights = Quantization((0.01,), points[2:])
    shape = b.constant("shape", np.array([1, extent, extent, 21], np.int32))
    weight = b.constant("w", drawn.integers(low + 1, low + 256, (21, kernel, kernel, 16)).astype(dtype), of_weights)
    x = b.tensor("x", (1, rows, rows, 16), dtype, Quantization((0.08,), points[:1]))
    y = b.tensor("y", (1, extent, extent, 21), dtype, Quantization((0.05,), points[1:2]))
    option = options_of("TransposeConv", padding, stride, stride)
    b.operator(tflite.BuiltinOperator.TRANSPOSE_CONV, [shape, weight, x], y, *option)
    path, data = saved(tmp_path, b.finish([x], [y])), drawn.integers(low, low + 256, (1, rows, rows, 16)).astype(dtype)
    assert_equal(qdialect.compile(path, profile="tflite", fallback="none")(data), whole(path, data))
    wanted = whole(path, data, kernels="AUTO")
    assert_equal(qdialect.compile(path, profile="tflite-xnnpack", fallback="framework")(data), wanted)
    if padding == SAME:
        with pytest.raises(qdialect.ImportModelError, match="windows must be at least as large as their strides"):
            qdialect.compile(path, profile="tflite-xnnpack", fallback="none")
    else:
        assert_equal(qdialect.compile(path, profile="tflite-xnnpack", fallback="none")(data), wanted)


@pytest.mark.parametrize("profile", ["tflite", "tflite-xnnpack"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_ties_and_nan_of_quantize(dtype: type[np.int8 | np.uint8 | np.int16], profile: str, tmp_path: Path) -> None:
    """Ties go away from zero in the reference kernels, to even elsewhere; a rest of 16 bits is LiteRT's own."""
    scale, kernels = 0.0173, "BUILTIN_REF" if profile == "tflite" else "AUTO"
    for count in (64, 61):
        values = (np.arange(count, dtype=np.float32) - 29.5) * np.float32(scale)
        values[[3, 4, 8]] = np.nan, -np.nan, 1e6
        b = ModelWriter("quantize")
        x, y = b.tensor("x", (count,), np.float32), b.tensor("y", (count,), dtype, Quantization((scale,), (0,)))
        b.operator(tflite.BuiltinOperator.QUANTIZE, [x], y)
        path = saved(tmp_path, b.finish([x], [y]))
        wanted = whole(path, values, kernels=kernels)
        assert_equal(qdialect.compile(path, profile=profile, fallback="framework")(values), wanted)
        if kernels == "AUTO" and dtype is np.int16 and count == 61:
            with pytest.raises(qdialect.ImportModelError, match="input must have a multiple of 8 elements"):
                qdialect.compile(path, profile=profile, fallback="none")
        else:
            assert_equal(qdialect.compile(path, profile=profile, fallback="none")(values), wanted)


def test_a_kernel_of_litert_that_reads_a_bias_that_is_left_out(tmp_path: Path) -> None:
    """Of hybrid depthwise convolutions: LiteRT dies there."""
    b = ModelWriter("depthwise")
    x, y, z = (b.tensor(name, (1, 5, 5, 4), np.float32) for name in "xyz")
    scales = Quantization((0.1, 0.2, 0.3, 0.4), (0,) * 4, 3)
    weight = b.constant("w", np.arange(-18, 18, dtype=np.int8).reshape(1, 3, 3, 4), scales)
    table = tflite.BuiltinOptions.DepthwiseConv2DOptions
    b.operator(tflite.BuiltinOperator.DEPTHWISE_CONV_2D, [x, weight], y, table, options(0, 1, 1, 1))
    b.operator(tflite.BuiltinOperator.ATAN2, [y, y], z)
    content = b.finish([x], [y, z])
    part = extract(content, [0, 1], [x], [y, z], {}, {})
    data = np.random.default_rng(3).normal(size=(1, 5, 5, 4)).astype(np.float32)
    path = saved(tmp_path, content)
    compiled = qdialect.compile(path, fallback="framework")
    for found in (frameworks.load_litert(part, 1, is_reference=False)([data]), compiled(data)):
        for one, other in zip(found, whole(path, data), strict=True):
            assert_floats_within(one, other, "sum")


def test_a_kernel_of_litert_that_writes_outside_of_its_memory(tmp_path: Path) -> None:
    """SVDF of float data with 8-bit time weights stays compiled, however little work it is."""
    b, random = ModelWriter("svdf"), np.random.default_rng(4)
    x, y, z = b.tensor("x", (1, 8), np.float32), *(b.tensor(name, (1, 4), np.float32) for name in "yz")
    feature, time = (
        b.constant(name, random.integers(-127, 128, shape).astype(np.int8), Quantization((0.02,), (0,)))
        for name, shape in (("feature", (4, 8)), ("time", (4, 3)))
    )
    state = b.variable("state", (1, 12), np.float32)
    b.operator(tflite.BuiltinOperator.SVDF, [x, feature, time, -1, state], y, *options_of("SVDF", 1))
    b.operator(tflite.BuiltinOperator.ATAN2, [y, y], z)
    executable = qdialect.compile(saved(tmp_path, b.finish([x], [z])), fallback="framework")
    assert [(region.runner, len(region.nodes)) for region in executable.regions] == [("qdialect", 1), ("LiteRT", 1)]
    executable(np.ones((1, 8), np.float32))


@pytest.mark.parametrize("kind", [tflite.BuiltinOperator.EQUAL, tflite.BuiltinOperator.SQUARED_DIFFERENCE])
def test_a_kernel_of_litert_that_reads_a_scale_that_is_not_there(kind: int, tmp_path: Path) -> None:
    b = ModelWriter("plain bytes")
    x, y = (b.tensor(name, (3,), np.int8) for name in "xy")
    z = b.tensor("z", (3,), np.bool_ if kind == tflite.BuiltinOperator.EQUAL else np.int8)
    b.operator(kind, [x, y], z)
    with pytest.raises(qdialect.ImportModelError, match="LiteRT reads outside of its memory"):
        qdialect.compile(saved(tmp_path, b.finish([x, y], [z])), fallback="framework")
