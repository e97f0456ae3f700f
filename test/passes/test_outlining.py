"""Outlined fused ops: what a predicate says, what runs them, and the way back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import qdialect
from qdialect.dialect import FusedOp
from qdialect.ir._mlir import ir
from qdialect.passes.outline_fused import OutlineFusedPass
from qdialect.reference import interpreter

DENSE = """
  %weight{number} = "qnn.constant"() {{value = dense<{weight}> : tensor<8x8xi8>}} : () -> tensor<8x8xi8>
  %bias{number} = "qnn.constant"() {{value = dense<7> : tensor<8xi32>}} : () -> tensor<8xi32>
  %sum{number} = "qnn.dense"({data}, %weight{number}, %bias{number}) {{
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.1>,
    weight_zero_points = array<i64: {point}>
  }} : (tensor<2x8xi8>, tensor<8x8xi8>, tensor<8xi32>) -> tensor<2x8xi32>
  %code{number} = "qnn.requantize"(%sum{number}) {{
    axis = 1 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.25 : f64, output_zero_point = 3 : i64, rounding = "fixed64_up", weight_scales = array<f64: 0.1>
  }} : (tensor<2x8xi32>) -> tensor<2x8xi8>
"""
ARRAY = np.arange(-60, 68, 8, dtype=np.int8).reshape(2, 8)


def network() -> ir.Module:
    """Two dense layers; the weights of the second have a zero point."""
    layers = DENSE.format(number=0, weight=2, data="%x", point=0) + DENSE.format(
        number=1, weight=-3, data="%code0", point=5
    )
    text = f"func.func @main(%x: tensor<2x8xi8>) -> tensor<2x8xi8> {{{layers}  return %code1 : tensor<2x8xi8>\n}}"
    module = qdialect.parse(text)
    qdialect.PassManager.parse("fuse-qnn").run(module)
    return module


def outlined_names(module: ir.Module) -> list[str]:
    functions = [op.operation for op in module.body.operations]
    return [ir.StringAttr(f.attributes["sym_name"]).value for f in functions if "qnn.external" in f.attributes]


def test_calls_run_where_the_ops_ran() -> None:
    module = network()
    (wanted,) = interpreter.run(module, [ARRAY])
    qdialect.PassManager.parse("qnn-outline-fused").run(module)
    assert outlined_names(module) == ["main_fused_dense_0", "main_fused_dense_1"]
    np.testing.assert_array_equal(interpreter.run(module, [ARRAY])[0], wanted)
    np.testing.assert_array_equal(qdialect.compile(module)(ARRAY), wanted)


def test_outlined_ops_stay_outlined() -> None:
    module = network()
    qdialect.PassManager.parse("qnn-outline-fused").run(module)
    before = str(module)
    qdialect.PassManager.parse("qnn-outline-fused").run(module)
    assert str(module) == before


def at_most(limit: int) -> Callable[[FusedOp], str | None]:
    def predicate(op: FusedOp) -> str | None:
        return f"has a weight zero point above {limit}" if max(op.weight_zero_points) > limit else None

    return predicate


@pytest.mark.parametrize(("limit", "count"), [(4, 1), (5, 2)])
def test_a_predicate_says_why_an_op_stays(limit: int, count: int) -> None:
    module = network()
    with qdialect.explain_matches() as remarks:
        qdialect.PassManager(OutlineFusedPass(predicate=at_most(limit))).run(module)
    assert len(outlined_names(module)) == count
    reasons = [remark.message for remark in remarks]
    wanted = f"[outline-fused] 'qnn.fused_dense' has a weight zero point above {limit}"
    assert reasons == [wanted] * (2 - count)
    np.testing.assert_array_equal(interpreter.run(module, [ARRAY])[0], interpreter.run(network(), [ARRAY])[0])


def test_a_call_of_what_calls_has_no_reference_meaning() -> None:
    module = qdialect.parse("""
    func.func private @inner(%x: tensor<2xi8>) -> tensor<2xi8> {
      %0 = call @inner(%x) : (tensor<2xi8>) -> tensor<2xi8>
      return %0 : tensor<2xi8>
    }
    func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {
      %0 = call @inner(%x) : (tensor<2xi8>) -> tensor<2xi8>
      return %0 : tensor<2xi8>
    }
    """)
    with pytest.raises(qdialect.CompileError, match="must consist of ops with a reference meaning, but 1 have none"):
        interpreter.run(module, [np.zeros(2, np.int8)])
