"""Q/DQ groups of ONNX models that ONNX Runtime computes in float32, and forms of one operator."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from compiled_ops import variants_together
from onnx_graphs import (
    Array,
    ModelBuilder,
    Quantization,
    agreed,
    assert_same,
    drawn,
    found_by,
    of_onnx_runtime,
    refused,
)

import qdialect
from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

# Of these, sums by one fused operation and in float32 differ for some pairs of quantized values.
CASES: list[tuple[Quantization, Quantization, Quantization]] = [
    ((0.05353185161948204, -15), (0.03582951799035072, 41), (0.045797303318977356, 126)),
    ((0.016503099352121353, 112), (0.01125734206289053, 58), (0.0305082555860281, 39)),
    ((0.06970439851284027, -2), (0.025204790756106377, -6), (0.03206279128789902, -1)),
    ((0.1, 0), (0.1, 0), (0.05, 0)),
]
GRID = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128), indexing="ij")


def on_grid(by: Sequence[Quantization]) -> list[Array]:
    """All pairs of quantized values as f32 values."""
    return [
        ((one - point).astype(np.float32) * np.float32(scale)) for one, (scale, point) in zip(GRID, by, strict=True)
    ]


def group(kind: str, case: tuple[Quantization, Quantization, Quantization], shared: str, element: Any) -> bytes:
    """A group whose left operand, right operand or result has a second reader."""
    b = ModelBuilder()
    names = {"lhs": b.input("x", (256, 256)), "rhs": b.input("y", (256, 256))}
    names = {
        name: b.dequantize(b.quantize(value, by, element), by, element)
        for (name, value), by in zip(names.items(), case[:2], strict=True)
    }
    after = b.quantize(b.node(kind, names["lhs"], names["rhs"]), case[2], element)
    names["result"] = b.dequantize(after, case[2], element)
    outputs = [b.node("Identity", names["result"])]
    if shared:
        outputs.append(b.node("Sin", names[shared]))
    return b.finish(*outputs, dtype=np.float32)


@variants_together
@pytest.mark.parametrize("shared", ["", "lhs", "rhs", "result"])
@pytest.mark.parametrize("kind", ["Add", "Mul"])
@pytest.mark.parametrize("case", CASES)
def test_results_equal_onnx_runtime(
    kind: str, case: tuple[Quantization, Quantization, Quantization], shared: str
) -> None:
    content, inputs = group(kind, case, shared, np.int8), on_grid(case[:2])
    agreed(content, *inputs, count=1)


@pytest.mark.parametrize(
    ("element", "shared", "is_integer"),
    [(np.int8, "", True), (np.int8, "result", False), (np.uint8, "result", True), (np.uint8, "lhs", True)],
)
def test_only_shared_tensors_of_i8_leave_the_integer_kernel(element: Any, shared: str, is_integer: bool) -> None:
    unsigned = ((0.1, 3), (0.1, 3), (0.05, 0))
    text = str(import_onnx(group("Add", unsigned, shared, element)))
    assert ("qnn.add" in text) == is_integer


@variants_together
@pytest.mark.parametrize("kind", ["Add", "Mul"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("is_result_i8", [True, False])
def test_a_group_of_i8_alone_is_one_integer_kernel(
    kind: str, case: tuple[Quantization, Quantization, Quantization], is_constant: bool, is_result_i8: bool
) -> None:
    """What nothing quantizes, or what is an output, stays i8; with a result that becomes ui8 the group is f32."""
    b = ModelBuilder()
    left, right = (grid.astype(np.int8) for grid in GRID)
    data = b.dequantize(b.input("x", (256, 256), np.int8), case[0], np.int8)
    other = b.constant(right) if is_constant else b.input("y", (256, 256), np.int8)
    result = b.quantize(b.node(kind, data, b.dequantize(other, case[1], np.int8)), case[2], np.int8)
    output = result if is_result_i8 else b.node("Identity", b.dequantize(result, case[2], np.int8))
    content = b.finish(output, dtype=np.int8 if is_result_i8 else np.float32)
    assert (f"qnn.{kind.lower()}" in str(import_onnx(content))) == is_result_i8
    inputs = [left] if is_constant else [left, right]
    # ONNX Runtime must not make the constant ui8: its group would be f32.
    assert_same(found_by(content, *inputs), of_onnx_runtime(content, *inputs, x64quantprecision="0"))


@pytest.mark.parametrize("kind", ["Add", "Sum", "Mean", "Sub", "Max"])
@pytest.mark.parametrize("element", [np.int8, np.uint8])
def test_halves_with_odd_zero_points(kind: str, element: Any) -> None:
    """The kernel of Add rounds behind the zero point, what ONNX Runtime computes in float32 before it."""
    b, least = ModelBuilder(), int(np.iinfo(element).min)
    sides = [b.dequantize(b.input(name, (256, 256), element), (0.5, least + 128), element) for name in "xy"]
    result = b.quantize(b.node(kind, *sides), (1.0, least + 255), element)
    agreed(b.finish(result, dtype=element), *((grid + least + 128).astype(element) for grid in GRID))


@pytest.mark.parametrize("kind", ["ReduceMean", "ReduceSum"])
@pytest.mark.parametrize("scales", [(0.5, 1.0), (0.75, 0.5), (0.25, 1.5)])
def test_means_and_sums_that_no_order_rounds(scales: tuple[float, float], kind: str) -> None:
    b = ModelBuilder()
    data = b.dequantize(b.input("x", (512, 7), np.uint8), (scales[0], 128))
    reduced = b.node(kind, data, b.constant(np.array([1])))
    agreed(b.finish(b.quantize(reduced, (scales[1], 129)), version=18), drawn((512, 7), np.uint8))


@pytest.mark.parametrize("is_quantized", [True, False])
@pytest.mark.parametrize("kind", ["MatMul", "Gemm", "Conv", "ConvTranspose", "com.microsoft.FusedMatMul"])
def test_sums_beyond_32_bits_are_onnx_runtimes(kind: str, is_quantized: bool) -> None:
    """ONNX Runtime wraps around or adds in float32, by the operator, the types and what follows."""
    b, depth, is_image = ModelBuilder(), 70_000, kind.startswith("Conv")
    weight = np.full((1, depth) if kind == "Conv" else (depth, 1), 127, np.int8)
    image = (1, 1) if is_image else ()
    data = b.dequantize(b.input("x", (2, depth, *image), np.uint8), (1.0, 0))
    product = b.node(kind, data, b.weight(weight.reshape(*weight.shape, *image), 2.0**-10))
    result = b.quantize(product, (2.0**14, 0)) if is_quantized else product
    content = b.finish(result, dtype=np.uint8 if is_quantized else np.float32)
    assert "sums of products must fit into 32 bits" in refused(content)
    values = np.full((2, depth, *image), 255, np.uint8)
    with pytest.warns(qdialect.FallbackWarning):
        found = qdialect.compile(content, cache=False)(values)
    assert_same([np.asarray(found)], of_onnx_runtime(content, values))


def _ending(b: ModelBuilder, total: str, how: str) -> tuple[str, Quantization, list[str]]:
    """What follows the sum before it is quantized, by which parameters, and more outputs."""
    scale = 0.0457973
    if how.endswith("Clip"):
        low, to = (-1.0, (scale, 90)) if how == "narrow Clip" else (0.0, (6 / 255, 0))
        return b.node("Clip", total, b.constant(low), b.constant(6.0)), to, []
    if how in ("alone", "read twice"):
        return total, (scale, 90), [b.node("Sin", total)] if how == "read twice" else []
    for kind in how.removesuffix(" above the least").split(" and "):
        total = b.node(kind, total, *([ints(b, 65536)] if kind == "Reshape" else []))
    return total, (scale, 9 if "above" in how else 0), []


ENDINGS = [
    *("alone", "read twice", "Relu", "Relu above the least", "Clip", "narrow Clip"),
    *("Reshape", "Transpose", "Flatten", "Relu and Reshape", "Reshape and Relu"),
]
SCALES = [(0.05353185, 0.03582951), (0.016503099, 0.0112573), (0.0697043, 0.0252047)]


@variants_together
@pytest.mark.parametrize("kind", ["Add", "Mul"])
@pytest.mark.parametrize("how", ENDINGS)
def test_the_node_behind_a_group_decides(kind: str, how: str) -> None:
    scales = SCALES[(ENDINGS.index(how) + (kind == "Mul")) % 3]
    by = [(scales[0], 113), (scales[1], 169)]
    b = ModelBuilder()
    values = [b.dequantize(b.quantize(b.input(name, (256, 256)), to), to) for name, to in zip("xy", by, strict=True)]
    total, to, more = _ending(b, b.node(kind, *values), how)
    content = b.finish(b.dequantize(b.quantize(total, to), to), *more, dtype=np.float32)
    inputs = on_grid([(scale, point - 128) for scale, point in by])
    agreed(content, *inputs, count=1)


@variants_together
@pytest.mark.parametrize("element", [np.uint8, np.int8])
@pytest.mark.parametrize("shared", ["", "input", "sum", "result", "input result"])
@pytest.mark.parametrize(
    ("kind", "attributes", "operation"),
    [
        ("Softmax", {}, "qnn.softmax"),
        ("AveragePool", {"kernel_shape": [3, 2]}, "qnn.f32_conv2d"),
        ("GlobalAveragePool", {}, "qnn.mean"),
    ],
)
def test_functions_of_one_tensor_follow_the_same_rule(
    kind: str, attributes: dict[str, Any], operation: str, shared: str, element: Any
) -> None:
    b, by = ModelBuilder(), (1 / 200, int(np.iinfo(element).min))
    names = {"input": b.dequantize(b.quantize(b.input("x", (2, 3, 6, 6)), by, element), by, element)}
    names["sum"] = b.node(kind, names["input"], **attributes)
    names["result"] = b.dequantize(b.quantize(names["sum"], by, element), by, element)
    more = [b.node("Sin", names[name]) for name in shared.split()]
    content = b.finish(names["result"], *more, dtype=np.float32)
    # Where all tensors stay i8 they are of one type again.
    is_float = shared == "sum" or (shared in ("input", "result") and element is np.int8)
    assert (operation in str(import_onnx(content))) != is_float
    agreed(content, np.random.default_rng(0).uniform(0, 1.27, (2, 3, 6, 6)).astype(np.float32), count=1)


@variants_together
@pytest.mark.parametrize("shared", ["", "input", "input result"])
@pytest.mark.parametrize("element", [np.uint8, np.int8])
@pytest.mark.parametrize("scales", [(0.0029610069, 0.0029610069), (0.0093052704, 0.0046526352)])
def test_means_halfway_between_quantized_values(scales: tuple[float, float], element: Any, shared: str) -> None:
    """The zero point is added before the mean is rounded, and that of ui8 rounds other ties than that of i8."""
    b, offset = ModelBuilder(), -int(np.iinfo(element).min)
    before, after = ((scale, point - offset) for scale, point in zip(scales, (122, 134), strict=True))
    names = {"input": b.dequantize(b.quantize(b.input("x", (1, 16, 64, 64)), before, element), before, element)}
    pooled = b.node("AveragePool", names["input"], kernel_shape=[2, 2], strides=[2, 2])
    names["result"] = b.dequantize(b.quantize(pooled, after, element), after, element)
    content = b.finish(names["result"], *(b.node("Sin", names[name]) for name in shared.split()), dtype=np.float32)
    grid = np.random.default_rng(2).integers(-128, 128, (1, 16, 64, 64))
    agreed(content, (grid * np.float64(scales[0])).astype(np.float32), count=1)


def ints(b: ModelBuilder, *values: int) -> str:
    return b.constant(np.array(values, np.int64))


def part(b: ModelBuilder, value: str) -> str:
    b.node_of_many("Split", [value, ints(b, 4, 4)], ["part", "rest"], axis=1)
    return "part"


BEFORE: dict[str, Callable[[ModelBuilder, str], str]] = {
    "Split": part,
    "Gather": lambda b, x: b.node("Gather", x, ints(b, 3, 2, 1, 0), axis=1),
    "Concat": lambda b, x: b.node("Concat", x, x, axis=1),
    "Tile": lambda b, x: b.node("Tile", x, ints(b, 1, 2, 1, 1)),
    "Slice": lambda b, x: b.node("Slice", x, ints(b, 0), ints(b, 4), ints(b, 1)),
    "Pad": lambda b, x: b.node("Pad", x, ints(b, 0, 0, 1, 0, 0, 0, 1, 0)),
    "Pad of channels": lambda b, x: b.node("Pad", x, ints(b, 0, 1, 0, 0, 0, 0, 0, 0)),
    "MaxPool": lambda b, x: b.node("MaxPool", x, kernel_shape=[2, 2]),
}
GROUPS: dict[str, Callable[[ModelBuilder, str], str]] = {
    "Add": lambda b, x: b.node("Add", x, b.weight(np.array(77, np.uint8), 0.03, 0, 3)),
    "Softmax": lambda b, x: b.node("Softmax", x, axis=1),
    "AveragePool": lambda b, x: b.node("AveragePool", x, kernel_shape=[2, 2]),
}


@variants_together
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("before", BEFORE)
def test_a_group_begins_where_a_dequantization_is_moved_to(before: str, group: str) -> None:
    b = ModelBuilder()
    data = b.dequantize(b.input("x", (1, 8, 4, 4), np.uint8), (0.05, 3))
    result = GROUPS[group](b, BEFORE[before](b, data))
    agreed(b.finish(b.quantize(result, (0.004 if group == "Softmax" else 0.013, 3))), drawn((1, 8, 4, 4), np.uint8))


@variants_together
@pytest.mark.parametrize(("dtype", "point"), [(np.uint8, 0), (np.uint8, 30), (np.int8, 9), (np.int8, -5)])
@pytest.mark.parametrize("count", [1, 8, 60])
@pytest.mark.parametrize("scale", [1 / 255, 0.001, 0.0003])
def test_shares_beyond_the_largest_float(scale: float, count: int, dtype: Any, point: int) -> None:
    """The kernel of ONNX Runtime multiplies before it divides; an infinite product becomes -2^31."""
    b = ModelBuilder()
    data = b.dequantize(b.input("x", (3, count), dtype), (0.05, 0), dtype)
    agreed(b.finish(b.quantize(b.node("Softmax", data), (scale, point), dtype), dtype=dtype), drawn((3, count), dtype))


@variants_together
@pytest.mark.parametrize("kind", ["Softmax", "Sigmoid", "LeakyRelu"])
@pytest.mark.parametrize("count", [1, 8])
def test_a_dequantization_of_a_result_that_nobody_reads(kind: str, count: int) -> None:
    """The result stays i8 then, where the input becomes ui8: the group is computed in float32."""
    b, scale = ModelBuilder(), (0.05, -20)
    data = b.dequantize(b.quantize(b.input("x", (3, count)), scale, np.int8), scale, np.int8)
    result = b.quantize(b.node(kind, data), (1 / 255, -128), np.int8)
    b.dequantize(result, (1 / 255, -128), np.int8)
    x = np.random.default_rng(count).normal(size=(3, count)).astype(np.float32)
    agreed(b.finish(result, dtype=np.int8), x)


# Two quantizations in a row, which ONNX Runtime joins.

NO_OPS: dict[str, Callable[[ModelBuilder, str], str]] = {
    "nothing": lambda b, x: x,
    "Identity": lambda b, x: b.node("Identity", b.node("Identity", x)),
    "Dropout": lambda b, x: b.node("Dropout", x),
    "Cast": lambda b, x: b.node("Cast", x, to=onnx.TensorProto.FLOAT),
    "Expand": lambda b, x: b.node("Expand", x, ints(b, 2, 500)),
    "Expand to more": lambda b, x: b.node("Expand", x, ints(b, 3, 1, 1)),
    "Slice": lambda b, x: b.node("Slice", x, ints(b, 0), ints(b, 2**63 - 1)),
    "Slice to the extent": lambda b, x: b.node("Slice", x, ints(b, 0), ints(b, 500), ints(b, 1)),
    "Add": lambda b, x: b.node("Add", b.constant(0.0), x),
    "Div": lambda b, x: b.node("Div", x, b.constant(1.0)),
    "Sub from 0": lambda b, x: b.node("Sub", b.constant(0.0), x),
    "Mul by many": lambda b, x: b.node("Mul", x, b.constant(np.ones(500, np.float32))),
    "Reshape": lambda b, x: b.node("Reshape", x, ints(b, 2, 500)),
    "Relu": lambda b, x: b.node("Relu", x),
}


@variants_together
@pytest.mark.parametrize("between", NO_OPS)
@pytest.mark.parametrize("element", [np.uint8, np.int8, np.uint16, np.int16])
def test_two_quantizations_in_a_row_are_one(between: str, element: Any) -> None:
    """Of the range that both have, unless something is computed between."""
    b, least, step = ModelBuilder(), int(np.iinfo(element).min), 2.0 ** (8 - 8 * np.dtype(element).itemsize)
    first, second = (0.1 * step, least + 3), (0.07 * step, least + 50)
    once = b.dequantize(b.quantize(b.input("x", (2, 500)), first, element), first, element)
    twice = b.dequantize(b.quantize(NO_OPS[between](b, once), second, element), second, element)
    agreed(
        b.finish(b.node("Mul", twice, twice), dtype=np.float32, version=21),
        np.linspace(-5, 30, 1000, dtype=np.float32).reshape(2, 500),
    )


@variants_together
@pytest.mark.parametrize("scales", [(0.1, 0.1, 0.05), (0.1, 0.12, 0.11), (0.1, 0.1 + 1e-6, 0.1)])
@pytest.mark.parametrize("shared", ["", "1", "2", "5", "12"])
@pytest.mark.parametrize("is_output", [False, True])
def test_what_else_reads_a_quantization_keeps_it(scales: Sequence[float], shared: str, is_output: bool) -> None:
    """By the place of the tensor behind the input: what is quantized has even places, what is dequantized odd ones."""
    b, names = ModelBuilder(), list[str]()
    value = b.input("x", (1000,))
    for scale in scales:
        names.append(b.quantize(value, (scale, 7)))
        value = b.dequantize(names[-1], (scale, 7))
        names.append(value)
    more = [b.node("Abs", b.node("Cast", names[int(place)], to=onnx.TensorProto.FLOAT)) for place in shared]
    more += [b.node("Identity", names[3])] if is_output else []
    agreed(b.finish(b.node("Neg", value), *more, dtype=np.float32), np.linspace(-5, 30, 1000, dtype=np.float32))


@pytest.mark.parametrize("is_shared", [False, True])
def test_readers_behind_a_second_quantization_are_those_of_the_first(is_shared: bool) -> None:
    """A tensor of i8 with several readers does not become ui8: Softmax is computed in float32 then."""
    b, before, after = ModelBuilder(), (0.03, 2), (0.0033284489, -128)
    data = b.dequantize(b.quantize(b.input("x", (1, 3, 40, 3)), before, np.int8), before, np.int8)
    shares = b.dequantize(b.quantize(b.node("Softmax", data, axis=-1), after, np.int8), after, np.int8)
    again = b.dequantize(b.quantize(b.node("Expand", shares, ints(b, 3, 40, 3)), after, np.int8), after, np.int8)
    readers = [b.node(kind, again) for kind in ("Neg", "Abs")[: 1 + is_shared]]
    values = np.random.default_rng(0).normal(size=(1, 3, 40, 3)).astype(np.float32)
    agreed(b.finish(*readers, dtype=np.float32), values)


# Forms in which one network may be written.


def convolution(version: int = 17, weight_scale: float = 0.01) -> bytes:
    """A convolution in QDQ form."""
    model = ModelBuilder()
    data = model.dequantize(model.quantize(model.input("x", (1, 3, 6, 6)), (0.02, 3)), (0.02, 3))
    sums = model.node("Conv", data, model.weight(drawn((4, 3, 3, 3), np.int8), weight_scale))
    return model.finish(model.quantize(model.node("Relu", sums), (0.1, 9)), version=version)


def result_of(content: bytes) -> Array:
    x = np.random.default_rng(0).normal(size=(1, 3, 6, 6)).astype(np.float32)
    return interpreter.run(import_onnx(content), [x])[0]


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
