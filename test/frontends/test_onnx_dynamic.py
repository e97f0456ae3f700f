"""Quantization whose parameters are found at run time, as ONNX Runtime computes it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from compiled_ops import check_compiled, tensor, variants_together
from drawn_graphs import graph, op_names
from onnx import numpy_helper
from onnx_graphs import (
    Array,
    Known,
    ModelBuilder,
    Operand,
    assert_same,
    convolved,
    drawn,
    drawn_weights,
    found_by,
    node,
    of_onnx_runtime,
    of_reference,
    refused,
)

from qdialect.dialect import DynamicConv2DOp, DynamicDenseOp, build
from qdialect.dialect.constants import constant
from qdialect.frontends.onnx import import_onnx
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import CompileError
from qdialect.targets import resolve


def quantized(x: Array) -> tuple[Array, np.float32, int]:
    """Quantized values, scale and zero point by the formulas of the operator, in float32."""
    low, high = min(np.float32(x.min()), np.float32(0)), max(np.float32(x.max()), np.float32(0))
    scale = (high - low) / np.float32(255) if high != low else np.float32(1)
    point = int(np.rint(np.clip(np.float32(0) - low / scale, 0, 255)))
    return np.clip(np.rint(x / scale) + point, 0, 255).astype(np.uint8), scale, point


def run(content: bytes, *inputs: Array) -> tuple[Array, ...]:
    """Results of the reference, which those of compiled code and of ONNX Runtime equal."""
    wanted = found_by(content, *inputs)
    for is_optimized in (False, True):
        assert_same(wanted, of_onnx_runtime(content, *inputs, is_optimized=is_optimized))
    return wanted


DATA = {
    "both signs": np.random.default_rng(0).normal(size=(5, 19)),
    "positive": np.random.default_rng(0).uniform(1, 3, (5, 19)),
    "negative": -np.random.default_rng(0).uniform(1, 3, (5, 19)),
    "zero": np.zeros((5, 19)),
    "tiny": np.random.default_rng(0).normal(size=(5, 19)) * 1e-30,
}


def _with(number: float, index: int) -> Array:
    data = np.random.default_rng(0).normal(size=(5, 19)).astype(np.float32)
    data.flat[index] = number
    return data


def test_ranges_without_a_number_or_an_end() -> None:
    """A NaN is not in the range and becomes 0; an infinite scale leaves 0, and a zero point."""
    model = ModelBuilder()
    model.node_of_many("DynamicQuantizeLinear", [model.input("x", (5, 19))], ["quantized", "scale", "point"])
    parts = [model.node("Cast", one, to=1) for one in ("quantized", "point")]
    content = model.finish(*parts, "scale", dtype=np.float32)
    module = import_onnx(content)
    cases = [_with(number, index) for number in (np.nan, np.inf, -np.inf) for index in (0, 47, 94)]
    for x in cases:
        assert_same(interpreter.run(module, [x]), of_onnx_runtime(content, x))
    check_compiled(module, "host", [[x] for x in cases], [interpreter.run(module, [x]) for x in cases])


@variants_together
@pytest.mark.parametrize("name", DATA)
def test_parameters_come_from_the_data(name: str) -> None:
    model, x = ModelBuilder(), DATA[name].astype(np.float32)
    outputs = ["quantized", "scale", "point"]
    model.node_of_many("DynamicQuantizeLinear", [model.input("x", x.shape)], outputs)
    total = model.node("Mul", model.node("Cast", "quantized", to=1), "scale")
    content = model.finish(total, "scale", model.node("Cast", "point", to=1), dtype=np.float32)
    found = run(content, x)
    values, scale, point = quantized(x)
    np.testing.assert_array_equal(found[0], values.astype(np.float32) * scale)
    assert found[1:] == (scale, np.float32(point))


def names_of(content: bytes) -> list[str]:
    """The ops of the imported and fused module."""
    module = import_onnx(content)
    FuseQnnPass().run(module)
    return op_names(module)


def assert_as_onnx_says(content: bytes, *inputs: Array) -> None:
    """All targets equal the specification's own evaluator, bit for bit."""
    assert_same(run(content, *inputs), of_reference(content, *inputs))


class DynamicChain:
    """DynamicQuantizeLinear, an integer product, its scale and a bias, as `quantize_dynamic` writes them."""

    def __init__(self, kind: str, shape: tuple[int, ...], weight: Array, per_channel: bool, **attributes: Any) -> None:
        activated: bool = attributes.pop("activated", False)
        rng, model = np.random.default_rng(7), ModelBuilder()
        channels = weight.shape[0] if kind == "ConvInteger" else weight.shape[-1]
        spread = (1, channels, *[1] * (len(shape) - 2)) if kind == "ConvInteger" else (channels,)
        points = rng.integers(1, 9, channels if per_channel and kind != "ConvInteger" else ()).astype(weight.dtype)
        scales = rng.uniform(0.01, 0.02, spread if per_channel else ()).astype(np.float32)
        model.node_of_many("DynamicQuantizeLinear", [model.input("x", shape)], ["quantized", "scale", "point"])
        operands = ["quantized", model.constant(weight), "point", model.constant(np.asarray(points))]
        sums = model.node(kind, *operands, **attributes)
        factor = model.node("Mul", "scale", model.constant(np.asarray(scales)))
        f32 = model.node("Mul", model.node("Cast", sums, to=1), factor)
        bias = model.constant(rng.normal(size=spread).astype(np.float32))
        added = model.node("Add", f32, bias)
        self.plain = model.finish(added, dtype=np.float32)
        self.content = model.finish(model.node("Relu", added), dtype=np.float32) if activated else self.plain
        self.data = rng.normal(size=shape).astype(np.float32)


@variants_together
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("shape", [(5, 19), (2, 3, 64)])
def test_a_matrix_product_is_one_op(shape: tuple[int, ...], dtype: type, per_channel: bool) -> None:
    chain = DynamicChain("MatMulInteger", shape, drawn_weights((shape[-1], 10), dtype), per_channel)
    assert_as_onnx_says(chain.content, chain.data)
    names = names_of(chain.content)
    assert names.count("qnn.dynamic_dense") == 1
    assert "arith.mulf" not in names


@variants_together
@pytest.mark.parametrize(
    ("shape", "weight", "attributes"),
    [
        ((1, 3, 9, 9), (8, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((2, 8, 9, 7), (16, 8, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 2]}),
        ((1, 8, 9, 7), (8, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 8}),
        ((1, 16, 5, 5), (24, 16, 1, 1), {}),
    ],
)
def test_a_convolution_is_one_op(shape: tuple[int, ...], weight: tuple[int, ...], attributes: dict[str, Any]) -> None:
    chain = DynamicChain("ConvInteger", shape, drawn(weight, np.uint8), False, **attributes)
    values, scale, point = quantized(chain.data)
    (found,) = run(chain.content, chain.data)
    weights, factor, bias = parameters_of(chain.content, scale)
    sums = convolved(values.astype(np.int32) - point, weights, attributes)
    np.testing.assert_array_equal(found, sums.astype(np.float32) * factor + bias)
    names = names_of(chain.content)
    assert names.count("qnn.dynamic_conv2d") == 1
    assert "arith.mulf" not in names


@variants_together
@pytest.mark.parametrize(
    ("kind", "op", "shape", "weight"),
    [
        ("MatMulInteger", "qnn.dynamic_dense", (5, 19), (19, 10)),
        ("ConvInteger", "qnn.dynamic_conv2d", (1, 8, 6, 5), (16, 8, 3, 3)),
    ],
)
def test_an_activation_is_part_of_the_product(
    kind: str, op: str, shape: tuple[int, ...], weight: tuple[int, ...]
) -> None:
    chain = DynamicChain(kind, shape, drawn_weights(weight, np.int8), False, activated=True)
    (found,) = run(chain.content, chain.data)
    assert found.min() == 0 < found.max()
    assert names_of(chain.content) == names_of(chain.plain)
    assert names_of(chain.content).count(op) == 1


def parameters_of(content: bytes, scale: np.float32) -> tuple[Array, np.float32, Array]:
    """The weights less their zero point, the factor and the bias of a chain with a convolution."""
    arrays = [numpy_helper.to_array(one) for one in onnx.load_from_string(content).graph.initializer]
    weight, point, factor, bias = arrays
    return weight.astype(np.int32) - int(point), scale * np.float32(factor), bias


@pytest.mark.parametrize("columns", [(), (5,)])
@pytest.mark.parametrize("leading", [(), (2, 3)])
def test_both_operands_and_zero_points_at_run_time(leading: tuple[int, ...], columns: tuple[int, ...]) -> None:
    model = ModelBuilder()
    shapes = ((*leading, 4, 6), (*leading, 6, 5), (), columns)
    names = [model.input(name, shape, np.uint8) for name, shape in zip("abcd", shapes, strict=True)]
    content = model.finish(model.node("MatMulInteger", *names), dtype=np.int32)
    rng = np.random.default_rng(2)
    inputs = [np.asarray(rng.integers(0, 256, shape), np.uint8) for shape in shapes]
    # ONNX Runtime takes zero points of columns of matrices alone.
    (found,) = (found_by if leading and columns else run)(content, *inputs)
    left, right = inputs[0].astype(np.int32) - inputs[2], inputs[1].astype(np.int32) - inputs[3]
    np.testing.assert_array_equal(found, left @ right)


@variants_together
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_operators_with_a_float_result(bias: bool, per_column: bool) -> None:
    rng = np.random.default_rng(4)
    weight, columns = drawn_weights((20, 9), np.int8), (9,) if per_column else ()
    scales = np.asarray(rng.uniform(0.01, 0.02, columns), np.float32)
    points = np.asarray(rng.integers(-9, 9, columns), np.int8)
    addend = rng.normal(size=9).astype(np.float32)
    x = rng.normal(size=(4, 20)).astype(np.float32)
    values, scale, point = quantized(x)
    sums = (values.astype(np.int32) - point) @ (weight.astype(np.int32) - points)
    wanted = sums.astype(np.float32) * (scale * scales) + (addend if bias else np.float32(0))
    held: list[Operand] = [Known(one) for one in (weight, scales, points, addend)]
    content, _ = node("com.microsoft.DynamicQuantizeMatMul", [x, *held[: 4 if bias else 3]])
    np.testing.assert_array_equal(run(content, x)[0], wanted)
    assert names_of(content).count("qnn.dynamic_dense") == 1
    operands = [
        values,
        held[0],
        np.array(scale),
        held[1],
        np.array(point, np.uint8),
        held[2],
        *held[3 if bias else 4 :],
    ]
    content, given = node("com.microsoft.MatMulIntegerToFloat", operands)
    np.testing.assert_array_equal(run(content, *given)[0], wanted)
    assert names_of(content).count("qnn.dynamic_dense") == 1


U8 = np.uint8
UNREADABLE: list[tuple[str, Sequence[Operand], str]] = [
    ("MatMulInteger", [np.zeros((4, 4), U8)] * 2 + [np.array(0, np.int8)], "zero point must be ui8, but got i8"),
    ("MatMulInteger", [np.zeros((4, 4), U8)] * 2 + [np.zeros(4, U8)], "zero point must have 1 entry, but got [4]"),
    (
        "MatMulInteger",
        [np.zeros((2, 4, 5), U8), np.zeros((3, 5, 4), U8), np.array(0, U8)],
        "operand shapes must broadcast, but got [2] and [3]",
    ),
    (
        "com.microsoft.DynamicQuantizeMatMul",
        [(4, 4), Known(drawn((4, 4), np.int8)), Known((3,))],
        "scale of the matrix must have 1 or 4 entries, but got [3]",
    ),
]


@pytest.mark.parametrize(("kind", "operands", "message"), UNREADABLE)
def test_operands_that_no_product_can_read_are_named(kind: str, operands: Sequence[Operand], message: str) -> None:
    assert message in refused(node(kind, operands)[0])


# Products in the forms of some instructions: `test/fuzz` draws all others.

Shape = tuple[int, ...]


def product(
    data: Shape, weight: Shape, rows: Shape = (), element: str = "i8", bias: float = 0.5, **how: Any
) -> tuple[ir.Module, list[Array]]:
    """A module whose data have parameters that are known at run time, and its inputs."""
    rng, op = np.random.default_rng(5), DynamicDenseOp if len(weight) == 2 else DynamicConv2DOp
    held, biases = rng.integers(-128, 128, weight).astype(np.int8), np.full(weight[0], bias, np.float32)
    how |= {"weight_scales": tuple(rng.uniform(0.001, 0.1, weight[0]).tolist())}

    def body(x: ir.Value, scale: ir.Value, point: ir.Value) -> ir.Value:
        operands = x, constant(held), scale, point, constant(biases)
        return build(op, *operands, element="f32", **how).operation.results[0]

    module = graph([tensor(data, element), tensor(rows, "f32"), tensor(rows, element)], body)
    integers: list[Array] = [rng.integers(0, 256, shape).astype(np.uint8) for shape in (data, rows)]
    values, points = (one if element == "ui8" else one.view(np.int8) for one in integers)
    return module, [values, np.asarray(rng.uniform(0.001, 0.1, rows), np.float32), points]


@pytest.mark.parametrize("weight_points", [False, True])
@pytest.mark.parametrize(
    ("data", "rows"), [((37, 64), ()), ((37, 68), (37, 1)), ((2, 5, 17, 64), (2, 5, 17, 1)), ((1, 49, 72), (1, 49, 1))]
)
def test_matrix_tiles_have_parameters_by_row(data: Shape, rows: Shape, weight_points: bool) -> None:
    points = tuple(range(-20, 20)) if weight_points else (0,)
    module, inputs = product(data, (40, data[-1]), rows, weight_zero_points=points)
    assert 'tdpbusd"' in str(lower(module, resolve("amxint8"), Phase.X86).module)
    check_threads(module, inputs, "amxint8,portable")


def test_a_convolution_in_matrix_tiles_has_run_time_parameters() -> None:
    module, inputs = product((2, 9, 21, 64), (40, 3, 3, 64), element="ui8", strides=(1, 2))
    assert 'tdpbusd"' in str(lower(module, resolve("amxint8"), Phase.X86).module)
    check_threads(module, inputs, "amxint8,portable", 1)


@pytest.mark.parametrize("weight_points", [False, True])
@pytest.mark.parametrize(("data", "rows"), [((37, 68), ()), ((2, 5, 7, 131), (2, 5, 7, 1))])
def test_words_have_parameters_by_row(data: Shape, rows: Shape, weight_points: bool) -> None:
    points = tuple(range(-35, 35)) if weight_points else (0,)
    module, inputs = product(data, (70, data[-1]), rows, weight_zero_points=points)
    assert 'qnn.label = "words"' in str(lower(module, resolve("avx2"), Phase.LINALG).module)
    check_threads(module, inputs, "avx2,portable")


def check_threads(module: ir.Module, inputs: Sequence[Array], target: str, most: int = 2) -> None:
    """Alone and divided among threads, compiled code gives what the reference gives."""
    (wanted,) = interpreter.run(module, inputs)
    for threads in range(1, most + 1):
        np.testing.assert_array_equal(compile_module(module, target=target, threads=threads)(*inputs), wanted)


def test_an_infinite_bias_is_refused() -> None:
    with pytest.raises(CompileError, match="bias must be finite to be compiled"):
        compile_module(product((2, 4), (3, 4), bias=np.inf)[0])
