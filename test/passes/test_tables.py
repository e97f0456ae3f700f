"""Tables: every unary function is one, chains and diamonds compose, and a float region becomes one."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, TABLE, check, quantization
from drawn_graphs import graph, op_names, ops_of, run_both
from quantized_layers import SCALE, ZERO_POINT, add, clip, conv, fused, lut, random_table, requantize, sigmoid, unary

from qdialect.arithmetic import FloatRounding, Rounding, Table, identity_table
from qdialect.arithmetic.choices import LeakyMode
from qdialect.dialect import UNARY_OPS, DequantizeOp, LeakyReluOp, LutOp, MulOp, QuantizeOp, ReluOp, RequantizeOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import arith, ir
from qdialect.ir._mlir import math as math_dialect
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.passes.compose_luts import ComposeLutsPass
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.raise_qdq import RaiseQdqPass
from qdialect.passes.tabulate_unary import TabulateUnaryPass
from qdialect.targets import GENERIC, TARGETS

EVERY = "tensor<16x20xui8>"
EVERY_SIGNED = "tensor<16x20xi8>"


def rescale(x: ir.Value, element: str = "ui8", **changes: Any) -> ir.Value:
    attributes: dict[str, Any] = {
        "input_scale": SCALE,
        "input_zero_points": (ZERO_POINT,),
        "output_scale": 0.08,
        "output_zero_point": 21,
        "rounding": Rounding.FIXED32_DOUBLE,
        **changes,
    }
    return build(RequantizeOp, x, element=element, **attributes).output


def mul(lhs: ir.Value, rhs: ir.Value, **changes: Any) -> ir.Value:
    attributes: dict[str, Any] = {
        "lhs_scale": SCALE,
        "lhs_zero_point": ZERO_POINT,
        "rhs_scale": 1 / 256,
        "rhs_zero_point": 0,
        "output_scale": 0.04,
        "output_zero_point": 10,
        "output_min": 0,
        "output_max": 255,
        "rounding": Rounding.F32_RNE_ZP_LAST,
        **changes,
    }
    return build(MulOp, lhs, rhs, element="ui8", **attributes).output


# tabulate-unary (R1, R2)


@pytest.mark.parametrize("op_class", UNARY_OPS)
@pytest.mark.parametrize(("source", "element"), [(EVERY, "i8"), (EVERY_SIGNED, "ui8"), (EVERY_SIGNED, "i8")])
def test_every_unary_op_is_its_table_on_every_value(op_class: Any, source: str, element: str) -> None:
    after = run_both(graph([source], lambda x: unary(op_class, x, element)), TabulateUnaryPass())
    assert op_names(after) == ["qnn.lut"]


def test_requantize_between_8_bit_tensors_is_a_table() -> None:
    after = run_both(graph([EVERY], lambda x: rescale(x, "i8")), TabulateUnaryPass())
    (table,) = ops_of(after, "qnn.lut")
    assert (table.input_scale, table.input_zero_point) == (SCALE, ZERO_POINT)
    assert (table.output_scale, table.output_zero_point) == (0.08, 21)


@pytest.mark.parametrize("constant_first", [False, True])
def test_add_and_mul_with_a_uniform_constant_are_tables(constant_first: bool) -> None:
    def body(x: ir.Value, operation: Any) -> ir.Value:
        same = constant(np.full((1, 1), 30, dtype=np.uint8))
        return operation(same, x) if constant_first else operation(x, same)

    for operation in (add, mul):
        module = graph([EVERY], partial(body, operation=operation))
        assert op_names(run_both(module, TabulateUnaryPass())) == ["qnn.lut"]


# leaky-relu=keep|fixed|lut|tflite (R3, R4)


def leaky(x: ir.Value, alpha: float = 0.01, mode: LeakyMode = LeakyMode.LUT) -> ir.Value:
    how: dict[str, Any] = {"output_scale": 0.02, "output_zero_point": 90, "alpha": alpha, "mode": mode}
    return unary(LeakyReluOp, x, **how, input_zero_point=120)


@pytest.mark.parametrize("mode", list(LeakyMode))
def test_leaky_relu_follows_the_option(mode: LeakyMode) -> None:
    follows = graph([EVERY], lambda x: leaky(x, mode=mode))
    wanted = ops_of(follows, "qnn.leaky_relu")[0].to_table()
    for own in LeakyMode:
        module = graph([EVERY], partial(leaky, mode=own))
        TabulateUnaryPass(leaky_relu=str(mode)).run(module)
        np.testing.assert_array_equal(ops_of(module, "qnn.lut")[0].table, wanted)


def test_leaky_relu_keeps_its_own_arithmetic_by_default() -> None:
    for own in LeakyMode:
        module = graph([EVERY], partial(leaky, alpha=0.3, mode=own))
        run_both(module, TabulateUnaryPass())


def test_the_three_arithmetics_are_within_one_value_of_each_other() -> None:
    tables: list[Any] = []
    for mode in LeakyMode:
        module = graph([EVERY], lambda x: leaky(x, alpha=0.3))
        TabulateUnaryPass(leaky_relu=str(mode)).run(module)
        tables.append(ops_of(module, "qnn.lut")[0].table.astype(int))
    assert max(int(np.abs(one - other).max()) for one in tables for other in tables) == 1


@pytest.mark.parametrize("element", ["ui8", "i8"])
def test_leaky_relu_leaves_an_8_bit_conv(element: str) -> None:
    def body(x: ir.Value) -> ir.Value:
        low = 120 if element == "ui8" else -8
        quantized = requantize(conv(x), element, output_zero_point=low)
        return unary(LeakyReluOp, quantized, element, input_zero_point=low, alpha=0.01, mode=LeakyMode.FIXED)

    after = run_both(graph(["tensor<1x16x20x4xui8>"], body), FuseQnnPass())
    assert op_names(after) == ["qnn.fused_conv2d"]


def test_fixed_leaky_relu_multiplies_by_the_known_alpha() -> None:
    """R3: alpha 0.01 is (1374389535, -6); below the zero point y = up(x * alpha) + up(z * (1 - alpha))."""
    same: dict[str, Any] = {"output_scale": SCALE, "output_zero_point": 120, "input_zero_point": 120}
    module = graph([EVERY], lambda x: unary(LeakyReluOp, x, **same, alpha=0.01, mode=LeakyMode.FIXED))
    TabulateUnaryPass().run(module)
    shift = (120 * 2126008812 + (1 << 30)) >> 31
    below = [((value * 1374389535 + (1 << 36)) >> 37) + shift for value in range(120)]
    assert ops_of(module, "qnn.lut")[0].table.tolist() == below + list(range(120, 256))


# compose-luts


def test_a_chain_of_functions_is_one_table() -> None:
    def body(x: ir.Value) -> ir.Value:
        middle = {"input_scale": 0.08, "input_zero_point": 21}
        first = sigmoid(clip(rescale(x, "i8"), -100, 90), "i8", **middle)
        return lut(first, random_table(), input_scale=1 / 256, input_zero_point=-128)

    assert op_names(run_both(graph([EVERY], body), ComposeLutsPass())) == ["qnn.lut"]


@pytest.mark.parametrize("swapped", [False, True])
def test_x_times_sigmoid_of_x_is_one_table(swapped: bool) -> None:
    def body(x: ir.Value) -> ir.Value:
        if swapped:
            how = {"lhs_scale": 1 / 256, "lhs_zero_point": 0, "rhs_scale": SCALE, "rhs_zero_point": ZERO_POINT}
            return mul(sigmoid(x), x, **how)
        return mul(x, sigmoid(x))

    after = run_both(graph([EVERY], body), ComposeLutsPass())
    (table,) = ops_of(after, "qnn.lut")
    assert (table.input_scale, table.input_zero_point, table.output_scale) == (SCALE, ZERO_POINT, 0.04)


def test_sum_of_two_functions_of_one_tensor_is_one_table() -> None:
    def body(x: ir.Value) -> ir.Value:
        return add(rescale(x), sigmoid(x), lhs_scale=0.08, lhs_zero_point=21, rhs_scale=1 / 256, rhs_zero_point=0)

    assert op_names(run_both(graph([EVERY], body), ComposeLutsPass())) == ["qnn.lut"]


def test_a_tensor_times_itself_is_a_table() -> None:
    module = graph([EVERY], lambda x: mul(x, x, rhs_scale=SCALE, rhs_zero_point=ZERO_POINT))
    assert op_names(run_both(module, ComposeLutsPass())) == ["qnn.lut"]


def test_hardswish_written_out_is_one_table() -> None:
    def body(x: ir.Value) -> ir.Value:
        def uniform(code: int) -> ir.Value:
            return constant(np.full((1,), code, dtype=np.uint8))

        shifted = add(x, uniform(3), rhs_scale=1.0, rhs_zero_point=0, output_scale=6 / 255, output_zero_point=0)
        product = mul(x, shifted, rhs_scale=6 / 255, output_scale=0.3, output_zero_point=2)
        return mul(product, uniform(1), lhs_scale=0.3, lhs_zero_point=2, rhs_scale=1 / 6)

    assert op_names(run_both(graph([EVERY], body), TabulateUnaryPass(), ComposeLutsPass())) == ["qnn.lut"]


def test_a_table_that_clamps_is_a_clip_and_an_identity_is_nothing() -> None:
    same: dict[str, Any] = {"output_scale": SCALE, "output_zero_point": ZERO_POINT}
    clamp = np.clip(np.arange(256), 20, 200).astype(np.uint8)
    after = run_both(graph([EVERY], lambda x: lut(x, clamp, **same)), ComposeLutsPass())
    (found,) = ops_of(after, "qnn.clip")
    assert (found.min, found.max) == (20, 200)
    assert op_names(run_both(graph([EVERY], lambda x: lut(x, identity_table(), **same)), ComposeLutsPass())) == []


def test_a_signed_clamp_is_recognised_by_its_values() -> None:
    quantized = np.arange(256, dtype=np.uint8).view(np.int8)
    clamp = np.clip(quantized, -5, 9).view(np.uint8)
    same: dict[str, Any] = {"output_scale": SCALE, "output_zero_point": ZERO_POINT}
    after = run_both(graph([EVERY_SIGNED], lambda x: lut(x, clamp, "i8", **same)), ComposeLutsPass())
    assert [(op.min, op.max) for op in ops_of(after, "qnn.clip")] == [(-5, 9)]


# raise-qdq (R4)


def f32(x: ir.Value, scale: float = SCALE, zero_point: int = ZERO_POINT) -> ir.Value:
    return build(DequantizeOp, x, element="f32", scales=(scale,), zero_points=(zero_point,)).output


def coded(x: ir.Value, element: str = "ui8", **changes: Any) -> ir.Value:
    attributes: dict[str, Any] = {"scales": (0.04,), "zero_points": (100,), **changes}
    return build(QuantizeOp, x, element=element, **attributes).output


def number(value: float, like: ir.Value) -> ir.Value:
    return constant(np.full(shape_of(like.type), value, dtype=np.float32))


def leaky_region(x: ir.Value) -> ir.Value:
    v = f32(x)
    positive = arith.CmpFOp(arith.CmpFPredicate.OGE, v, number(0, v)).result
    return coded(arith.SelectOp(positive, v, arith.MulFOp(v, number(0.01, v)).result).result)


def swish_region(x: ir.Value) -> ir.Value:
    v = f32(x)
    one = number(1, v)
    exponential = math_dialect.ExpOp(arith.NegFOp(v).result).result
    return coded(arith.MulFOp(v, arith.DivFOp(one, arith.AddFOp(one, exponential).result).result).result, "i8")


def special_region(x: ir.Value) -> ir.Value:
    v = f32(x)
    return coded(math_dialect.RsqrtOp(math_dialect.LogOp(v).result).result)


def plain_region(x: ir.Value) -> ir.Value:
    return coded(f32(x), "i8")


@pytest.mark.parametrize("body", [leaky_region, swish_region, special_region, plain_region])
@pytest.mark.parametrize("rounding", list(FloatRounding))
def test_a_float_region_of_one_tensor_is_a_table(body: Any, rounding: FloatRounding) -> None:
    module = graph([EVERY], body)
    (quantize,) = ops_of(module, "qnn.quantize")
    with module.context:
        quantize.operation.attributes["rounding"] = ir.StringAttr.get(str(rounding))
    after = run_both(module, RaiseQdqPass())
    assert op_names(after) == ["qnn.lut"]


def test_a_float_op_that_others_use_stays_for_them() -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        v = math_dialect.TanhOp(f32(x)).result
        return [coded(v), v]

    assert op_names(run_both(graph([EVERY], body), RaiseQdqPass())) == ["qnn.dequantize", "math.tanh", "qnn.lut"]


def test_a_float_sum_becomes_an_add_where_all_pairs_agree() -> None:
    def body(x: ir.Value, y: ir.Value) -> ir.Value:
        return coded(arith.AddFOp(f32(x, 0.5, 3), f32(y, 0.25, 9)).result, scales=(0.5,), zero_points=(100,))

    after = run_both(graph([EVERY, EVERY], body), RaiseQdqPass())
    (found,) = ops_of(after, "qnn.add")
    assert found.arithmetic == "float_once"


def test_a_float_product_becomes_a_mul_with_the_clamp_of_its_relu() -> None:
    def body(x: ir.Value, y: ir.Value) -> ir.Value:
        product = arith.MulFOp(f32(x, 0.5, 3), f32(y, 0.25, 9)).result
        return coded(arith.MaximumFOp(product, number(0, product)).result, scales=(1.0,))

    after = run_both(graph([EVERY, EVERY], body), RaiseQdqPass())
    assert [op.output_min for op in ops_of(after, "qnn.mul")] == [100]


# All together


def test_every_value_reaches_the_table_of_a_fused_conv() -> None:
    """R1: the three seed layers' shape in small; all 256 quantized values enter the table."""
    module = graph(["tensor<1x40x40x4xui8>"], lambda x: sigmoid(requantize(conv(x))))
    after = run_both(module, FuseQnnPass())
    (op,) = ops_of(after, "qnn.fused_conv2d")
    assert op_names(after) == ["qnn.fused_conv2d"]
    assert [stage.name for stage in op.epilogue] == ["requantize", "lut"]


def test_relu_after_a_fused_conv_is_free() -> None:
    same: dict[str, Any] = {"output_scale": SCALE, "output_zero_point": ZERO_POINT}
    after = run_both(graph(["tensor<1x6x7x4xui8>"], lambda x: unary(ReluOp, fused(x), **same)), FuseQnnPass())
    (op,) = ops_of(after, "qnn.fused_conv2d")
    assert [stage.name for stage in op.epilogue] == ["requantize", "clamp"]


def test_an_op_that_two_erased_ops_used_is_erased_once() -> None:
    module = parse("""
    func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
      %0 = "qnn.dequantize"(%x) {scales = array<f64: 0.1>, zero_points = array<i64: 0>, axis = 0 : i64}
        : (tensor<4xi8>) -> tensor<4xf32>
      %1 = arith.cmpf ogt, %0, %0 : tensor<4xf32>
      %2 = arith.select %1, %0, %0 : tensor<4xi1>, tensor<4xf32>
      %3 = "qnn.quantize"(%2) {scales = array<f64: 0.2>, zero_points = array<i64: 0>, axis = 0 : i64,
        rounding = "half_even", scaling = "divide", nan = "zero_point"} : (tensor<4xf32>) -> tensor<4xi8>
      return %3 : tensor<4xi8>
    }""")
    assert op_names(run_both(module, RaiseQdqPass())) == ["qnn.lut"]


# A table on its own: vector code on users' arrays as they are, whatever their size and the signs of both.

IDENTITY = np.arange(256).astype(np.uint8)
SIZES = (1, 3, 15, 16, 63, 64, 65, 127, 128, 200, 513)


def table(size: int, source: str, target: str, entries: Table) -> ir.Module:
    def body(x: ir.Value) -> ir.Value:
        return build(LutOp, x, element=target, table=entries, **quantization(source, target)).output

    return graph([f"tensor<{size}x{source}>"], body)


@pytest.mark.parametrize("target", EIGHT_BIT)
@pytest.mark.parametrize("source", EIGHT_BIT)
@pytest.mark.parametrize("size", [1, 17, 64, 130])
def test_every_pair_of_signs(size: int, source: str, target: str) -> None:
    check(table(size, source, target, TABLE))


@pytest.mark.parametrize("entries", [TABLE, IDENTITY], ids=["table", "identity"])
@pytest.mark.parametrize("size", SIZES)
def test_vector_code_for_every_size(size: int, entries: Table) -> None:
    module = table(size, "ui8", "ui8", entries)
    for target in (GENERIC, TARGETS["avx512vbmi"]):
        lowered = lower(module, target, Phase.VECTOR)
        text = str(lowered.module)
        assert lowered.kernels == 1
        assert ("vector.gather" if entries is TABLE else "vector.transfer_write") in text
        assert "memref.copy" not in text
        assert "memref.load" not in text
    permuted = str(lower(module, TARGETS["avx512vbmi"], Phase.X86).module)
    assert ("vpermi2var.qi.512" in permuted) == (entries is TABLE)
