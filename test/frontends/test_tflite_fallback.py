"""TFLite models that are compiled in parts: the same bits as LiteRT on the whole, with the kernels of the profile."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from onnx_graphs import assert_same
from tflite_graphs import (
    SCHEMA,
    Array,
    Given,
    Result,
    add_operator,
    added,
    model_of,
    one_operator,
    opened,
    options,
    options_of,
    packed,
    table,
)
from tolerances import assert_floats_within

import qdialect
from qdialect.arithmetic.block_weights import pack
from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.division import extract
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.targets import resolve

FLEXBUFFERS: Any = import_module("flatbuffers.flexbuffers")
LITERT: Any = import_module("ai_edge_litert.interpreter")
Q = Quantization((0.05,), (3,))
SHAPE = (1, 12, 12, 8)
SAME = 0


class Net(ModelWriter):
    """Tensors are quantized images."""

    def __init__(self) -> None:
        super().__init__("test")
        self._count = 0

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


def middle(b: Net, image: int) -> list[int]:
    return [b.convolution(b.unsupported(b.convolution(image)))]


def beginning(b: Net, image: int) -> list[int]:
    return [b.convolution(b.unsupported(image))]


def end(b: Net, image: int) -> list[int]:
    return [b.unsupported(b.convolution(image))]


def diamond(b: Net, image: int) -> list[int]:
    top = b.convolution(image)
    return [b.sum(b.convolution(top, 1), b.unsupported(top))]


def many_outputs(b: Net, image: int) -> list[int]:
    """Of both sides, and one that both read."""
    first = b.convolution(image)
    second = b.unsupported(first)
    return [second, b.sum(first, second), first]


def convolved(b: Net, image: int) -> list[int]:
    return [b.convolution(image)]


Body = Callable[[Net, int], list[int]]


def network_of(body: Body) -> bytes:
    b = Net()
    image = b.tensor("image", SHAPE, np.int8, Q)
    return b.finish([image], body(b, image))


def with_detection(content: bytes) -> bytes:
    """The model with a custom operator behind its result: boxes of a detector and their scores.

    The result is the scores of 144 boxes in 8 classes, the first of which is the background.
    """
    model = opened(content)
    graph = model.subgraphs[0]
    scores = graph.outputs[0]
    reshaped = added(graph, "scores", (1, 144, 8), "INT8", graph.tensors[scores].quantization)
    floats, boxes = (added(graph, name, (1, 144, extent), "FLOAT32") for name, extent in (("floats", 8), ("boxes", 4)))
    anchors = added(graph, "anchors", (144, 4), "FLOAT32", buffer=len(model.buffers))
    drawn = np.random.default_rng(3).uniform(0.1, 1, (144, 4)).astype(np.float32)
    model.buffers.append(table("Buffer", data=memoryview(drawn.tobytes())))
    shapes = {"boxes": (1, 5, 4), "classes": (1, 5), "best": (1, 5), "count": (1,)}
    results = [added(graph, name, shape, "FLOAT32") for name, shape in shapes.items()]
    add_operator(model, "RESHAPE", [scores], [reshaped], "Reshape", newShape=[1, 144, 8])
    add_operator(model, "DEQUANTIZE", [reshaped], [floats])
    custom = add_operator(model, "CUSTOM", [boxes, floats, anchors], results)
    said: dict[str, int | float] = {
        "max_detections": 5,
        "max_classes_per_detection": 1,
        "num_classes": 7,
        "nms_score_threshold": 0.1,
        "nms_iou_threshold": 0.5,
    }
    said |= dict.fromkeys(("y_scale", "x_scale"), 10.0) | dict.fromkeys(("h_scale", "w_scale"), 5.0)
    custom.customOptions = list(FLEXBUFFERS.Dumps(said))
    graph.inputs, graph.outputs = [*graph.inputs, boxes], results
    return packed(model)


def saved(folder: Path, model: bytes | Body) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(model if isinstance(model, bytes) else network_of(model))
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


@pytest.mark.parametrize(("profile", "kernels"), [("", "AUTO"), ("tflite", "BUILTIN_REF")])
@pytest.mark.parametrize("network", [middle, beginning, end, diamond, many_outputs])
def test_bits_are_those_of_the_whole_model(network: Body, profile: str, kernels: str, tmp_path: Path) -> None:
    """Without a profile those of LiteRT's default run."""
    path = saved(tmp_path, network)
    executable = qdialect.compile(path, profile=profile, fallback="framework")
    assert {region.runner for region in executable.regions} == {"qdialect", "LiteRT"}
    for seed in (1, 2):
        assert_same(executable.results([image(seed)]), whole(path, image(seed), kernels=kernels))


def test_scalars_that_litert_reads(tmp_path: Path) -> None:
    """FILL of a shape that the data decides."""
    writer = ModelWriter("scalar")
    x, count = writer.tensor("x", (), np.int32), writer.tensor("count", (), np.int32)
    size = writer.tensor("size", (1,), np.int32)
    writer.operator(tflite.BuiltinOperator.RESHAPE, [x, writer.constant("one", np.array([1], np.int32))], size)
    y = writer.tensor("y", (3,), np.int32)
    writer.operator(tflite.BuiltinOperator.FILL, [size, count], y)
    executable = qdialect.compile(saved(tmp_path, writer.finish([x, count], [y])), fallback="framework")
    (found,) = executable.results([np.array(3, np.int32), np.array(7, np.int32)])
    assert found.tolist() == [7, 7, 7]


def test_a_custom_operator_of_litert(tmp_path: Path) -> None:
    path = saved(tmp_path, with_detection(network_of(convolved)))
    executable = qdialect.compile(path, fallback="framework")
    assert [region.runner for region in executable.regions] == ["qdialect", "LiteRT"]
    boxes = np.random.default_rng(1).normal(size=(1, 144, 4)).astype(np.float32)
    wanted = whole(path, image(), boxes, kernels="AUTO")
    assert wanted[-1].tolist() == [5]
    assert_same(executable.results([image(), boxes]), wanted)


def test_a_custom_operator_that_nobody_has(tmp_path: Path) -> None:
    content = with_detection(network_of(convolved))
    changed = content.replace(b"TFLite_Detection_PostProcess", b"TFLite_Detection_PostProcesS")
    with pytest.raises(qdialect.ImportModelError, match=r"(?s)CUSTOM:TFLite_Detection_PostProcesS.*LiteRT does not"):
        qdialect.compile(saved(tmp_path, changed), fallback="framework")


def test_the_delegate_runs_its_part_where_the_profile_names_it(tmp_path: Path) -> None:
    path = saved(tmp_path, middle)
    executable = qdialect.compile(path, profile="tflite-xnnpack", fallback="framework")
    assert_same(executable.results([image()]), whole(path, image(), kernels="AUTO"))


def streaming() -> bytes:
    """Its second subgraph sets a state up, to which the first adds each row of its inputs, of which there are any."""
    model = model_of(np.full(4, 10, np.float32), np.zeros(1, np.int32), graphs=2)
    main, first = model.subgraphs

    def handle(number: int) -> int:
        held, named = added(model.subgraphs[number], "state", (), "RESOURCE"), {"sharedName": "state", "container": ""}
        add_operator(model, "VAR_HANDLE", [], [held], "VarHandle", number, **named)
        return held

    add_operator(model, "CALL_ONCE", [], [], "CallOnce", initSubgraphIndex=1)
    x, axes = added(main, "x", (1, 4), "FLOAT32"), added(main, "axes", (1,), "INT32", buffer=2)
    main.tensors[x].shapeSignature = [-1, 4]
    total, old, new = (added(main, name, (4,), "FLOAT32") for name in ("total", "old", "new"))
    held = handle(0)
    add_operator(model, "READ_VARIABLE", [held], [old], "ReadVariable")
    add_operator(model, "SUM", [x, axes], [total], "Reducer")
    add_operator(model, "ADD", [total, old], [new], "Add")
    add_operator(model, "ASSIGN_VARIABLE", [held, new], [], "AssignVariable")
    main.inputs, main.outputs = [x], [new]
    held, start = handle(1), added(first, "start", (4,), "FLOAT32", buffer=1)
    add_operator(model, "ASSIGN_VARIABLE", [held, start], [], "AssignVariable", 1)
    return packed(model)


def test_a_state_between_calls_is_one_region(tmp_path: Path) -> None:
    executable = qdialect.compile(saved(tmp_path, streaming()), fallback="framework")
    (region,) = executable.regions
    assert "the network keeps a state between calls" in region.reasons.values()
    given = np.arange(4, dtype=np.float32)
    for trip in (1, 2, 3):
        np.testing.assert_array_equal(executable(given[None]), 10 + trip * given)
    # Inputs of another shape have an interpreter of their own, which would begin anew.
    with pytest.raises(qdialect.InputError, match="LiteRT keeps a state between calls"):
        executable(np.stack([given, given]))


def blockwise(
    block: int, kind: str = "INT4", *, shape: tuple[int, int] = (8, 192), least: float = 0.01, activation: int = 0
) -> tuple[bytes, Array]:
    """FULLY_CONNECTED with int4 weights that have a scale for each block of a row, and the numbers they stand for."""
    random, (channels, depth) = np.random.default_rng(2), shape
    weights = random.integers(-8, 8, shape)
    scales = random.uniform(least, 0.1, (channels, depth // block)).astype(np.float16)
    model = model_of(pack(weights & 15, 4), scales, np.arange(channels, dtype=np.float32))
    (graph,) = model.subgraphs
    details = table("BlockwiseQuantization", scales=2, zeroPoints=-1, blockSize=block)
    kind_of_details = SCHEMA.QuantizationDetails.BlockwiseQuantization
    quantization = table("QuantizationParameters", details=details, detailsType=kind_of_details)
    x, weight = added(graph, "x", (4, depth), "FLOAT32"), added(graph, "w", shape, kind, quantization, 1)
    added(graph, "scales", scales.shape, "FLOAT16", buffer=2)
    bias, y = added(graph, "b", (channels,), "FLOAT32", buffer=3), added(graph, "y", (4, channels), "FLOAT32")
    inputs = [x, weight, bias]
    add_operator(model, "FULLY_CONNECTED", inputs, [y], "FullyConnected", fusedActivationFunction=activation)
    graph.inputs, graph.outputs = [x], [y]
    return packed(model), weights * np.repeat(scales.astype(np.float64), block, axis=1)


@pytest.mark.parametrize(
    ("block", "shape", "least", "activation"),
    [(32, (64, 1536), 0.01, 0), (64, (8, 192), 1e-5, 1), (192, (8, 192), 0.01, 0)],
)
def test_scales_by_block(block: int, shape: tuple[int, int], least: float, activation: int, tmp_path: Path) -> None:
    """The bits of XNNPACK with AVX-512 VNNI, whose other kernels add in another order; and the memory of the file."""
    (content, weights), (channels, depth) = blockwise(block, shape=shape, least=least, activation=activation), shape
    x = np.random.default_rng(1).normal(size=(4, depth)).astype(np.float32)
    x[1], x[2, :3] = 0, (1e4, -3, 0)
    path = saved(tmp_path, content)
    executable = qdialect.compile(path, fallback="framework")
    assert [region.runner for region in executable.regions] == ["qdialect"]
    found, real = np.asarray(executable(x)), x @ weights.T + np.arange(channels)
    assert np.corrcoef(np.ravel(found), np.ravel(real if activation == 0 else np.maximum(real, 0)))[0, 1] > 0.99
    (wanted,) = whole(path, x, kernels="AUTO")
    largest = np.maximum(np.abs(wanted).max(axis=1, keepdims=True), 1)
    if not resolve("host").has_vnni:
        np.testing.assert_allclose(found / largest, wanted / largest, atol=1e-4)
    else:
        np.testing.assert_array_equal(found, wanted)
        assert channels < 64 or executable.constants_bytes <= 1.1 * len(content)


def test_scales_by_block_that_are_refused(tmp_path: Path) -> None:
    """LiteRT's reference kernels take no notice of them."""
    path = saved(tmp_path, blockwise(32)[0])
    refused = r"(?s)scale for each \d+ elements, which only XNNPACK's delegate reads.*FULLY_CONNECTED of int4"
    with pytest.raises(qdialect.ImportModelError, match=refused):
        qdialect.compile(path, profile="tflite", fallback="framework")
    for other in (blockwise(16), blockwise(32, "INT2")):
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


def check_profiles(path: Path, data: Array, refused: str = "") -> None:
    """LiteRT's bits of both profiles, where the importer refuses some of XNNPACK's."""
    assert_same(qdialect.compile(path, profile="tflite", fallback="none").results([data]), whole(path, data))
    found = qdialect.compile(path, profile="tflite-xnnpack", fallback="framework" if refused else "none")
    assert_same(found.results([data]), whole(path, data, kernels="AUTO"))
    if refused:
        with pytest.raises(qdialect.ImportModelError, match=refused):
            qdialect.compile(path, profile="tflite-xnnpack", fallback="none")


NARROW_SHAPES = {"FULLY_CONNECTED": ((3, 9), (5, 9), (3, 5)), "CONV_2D": ((1, 4, 4, 3), (5, 2, 2, 3), (1, 3, 3, 5))}
NARROW_OPTIONS: dict[str, tuple[str, dict[str, int]]] = {
    "FULLY_CONNECTED": ("FullyConnected", {}),
    "CONV_2D": ("Conv2D", {"padding": 1, "strideH": 1, "strideW": 1}),
}


def narrow(kind: str, bits: int, dtype: str) -> bytes:
    """A product of `dtype` data with constant weights of 2 or 4 bits, with a scale for each channel."""
    random, shapes, is_f32 = np.random.default_rng(bits), NARROW_SHAPES[kind], dtype == "FLOAT32"
    values = random.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), shapes[1])
    bias = random.integers(-50, 50, 5).astype(np.float32 if is_f32 else np.int32)
    model = model_of(pack(values.reshape(1, -1) & (2**bits - 1), bits), bias)
    (graph,) = model.subgraphs

    def by(*scales: float) -> Any:
        return table("QuantizationParameters", scale=[*scales], zeroPoint=[0] * len(scales), quantizedDimension=0)

    steps = [0.01, 0.02, 0.03, 0.04, 0.05]
    x = added(graph, "x", shapes[0], dtype, None if is_f32 else by(0.05))
    w = added(graph, "w", shapes[1], f"INT{bits}", by(*steps), 1)
    scales = None if is_f32 else by(*(0.05 * one for one in steps))
    b = added(graph, "b", (5,), "FLOAT32" if is_f32 else "INT32", scales, 2)
    y = added(graph, "y", shapes[2], dtype, None if is_f32 else by(0.04))
    name, fields = NARROW_OPTIONS[kind]
    add_operator(model, kind, [x, w, b], [y], name, **fields)
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
    check_profiles(path, x, f"'w' must be of 8 bits with profile .*, but got {bits}")


@pytest.mark.parametrize(("depth", "is_packed"), [(8192, True), (8240, False)])
def test_sums_that_float32_may_not_hold(
    depth: int, is_packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NARROW_SHAPES, "FULLY_CONNECTED", ((2, depth), (5, depth), (2, 5)))
    path = saved(tmp_path, narrow("FULLY_CONNECTED", 4, "INT8"))
    assert ("qnn.block_dynamic_dense" in str(import_tflite(path.read_bytes()))) == is_packed
    x = np.random.default_rng(0).integers(-128, 128, (2, depth)).astype(np.int8)
    x[1] = -128
    assert_same(qdialect.compile(path, profile="tflite", fallback="none").results([x]), whole(path, x))


@pytest.mark.parametrize(
    ("kind", "bits", "dtype", "wanted"),
    [
        ("FULLY_CONNECTED", 4, "INT16", "8 bits with i16 data"),
        ("CONV_2D", 2, "FLOAT32", "4 or 8 bits in a convolution"),
    ],
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
    drawn, rows, low = np.random.default_rng(7), 5, np.iinfo(dtype).min
    of_data, of_output, of_weights = (
        Quantization((scale,), (low + point,)) for scale, point in ((0.08, 131), (0.05, 133), (0.01, 128))
    )
    extent = (rows - 1) * stride + kernel if padding else rows * stride
    shape = Given(np.array([1, extent, extent, 21], np.int32), is_constant=True)
    weight = Given(drawn.integers(low + 1, low + 256, (21, kernel, kernel, 16)).astype(dtype), True, of_weights)
    data = drawn.integers(low, low + 256, (1, rows, rows, 16)).astype(dtype)
    inputs, output = [shape, weight, Given(data, False, of_data)], Result((1, extent, extent, 21), dtype, of_output)
    option = options_of("TransposeConv", padding, stride, stride)
    path = saved(tmp_path, one_operator(tflite.BuiltinOperator.TRANSPOSE_CONV, inputs, [output], option))
    check_profiles(path, data, "windows must be at least as large as their strides" if padding == SAME else "")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_ties_and_nan_of_quantize(dtype: type[np.int8 | np.uint8 | np.int16], tmp_path: Path) -> None:
    """Ties go away from zero in the reference kernels, to even elsewhere; a rest of 16 bits is LiteRT's own."""
    scale = 0.0173
    for count, point in ((64, 0), (61, 0), *(((61, -5),) if dtype is np.int8 else ())):
        values = (np.arange(count, dtype=np.float32) - 29.5) * np.float32(scale)
        values[[3, 4, 8]] = np.nan, -np.nan, 1e6
        output = Result((count,), dtype, Quantization((scale,), (point,)))
        path = saved(tmp_path, one_operator(tflite.BuiltinOperator.QUANTIZE, [Given(values)], [output]))
        is_rest = dtype is np.int16 and count == 61
        check_profiles(path, values, "input must have a multiple of 8 elements" if is_rest else "")


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
    output = Result((3,), np.bool_ if kind == tflite.BuiltinOperator.EQUAL else np.int8)
    content = one_operator(kind, [Given(np.zeros(3, np.int8))] * 2, [output])
    with pytest.raises(qdialect.ImportModelError, match="LiteRT reads outside of its memory"):
        qdialect.compile(saved(tmp_path, content), fallback="framework")
