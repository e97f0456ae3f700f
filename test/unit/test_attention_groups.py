"""Heads of an attention: products, the softmax between them and their masks are one kernel, bit for bit."""

import numpy as np
import pytest
from row_texts import Text, f32, labels, numbers
from together import check_compiled

from qdialect import targets
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.conversions import row_fusion
from qdialect.lowering.qnn_to_linalg.graph import row_fusion as fused_rows
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

HOST = targets.host().name
KINDS = [name for name in targets.TARGETS if targets.TARGETS[name].features <= targets.host_features()]

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


def test_large_scores_are_computed_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_rows, "_FAR_BYTES", 1024)
    monkeypatch.setattr(row_fusion, "_PRODUCT_BYTES", 1024)
    text = attention(1, 2, rows=37, keys=40, depth=5, width=7, mask=(37, 40))
    scratch = lower(parse(text), targets.host(), Phase.LINALG).buffers
    assert labels(text) == ["rows"]
    check(parse(text), [HOST])
    monkeypatch.setattr(fused_rows, "_FAR_BYTES", 1 << 30)
    assert lower(parse(text), targets.host(), Phase.LINALG).buffers != scratch


def test_quantized_heads_are_one_kernel() -> None:
    """The second operand of each product is packed head by head, in the kernel."""
    assert labels(QUANTIZED) == ["rows"]
    check(parse(QUANTIZED), KINDS)


def test_threads_share_the_heads() -> None:
    """Each has packed matrices and scores of its own."""
    module = parse(QUANTIZED)
    assert "omp.parallel" in str(lower(module, targets.host(), Phase.VECTOR, threads=2, min_cycles=1).module)
    shapes = [(2, 3, 9, 20), (2, 3, 20, 37), (2, 3, 37, 11)]
    inputs = [np.random.default_rng(5).integers(0, 256, shape).astype(np.uint8) for shape in shapes]
    (wanted,) = interpreter.run(module, inputs)
    assert len(np.unique(wanted)) > 3
    np.testing.assert_array_equal(compile_module(module, threads=2, min_cycles=1)(*inputs), wanted)


def test_one_product_is_a_kernel_of_its_own() -> None:
    text = Text((3, 8, 5), (3, 5, 40))
    found = text.finish(text.softmax(text.product("%x0", "%x1")))
    assert labels(found) == ["qnn.f32_matmul", "rows"]


def test_a_dense_layer_of_a_normalization_is_a_kernel_of_its_own() -> None:
    text = Text((8, 40), (40, 12))
    found = text.finish(text.product(text.layer_norm("%x0"), "%x1"))
    assert labels(found) == ["rows", "qnn.f32_matmul"]
    assert f32(8, 12) in found


def test_products_that_read_through_a_transposition_are_kernels_of_their_own() -> None:
    """What they read lies in another order of the whole tensor: there are no rows of it."""
    text = QUANTIZED.replace("%k: tensor<2x3x20x37xui8>", "%t: tensor<2x3x37x20xui8>").replace(
        '%0 = "qnn.constant"',
        '%k = "qnn.transpose"(%t) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x3x37x20xui8>) -> '
        'tensor<2x3x20x37xui8>\n  %0 = "qnn.constant"',
    )
    check(parse(text), [HOST])
    wide = text.replace("9x20x", "9x24x").replace("37x20x", "37x24x").replace("3x20x37", "3x24x37")
    assert "rows" not in labels(wide)
    check(parse(wide), [HOST])
