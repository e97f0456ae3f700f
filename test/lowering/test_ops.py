"""Compiled arithmetic, reductions, booleans and classes of linalg equal the reference."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from compiled_ops import (
    EIGHT_BIT,
    INTEGERS,
    TABLE,
    Attributes,
    check,
    check_op,
    check_variants,
    ends,
    quantization,
    softmax,
    tensor,
    variants_together,
    window,
)
from drawn_graphs import graph
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect import targets
from qdialect.arithmetic import Division, FloatRounding, NanPolicy, Rounding, Scaling
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import lower
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import CompileError

SHAPES = [(), (1,), (7,), (70,), (3, 5), (2, 3, 66), (2, 5, 7, 19), (1, 2, 2, 64)]


@variants_together
@pytest.mark.parametrize("number", range(len(SHAPES)))
@pytest.mark.parametrize("source", EIGHT_BIT)
def test_tables(number: int, source: str) -> None:
    shape, result = SHAPES[number], EIGHT_BIT[number % 2]
    check_op(qnn.LutOp, [tensor(shape, source)], result, table=TABLE, **quantization(source, result))


@variants_together
@pytest.mark.parametrize("op", qnn.UNARY_OPS)
def test_every_unary_op_is_a_table(op: Any) -> None:
    quantized = np.arange(-128, 128, dtype=np.int8)
    check_op(op, [tensor((256,), "i8")], "ui8", [quantized], **quantization("i8", "ui8"))


@variants_together
@pytest.mark.parametrize("element", INTEGERS)
def test_clip(element: str) -> None:
    low, high = ends(element)
    check_op(qnn.ClipOp, [tensor((3, 19), element)], element, min=low // 2 + 3, max=high - 5)


CHANNELS = [((2, 3, 5, 19), 3), ((2, 3, 5, 19), 1), ((7, 70), 1), ((5,), 0), ((), 0), ((3, 4, 5), 0)]


@variants_together
@pytest.mark.parametrize("rounding", Rounding)
@pytest.mark.parametrize("result", INTEGERS)
def test_requantize(result: str, rounding: Rounding) -> None:
    number = INTEGERS.index(result) * 8 + list(Rounding).index(rounding)
    source = INTEGERS[number % len(INTEGERS)]
    shape, axis = CHANNELS[number % len(CHANNELS)]
    channels = shape[axis] if shape and number % 2 else 1
    input_scale = {"i16": 0.001, "ui16": 0.001, "i32": 2e-6}.get(source, 0.05)
    check_op(
        qnn.RequantizeOp,
        [tensor(shape, source)],
        result,
        input_scale=input_scale,
        weight_scales=list(np.linspace(0.2, 1, channels)),
        input_zero_points=[ends(source)[number % 2]],
        output_scale={"i16": 0.0004, "ui16": 0.0004, "i32": 1e-7}.get(result, 0.03),
        output_zero_point=ends(result)[number // 2 % 2],
        axis=axis,
        rounding=rounding,
    )


@variants_together
@pytest.mark.parametrize("source", ["ui8", "i32"])
def test_each_channel_has_its_own_zero_point(source: str) -> None:
    low, high = ends(source)
    points = [low, high, 0, 1, high - 1]
    attributes: Attributes = {
        "input_scale": 1e-8,
        "output_scale": 0.1,
        "output_zero_point": 3,
        "rounding": Rounding.FIXED64_UP,
    }
    check_op(qnn.RequantizeOp, [tensor((9, 5), source)], "ui8", input_zero_points=points, axis=1, **attributes)


@variants_together
@pytest.mark.parametrize(
    ("rounding", "scale"), [(Rounding.F32_UP_ZP_FIRST, 0.499999), (Rounding.F32_NEAREST_ZP_FIRST, 0.500001)]
)
def test_a_zero_point_before_rounding_is_that_of_the_values(rounding: Rounding, scale: float) -> None:
    # Either scale less 128 is -127.5 in float32; plus 0, the zero point of stored quantized values, it is what it was.
    output: Attributes = {"output_scale": 1.0, "output_zero_point": -128, "rounding": rounding}
    data = np.array([0, 1, 3], dtype=np.int32)
    check_op(qnn.RequantizeOp, [tensor((3,), "i32")], "i8", [data], input_scale=scale, **output)


@variants_together
@pytest.mark.parametrize("rounding", [rounding for rounding in Rounding if rounding.is_fixed])
def test_every_16_bit_value_is_requantized_near_its_ties(rounding: Rounding) -> None:
    quantized = np.arange(-(2**15), 2**15).astype(np.int16)
    output: Attributes = {"output_scale": 1.0, "output_zero_point": 0, "rounding": rounding}
    variants = [{"input_scale": scale, **output} for scale in (3 / 32, 5 / 64, 0.4999, 0.5, 1.5)]
    for element, data in (("i16", quantized), ("ui16", quantized.view(np.uint16))):
        check_variants(qnn.RequantizeOp, [tensor((2**16,), element)], "i32", variants, [data])


WINDOWS = [
    ((1, 7, 7, 40), (7, 7), (1, 1), (0, 0, 0, 0)),
    ((2, 9, 11, 19), (3, 3), (1, 1), (1, 1, 1, 1)),
    ((1, 8, 7, 3), (2, 3), (2, 1), (0, 2, 1, 1)),
    ((1, 5, 5, 67), (1, 1), (2, 2), (0, 0, 0, 0)),
]


@variants_together
@pytest.mark.parametrize("case", WINDOWS)
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_max_pool2d(case: tuple[Any, ...], element: str) -> None:
    check_op(qnn.MaxPool2DOp, [tensor(case[0], element)], element, **window(case, element))


@variants_together
@pytest.mark.parametrize("case", WINDOWS)
@pytest.mark.parametrize("element", EIGHT_BIT)
@pytest.mark.parametrize("division", Division)
def test_avg_pool2d(case: tuple[Any, ...], element: str, division: Division) -> None:
    with_padding = (element == "ui8") != (division is Division.TRUNCATE)
    attributes: Attributes = {"division": division, "count_include_pad": with_padding, "zero_point": 7}
    check_op(qnn.AvgPool2DOp, [tensor(case[0], element)], element, **window(case, element), **attributes)


@variants_together
@pytest.mark.parametrize("extent", [250, 300])
@pytest.mark.parametrize(("element", "code", "beyond"), [("ui8", 254, 255), ("i8", -127, -128)])
def test_the_mean_of_many_values_is_exact_at_a_tie(extent: int, element: str, code: int, beyond: int) -> None:
    size = extent * extent
    images = np.full((2, size), code, dtype=NUMPY_DTYPES[element])
    # One code short of the tie, and the tie.
    images[0, : size // 2 - 1] = beyond
    images[1, : size // 2] = beyond
    low, high = ends(element)
    attributes: Attributes = {"kernel": (extent, extent), "output_min": low, "output_max": high, "zero_point": 0}
    shape = (2, extent, extent, 1)
    check_op(qnn.AvgPool2DOp, [tensor(shape, element)], element, [images.reshape(shape)], **attributes)


def test_pools_that_want_different_borders_of_one_image() -> None:
    case = ((1, 5, 6, 11), (3, 3), (1, 1), (1, 1, 1, 1))

    def body(x: ir.Value) -> list[ir.Value]:
        largest = qnn.build(qnn.MaxPool2DOp, x, element="i8", **window(case, "i8")).output
        included: Attributes = {"count_include_pad": True, "zero_point": 50}
        mean = qnn.build(qnn.AvgPool2DOp, x, element="i8", **window(case, "i8"), **included).output
        return [largest, mean]

    check(graph([tensor(case[0], "i8")], body))


AXES = [
    ((2, 7, 7, 67), (1, 2)),
    ((1, 3, 5, 19), (1, 2, 3)),
    ((3, 5, 70), (2,)),
    ((3, 5, 7), (0,)),
    ((3, 4, 5, 6), (0, 2)),
    ((2, 3, 4, 5), (0, 1, 2, 3)),
    ((130,), (0,)),
    ((9, 517), (1,)),
    ((3, 4, 6, 7), (1, 3)),
    ((1, 3, 5, 1), (2,)),
]


@variants_together
@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize("number", range(len(AXES)))
def test_mean(number: int, keep_dims: bool) -> None:
    shape, axes = AXES[number]
    source, result = EIGHT_BIT[number % 2], EIGHT_BIT[number // 2 % 2]
    rounding = list(Rounding)[number % len(Rounding)]
    attributes: Attributes = quantization(source, result) | {"axes": axes, "keep_dims": keep_dims, "rounding": rounding}
    check_op(qnn.MeanOp, [tensor(shape, source)], result, **attributes)


def test_a_mean_of_too_many_elements_is_refused() -> None:
    def body(x: ir.Value) -> ir.Value:
        attributes: Attributes = quantization("ui8", "ui8") | {"axes": (0,), "rounding": Rounding.FIXED64_UP}
        return qnn.build(qnn.MeanOp, x, element="ui8", **attributes).output

    with pytest.raises(CompileError, match="must reduce at most 8388608 elements to be compiled, but got 8388609"):
        lower(graph([tensor((2**23 + 1,), "ui8")], body), targets.GENERIC)


FEW_ROWS = [((1, 1001), 1), ((3, 12), 1), ((1, 2), 1), ((2, 5, 7, 19), 3), ((2, 5, 7, 19), 1), ((5, 67), 0), ((9,), 0)]
# So many that they are transposed.
ROWS = [*FEW_ROWS, ((64, 127), 1), ((3, 43, 17), 2), ((2, 97, 3), 2), ((150, 70), 1)]


@variants_together
@pytest.mark.parametrize("number", range(len(ROWS)))
def test_softmax(number: int) -> None:
    (shape, axis), element, scale = ROWS[number], EIGHT_BIT[number % 2], (0.0146, 0.14, 3.0)[number % 3]
    variants = [softmax(element, axis, arithmetic, scale) for arithmetic in ("tflite_fixed", "float", "ort_table")]
    check_variants(qnn.SoftmaxOp, [tensor(shape, element)], element, variants)


@variants_together
@pytest.mark.parametrize("classes", [101, 120])
def test_a_float_sum_runs_in_order(classes: int) -> None:
    # The boundary between two quantized values lies between the sum in order and the sum by parts.
    rng = np.random.default_rng(classes)
    tried = 0
    for _ in range(40):
        quantized = rng.integers(200, 256, (1, classes)).astype(np.uint8)
        quantized[0, 0] = 255
        terms = np.exp((quantized[0].astype(np.float32) - 255) * np.float32(0.02))
        ordered, parts = (np.add.accumulate(part)[-1] for part in (terms, terms[: classes // 2]))
        other = np.float32(parts + np.add.accumulate(terms[classes // 2 :])[-1])
        if ordered == other:
            continue
        tried += 1
        scale = float(np.float32(2 / (float(ordered) + float(other)) / 100.5))
        attributes: Attributes = softmax("ui8", 1, "float", 0.02) | {"output_scale": scale}
        check_op(qnn.SoftmaxOp, [tensor((1, classes), "ui8")], "ui8", [quantized], **attributes)
        if tried == 3:
            return
    pytest.fail("no sum depends on its order")


@variants_together
@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("rounding", FloatRounding)
@pytest.mark.parametrize("scaling", Scaling)
def test_quantize(element: str, rounding: FloatRounding, scaling: Scaling) -> None:
    special = [np.nan, np.inf, -np.inf, -0.0, 3.4e38, -3.4e38, 0.25, -0.75, 1e-30]
    values = np.array(special + list(np.arange(-40, 41) / 4), dtype=np.float32).reshape(-1, 3)
    low, high = ends(element)
    variants: list[Attributes] = []
    for axis in (0, 1):
        nan, channels = list(NanPolicy)[(axis + INTEGERS.index(element)) % len(NanPolicy)], values.shape[axis]
        attributes: Attributes = {"scales": list(np.linspace(0.5, 0.7, channels)), "axis": axis, "nan": nan}
        attributes |= {"zero_points": [low, high, 0] * (channels // 3), "rounding": rounding, "scaling": scaling}
        variants.append(attributes)
    check_variants(qnn.QuantizeOp, [tensor(values.shape, "f32")], element, variants, [values])


@variants_together
@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("case", CHANNELS)
def test_dequantize(element: str, case: tuple[tuple[int, ...], int]) -> None:
    shape, axis = case
    channels = shape[axis] if shape else 1
    points = [ends(element)[i % 2] for i in range(channels)]
    scales = list(np.linspace(0.1, 0.9, channels))
    check_op(qnn.DequantizeOp, [tensor(shape, element)], "f32", scales=scales, zero_points=points, axis=axis)


@pytest.mark.parametrize("op", [qnn.RequantizeOp, qnn.DequantizeOp])
def test_zero_points_beyond_32_bits_are_refused(op: Any) -> None:
    output: Attributes = {"output_scale": 1.0, "output_zero_point": 0, "rounding": Rounding.FIXED64_UP}
    requantize: Attributes = {"input_scale": 1.0, "input_zero_points": [2**31], **output}
    attributes: Attributes = requantize if op is qnn.RequantizeOp else {"scales": [1.0], "zero_points": [2**31]}

    def body(x: ir.Value) -> ir.Value:
        return qnn.build(op, x, element="i32" if op is qnn.RequantizeOp else "f32", **attributes).output

    with pytest.raises(CompileError, match="zero points must fit 32 bits to be compiled, but got 2147483648"):
        lower(graph([tensor((3,), "i32")], body), targets.GENERIC)


# Compiling does not import the named ops of linalg as Python functions, and leaves them to those who do.

PROGRAM = """
import sys
import qdialect
qdialect.compile(qdialect.parse('''
func.func @main(%x: tensor<1x64xi8>) -> tensor<1x64xi8> {
  %0 = "qnn.clip"(%x) {min = 0 : i64, max = 100 : i64} : (tensor<1x64xi8>) -> tensor<1x64xi8>
  return %0 : tensor<1x64xi8>
}'''), cache=False)
assert not [name for name in sys.modules if name.endswith(("dialects.linalg", "core_named_ops"))]
from importlib import import_module
linalg = import_module(qdialect.ir._mlir.ir.__name__.rpartition(".")[0] + ".dialects.linalg")
print(callable(linalg.matmul), linalg.FillOp.OPERATION_NAME)
"""


def test_compiling_imports_the_generated_classes_alone() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("True linalg.fill\n", "")


# Tensors of i1 at run time: taken and given as bytes of 0 and 1, computed on, moved and kept between kernels.

Array = NDArray[Any]
TARGETS = dict.fromkeys((targets.host().name, "generic"))


def check_booleans(text: str, inputs: Sequence[Array], wanted: Array) -> None:
    """Interpreted and compiled, `text` gives `wanted`."""
    module = parse(text)
    (found,) = interpreter.run(module, inputs)
    np.testing.assert_array_equal(found, wanted, strict=True)
    for name in TARGETS:
        np.testing.assert_array_equal(compile_module(module, target=name)(*inputs), wanted, strict=True)


def bits(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(np.bool_)


@pytest.mark.parametrize("shape", [(), (1,), (67,), (3, 5, 7), (2, 3, 5, 4)])
def test_logic_between_arrays(shape: tuple[int, ...]) -> None:
    type_ = f"tensor<{'x'.join([*map(str, shape), 'i1'])}>"
    text = f"""func.func @main(%a: {type_}, %b: {type_}) -> {type_} {{
      %0 = arith.andi %a, %b : {type_}
      %1 = arith.xori %0, %a : {type_}
      %2 = arith.ori %1, %b : {type_}
      return %2 : {type_}
    }}"""
    a, b = bits(*shape), bits(*shape, seed=1)
    check_booleans(text, [a, b], ((a & b) ^ a) | b)


def test_constants() -> None:
    text = """func.func @main(%x: tensor<5xi1>, %y: tensor<5xi64>) -> tensor<5xi64> {
      %c = "qnn.constant"() {value = dense<[true, false, true, true, false]> : tensor<5xi1>} : () -> tensor<5xi1>
      %s = "qnn.constant"() {value = dense<true> : tensor<5xi1>} : () -> tensor<5xi1>
      %0 = arith.xori %x, %s : tensor<5xi1>
      %1 = arith.andi %0, %c : tensor<5xi1>
      %2 = arith.extui %1 : tensor<5xi1> to tensor<5xi64>
      %3 = arith.addi %2, %y : tensor<5xi64>
      return %3 : tensor<5xi64>
    }"""
    x, y = bits(5), np.arange(5) - 2
    check_booleans(text, [x, y], (~x & [True, False, True, True, False]) + y)


def test_a_choice_by_an_argument_that_is_broadcast() -> None:
    text = """func.func @main(%c: tensor<3x1x1xi1>, %x: tensor<3x2x19xf32>) -> tensor<3x2x19xf32> {
      %0 = "qnn.broadcast"(%c) {shape = array<i64: 3, 2, 19>} : (tensor<3x1x1xi1>) -> tensor<3x2x19xi1>
      %z = arith.constant dense<-1.0> : tensor<3x2x19xf32>
      %1 = arith.select %0, %x, %z : tensor<3x2x19xi1>, tensor<3x2x19xf32>
      return %1 : tensor<3x2x19xf32>
    }"""
    c, x = np.array([True, False, True]).reshape(3, 1, 1), np.arange(114, dtype=np.float32).reshape(3, 2, 19)
    check_booleans(text, [c, x], np.where(c, x, np.float32(-1)))


def test_any_byte_but_zero_of_an_argument_is_true() -> None:
    text = """func.func @main(%x: tensor<4xi1>) -> tensor<4xi64> {
      %0 = arith.extui %x : tensor<4xi1> to tensor<4xi64>
      return %0 : tensor<4xi64>
    }"""
    given = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    for name in TARGETS:
        found = compile_module(parse(text), target=name)(given)
        np.testing.assert_array_equal(found, [0, 1, 1, 1])
