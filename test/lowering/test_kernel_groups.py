"""Kernels that are compiled a few at a time, and kernels that are divided."""

import re

import numpy as np
import pytest
from compiled_ops import WIDTHS, check_compiled
from onnx_graphs import ModelBuilder
from op_texts import Text, labels, numbers

import qdialect
from qdialect import targets
from qdialect.frontends.onnx import import_onnx
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.ir.functions import functions, has_body, name_of
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import Phase as PhaseAttention
from qdialect.lowering.pipeline.phases import lower, taken_groups
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.runtime.comparison import random_inputs
from qdialect.runtime.openmp import THREAD_LIMIT
from qdialect.targets import Target, host, resolve

MANY, FEW = 67, 9


def clips(count: int) -> ir.Module:
    """A network of as many kernels, each for another shape."""
    shapes = [f"tensor<1x{17 + index}xi8>" for index in range(count)]
    arguments = ", ".join(f"%x{i}: {shape}" for i, shape in enumerate(shapes))
    bodies = [
        f'%{i} = "qnn.clip"(%x{i}) {{min = {-i - 2} : i64, max = {i + 3} : i64}} : ({shape}) -> {shape}'
        for i, shape in enumerate(shapes)
    ]
    values, types = ", ".join(f"%{i}" for i in range(count)), ", ".join(shapes)
    lines = [f"func.func @main({arguments}) -> ({types}) {{", *bodies, f"return {values} : {types}", "}"]
    return ir.Module.parse("\n".join(lines), make_context())


@pytest.mark.parametrize("target", [host(), resolve("generic")], ids=lambda target: target.name)
@pytest.mark.parametrize("count", [FEW, MANY])
def test_results_do_not_depend_on_groups(count: int, target: Target) -> None:
    images = [np.arange(17 + index, dtype=np.int8).reshape(1, -1) - 20 for index in range(count)]
    executable = compile_module(clips(count), target=target)
    for index, (image, found) in enumerate(zip(images, executable.results(images), strict=True)):
        np.testing.assert_array_equal(found, image.clip(-index - 2, index + 3))


def test_kernels_that_need_another_function_stay() -> None:
    text = "\n".join(f"func.func private @kernel_{i}() {{\n return\n}}" for i in range(MANY))
    caller = "func.func private @caller() {\n func.call @kernel_0() : () -> ()\n return\n}"
    main = "func.func @main() {\n func.call @caller() : () -> ()\n return\n}"
    attributes = 'module attributes {qnn.phase = "vector", qnn.target = "generic"}'
    module = ir.Module.parse(f"{attributes} {{\n{text}\n{caller}\n{main}\n}}", make_context())
    assert sum(len(functions(group)) - 1 for group in taken_groups(module)) == MANY
    assert [name_of(one) for one in functions(module) if has_body(one)] == ["caller", "main"]


# Kernels whose loop nests hand rows to each other: divided, with the same bits for every number.

COUNTS = (2, 3, 5)
ROWS, COLUMNS = 59, 197


def softmax(arithmetic: str, axis: int, shape: tuple[int, ...] = (ROWS, COLUMNS)) -> ir.Module:
    tensor = f"tensor<{'x'.join(map(str, shape))}xi8>"
    return qdialect.parse(f"""
func.func @main(%x: {tensor}) -> {tensor} {{
  %y = "qnn.softmax"(%x) {{
    axis = {axis} : i64, input_scale = 0.05 : f64, output_scale = 0.00390625 : f64, output_zero_point = -128 : i64,
    arithmetic = "{arithmetic}"
  }} : ({tensor}) -> {tensor}
  return %y : {tensor}
}}""")


def normalization() -> ir.Module:
    """Rows that blocks of rows do not divide."""
    b = ModelBuilder()
    ones, zeros = (b.constant(np.full(COLUMNS, value, np.float32)) for value in (1, 0))
    output = b.node("LayerNormalization", b.input("tokens", (1, ROWS, COLUMNS)), ones, zeros)
    return import_onnx(b.finish(output, dtype=np.float32))


def parts(module: ir.Module, label: str, threads: int = 2, min_cycles: int = 4000) -> list[list[int]] | None:
    """Where the loop nests of the kernel that is called for `label` are cut; None where it is not divided."""
    text = str(lower(module, targets.host(), Phase.VECTOR, threads=threads, min_cycles=min_cycles).module)
    called = re.search(rf"call @(\w+)\(.*qnn\.label = \"{re.escape(label)}\"", text)
    assert called is not None
    table = re.search(rf"@{called[1]}_parts : memref<\S+> = dense<\[(.*)\]>", text)
    if table is None:
        return None
    return [[int(number) for number in row.split(",")] for row in re.findall(r"\[([\d, ]+)\]", table[1])]


MODULES = {
    "fixed": (softmax("tflite_fixed", 1), "qnn.softmax"),
    "float": (softmax("float", 1), "qnn.softmax"),
    "table": (softmax("ort_table", 1), "qnn.softmax"),
    "heads": (softmax("ort_table", 2, (3, 19, 45)), "qnn.softmax"),
    "transposed": (softmax("float", 2, (3, 67, 38)), "qnn.softmax"),
    "normalization": (normalization(), "rows"),
}


@pytest.mark.parametrize("name", MODULES)
def test_rows_are_divided_with_the_same_bits_for_every_number_of_threads(name: str) -> None:
    module, label = MODULES[name]
    assert parts(module, label) is not None
    inputs = random_inputs(lower(module, targets.host(), Phase.QNN).inputs, 3)
    wanted = compile_module(module)(*inputs)
    assert len(np.unique(wanted)) > 5
    for threads in COUNTS:
        # At the shipped threshold, and in parts as small as there are.
        executable = compile_module(module, threads=threads, min_cycles=4000 if threads == 2 else 0)
        for _ in range(20):
            np.testing.assert_array_equal(executable(*inputs), wanted, strict=True)


def chain(count: int) -> ir.Module:
    """Softmaxes one after the other: all but the first are behind a barrier, where chunks are counted."""
    b = ModelBuilder()
    value = b.input("x", (1, ROWS, COLUMNS))
    for _ in range(count):
        value = b.dequantize(b.quantize(b.node("Softmax", value, axis=-1), (0.004, 0)), (0.004, 0))
        value = b.node("Transpose", value, perm=[0, 2, 1])
    return import_onnx(b.finish(value, dtype=np.float32))


@pytest.mark.parametrize("allowed", [1, 2, 3])
def test_chunks_are_taken_once_by_as_many_threads_as_there_are(allowed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    module = chain(2)
    text = str(lower(module, targets.host(), Phase.VECTOR, threads=3, min_cycles=0).module)
    assert "memref.atomic_rmw addi" in text
    inputs = random_inputs(lower(module, targets.host(), Phase.QNN).inputs, 3)
    wanted = compile_module(module)(*inputs)
    executable = compile_module(module, threads=3, min_cycles=0)
    monkeypatch.setattr(THREAD_LIMIT, "value", allowed)
    for _ in range(20):
        np.testing.assert_array_equal(executable(*inputs), wanted, strict=True)


# Heads of an attention: products, the softmax between them and their masks are one kernel, bit for bit.

HOST = targets.host().name

QUANTIZED = """
func.func @main(%q: tensor<2x3x9x20xui8>, %k: tensor<2x3x20x37xui8>, %v: tensor<2x3x37x11xui8>)
    -> tensor<2x3x9x11xui8> {
  %0 = "qnn.constant"() {value = dense<0> : tensor<37xi32>} : () -> tensor<37xi32>
  %1 = "qnn.fused_matmul"(%q, %k, %0) {
    epilogue = [{requantize = {rounding = "f32_rne_zp_last"}}], input_scale = 0.02 : f64,
    input_zero_point = 120 : i64, weight_scales = array<f64: 0.03>, weight_zero_points = array<i64: 130>,
    output_scale = 0.2 : f64, output_zero_point = 127 : i64
  } : (tensor<2x3x9x20xui8>, tensor<2x3x20x37xui8>, tensor<37xi32>) -> tensor<2x3x9x37xui8>
  %2 = "qnn.softmax"(%1) {
    axis = 3 : i64, input_scale = 0.2 : f64, output_scale = 0.00390625 : f64, output_zero_point = 0 : i64,
    arithmetic = "ort_table"
  } : (tensor<2x3x9x37xui8>) -> tensor<2x3x9x37xui8>
  %3 = "qnn.constant"() {value = dense<0> : tensor<11xi32>} : () -> tensor<11xi32>
  %4 = "qnn.fused_matmul"(%2, %v, %3) {
    epilogue = [{requantize = {rounding = "f32_rne_zp_last"}}], input_scale = 0.00390625 : f64,
    input_zero_point = 0 : i64, weight_scales = array<f64: 0.03>, weight_zero_points = array<i64: 128>,
    output_scale = 0.01 : f64, output_zero_point = 128 : i64
  } : (tensor<2x3x9x37xui8>, tensor<2x3x37x11xui8>, tensor<11xi32>) -> tensor<2x3x9x11xui8>
  return %4 : tensor<2x3x9x11xui8>
}
"""
"""Products of u8 matrices of 6 heads, and a softmax between them."""


def attention(*lead: int, rows: int, keys: int, depth: int, width: int, mask: tuple[int, ...]) -> str:
    """softmax(Q K + mask) V of float32 numbers."""
    text = Text((*lead, rows, depth), (*lead, depth, keys), (*lead, keys, width), mask)
    scores = text.product("%x0", "%x1")
    masked = text.float_op("arith.addf", scores, text.repeated("%x3", (*lead, rows, keys)))
    return text.finish(text.product(text.softmax(masked), "%x2"))


def check(module: ir.Module, names: list[str]) -> None:
    types = [ir.RankedTensorType(value.type) for value in module.body.operations[0].regions[0].blocks[0].arguments]
    rng = np.random.default_rng(3)
    inputs = [
        numbers(tuple(type_.shape), i) * np.float32(0.1)
        if isinstance(type_.element_type, ir.F32Type)
        else rng.integers(0, 256, type_.shape).astype(np.uint8)
        for i, type_ in enumerate(types)
    ]
    wanted = interpreter.run(module, inputs)
    for name in names:
        check_compiled(module, name, [inputs], [wanted])


def test_float_heads_are_one_kernel() -> None:
    module = attention(1, 3, rows=9, keys=37, depth=5, width=11, mask=(1, 1, 1, 37))
    assert labels(module) == ["rows"]
    check(parse(module), [HOST, "generic"])


def test_heads_of_several_examples_with_the_mask_of_a_head() -> None:
    module = attention(2, 2, rows=4, keys=33, depth=8, width=8, mask=(4, 33))
    assert labels(module) == ["rows"]
    check(parse(module), [HOST])


def test_quantized_heads_are_one_kernel() -> None:
    """The second operand of each product is packed head by head, in the kernel."""
    assert labels(QUANTIZED) == ["rows"]
    check(parse(QUANTIZED), WIDTHS)


def test_threads_share_the_heads() -> None:
    """Each has packed matrices and scores of its own."""
    module = parse(QUANTIZED)
    assert "omp.parallel" in str(lower(module, targets.host(), PhaseAttention.VECTOR, threads=2, min_cycles=1).module)
    shapes = [(2, 3, 9, 20), (2, 3, 20, 37), (2, 3, 37, 11)]
    inputs = [np.random.default_rng(5).integers(0, 256, shape).astype(np.uint8) for shape in shapes]
    (wanted,) = interpreter.run(module, inputs)
    assert len(np.unique(wanted)) > 3
    np.testing.assert_array_equal(compile_module(module, threads=2, min_cycles=1)(*inputs), wanted)
