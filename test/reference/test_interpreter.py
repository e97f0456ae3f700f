"""The interpreter: every op has a meaning, attributes reach the kernels, and what it refuses."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdialect.dialect import OPS
from qdialect.ir.context import make_context, parse
from qdialect.lowering.ir.functions import ops_named
from qdialect.lowering.ir.upstream import load_kernel_dialects
from qdialect.reference import interpreter
from qdialect.reference.evaluators import EVALUATORS
from qdialect.support.diagnostics import CompileError, InputError

U8 = "tensor<1x4xui8>"
I8 = "tensor<1x4xi8>"


def function(body: str, argument: str = U8, result: str = U8) -> str:
    return f"func.func @main(%x: {argument}) -> {result} {{\n{body}\nfunc.return %y : {result}\n}}"


def run_one(body: str, x: NDArray[Any], argument: str = U8, result: str = U8) -> list[Any]:
    return interpreter.run(parse(function(body, argument, result)), [x])[0].tolist()


def quantized(*values: int, dtype: type[np.integer[Any]] = np.uint8) -> NDArray[Any]:
    return np.array([values]).astype(dtype)


def test_every_op_of_the_dialect_has_an_evaluator() -> None:
    assert {op.OPERATION_NAME for op in OPS} <= EVALUATORS.keys()


def test_signed_and_unsigned_values_keep_their_meaning() -> None:
    requantize = f"""%y = "qnn.requantize"(%x) {{input_scale = 1.0 : f64, weight_scales = array<f64: 1.0>,
        input_zero_points = array<i64: 128>, output_scale = 1.0 : f64, output_zero_point = 0 : i64, axis = 0 : i64,
        rounding = "fixed32_double", multiplier = "f64"}} : ({U8}) -> {I8}"""
    assert run_one(requantize, quantized(0, 1, 200, 255), U8, I8) == [[-128, -127, 72, 127]]


def test_requantize_by_channel_follows_the_axis() -> None:
    body = """%y = "qnn.requantize"(%x) {input_scale = 1.0 : f64, weight_scales = array<f64: 1.0, 2.0>,
        input_zero_points = array<i64: 0, 5>, output_scale = 1.0 : f64, output_zero_point = 1 : i64, axis = 0 : i64,
        rounding = "f32_rne_zp_last", multiplier = "f32"} : (tensor<2x2xi32>) -> tensor<2x2xui8>"""
    x = np.array([[1, 2], [10, 400]], dtype=np.int32)
    assert run_one(body, x, "tensor<2x2xi32>", "tensor<2x2xui8>") == [[2, 3], [11, 255]]


def test_dense_with_zero_points_and_bias() -> None:
    body = f"""%w = "qnn.constant"() {{value = dense<[[1, 2, 3, 4], [0, 0, 0, 1]]> : tensor<2x4xi8>}}
        : () -> tensor<2x4xi8>
    %b = arith.constant dense<[100, -7]> : tensor<2xi32>
    %y = "qnn.dense"(%x, %w, %b) {{input_scale = 1.0 : f64, input_zero_point = 10 : i64,
        weight_scales = array<f64: 1.0>, weight_zero_points = array<i64: 1>}}
        : ({U8}, tensor<2x4xi8>, tensor<2xi32>) -> tensor<1x2xi32>"""
    # offsets (1, 0, 2, -10) times (0, 1, 2, 3) and (-1, -1, -1, 0)
    assert run_one(body, quantized(11, 10, 12, 0), U8, "tensor<1x2xi32>") == [[100 - 26, -7 - 3]]


def test_a_table_is_indexed_by_the_bit_pattern() -> None:
    table = ", ".join(str(-((i + 1) % 128)) for i in range(256))
    body = f"""%y = "qnn.lut"(%x) {{table = dense<[{table}]> : tensor<256xi8>,
        input_scale = 1.0 : f64, input_zero_point = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 0 : i64}}
        : ({I8}) -> {I8}"""
    x = quantized(0, 1, -1, -128, dtype=np.int8)
    assert run_one(body, x, I8, I8) == [[-1, -2, 0, -1]]


FUSED = """%w = "qnn.constant"() {{value = dense<[[1, 1, 0, 0], [0, 0, 2, 0]]> : tensor<2x4xi8>}} : () -> tensor<2x4xi8>
    %b = arith.constant dense<[0, 1]> : tensor<2xi32>
    %r = "qnn.constant"() {{value = dense<[[3, 4]]> : tensor<1x2xui8>}} : () -> tensor<1x2xui8>
    %y = "qnn.fused_dense"(%x, %w, %b{residual}) {{input_scale = 1.0 : f64, input_zero_point = 0 : i64,
        weight_scales = array<f64: 1.0>, output_scale = 1.0 : f64, output_zero_point = {zero_point} : i64,
        epilogue = [{{requantize = {{rounding = "fixed64_up", zero_point = 5 : i64}}}},
                    {{clamp = {{min = 0 : i64, max = 20 : i64}}}}{more}]}}
        : (tensor<1x4xui8>, tensor<2x4xi8>, tensor<2xi32>{residual_type}) -> tensor<1x2xui8>"""


ADD = """, {add = {residual_scale = 2.0 : f64, residual_zero_point = 1 : i64}},
                    {clamp = {min = 0 : i64, max = 18 : i64}}"""


def fused(residual: bool, table: str = "") -> list[Any]:
    body = FUSED.format(
        residual=", %r" if residual else "",
        residual_type=", tensor<1x2xui8>" if residual else "",
        zero_point=2 if residual else 5,
        more=(ADD if residual else "") + (f", {{lut = {{table = {table}}}}}" if table else ""),
    )
    return run_one(body, quantized(1, 2, 30, 9), U8, "tensor<1x2xui8>")


def test_the_stages_of_a_fused_op_run_in_order() -> None:
    plus_one = "dense<[" + ", ".join(str((i + 1 + 128) % 256 - 128) for i in range(256)) + "]> : tensor<256xi8>"
    # accumulators 3 and 61; + 5, clamped to 20; the residual (3 - 1) * 2 = 4 and (4 - 1) * 2 = 6 at zero point 2
    assert fused(False) == [[8, 20]]
    assert fused(False, plus_one) == [[9, 21]]
    assert fused(True) == [[3 + 4 + 2, 18]]
    assert fused(True, plus_one) == [[10, 19]]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [("oeq", [0, 1, 0]), ("ult", [1, 0, 1]), ("ord", [1, 1, 0]), ("uno", [0, 0, 1]), ("une", [1, 0, 1])],
)
def test_float_islands_compare_as_arith_does(predicate: str, expected: list[int]) -> None:
    body = f"""%c = arith.constant dense<2.0> : tensor<3xf32>
    %i = arith.cmpf {predicate}, %x, %c : tensor<3xf32>
    %one = arith.constant dense<1.0> : tensor<3xf32>
    %zero = arith.constant dense<0.0> : tensor<3xf32>
    %y = arith.select %i, %one, %zero : tensor<3xi1>, tensor<3xf32>"""
    x = np.array([1, 2, np.nan], dtype=np.float32)
    assert run_one(body, x, "tensor<3xf32>", "tensor<3xf32>") == expected


def test_a_float_island_computes_in_float32() -> None:
    body = f"""%d = "qnn.dequantize"(%x) {{scales = array<f64: 0.1>, zero_points = array<i64: 3>, axis = 0 : i64}}
        : ({U8}) -> tensor<1x4xf32>
    %c = arith.constant dense<3.0> : tensor<1x4xf32>
    %s = arith.mulf %d, %c : tensor<1x4xf32>
    %f = math.floor %s : tensor<1x4xf32>
    %y = "qnn.quantize"(%f) {{scales = array<f64: 0.5>, zero_points = array<i64: 7>, axis = 0 : i64,
        rounding = "half_even", scaling = "divide", nan = "zero_point"}} : (tensor<1x4xf32>) -> {U8}"""
    # 0.1f * 10 * 3 is 3.0000001 in float32: its floor would be 2 with 0.1 times 30 rounded down
    assert run_one(body, quantized(3, 13, 23, 255)) == [[7, 13, 19, 157]]


def test_observe_sees_every_value() -> None:
    seen: list[tuple[str, Any]] = []
    body = f"""%c = "qnn.clip"(%x) {{min = 2 : i64, max = 9 : i64}} : ({U8}) -> {U8}
    %y = "qnn.reshape"(%c) {{shape = array<i64: 1, 4>}} : ({U8}) -> {U8}"""
    interpreter.run(
        parse(function(body)), [quantized(0, 5, 9, 10)], observe=lambda op, v: seen.append((op.name, v.tolist()))
    )
    assert seen == [("qnn.clip", [[2, 5, 9, 9]]), ("qnn.reshape", [[2, 5, 9, 9]])]


def test_an_op_without_evaluator_is_named_with_its_place_before_anything_runs() -> None:
    module = parse(
        function(f"%y = tensor.cast %x : {U8} to {U8}\n%z = math.tan %f : tensor<1xf32>", U8).replace(
            "{\n", "{\n%f = arith.constant dense<1.0> : tensor<1xf32>\n", 1
        )
    )
    with pytest.raises(CompileError) as caught:
        interpreter.run(module, [])
    notes = [str(note) for note in caught.value.diagnostics[0].notes]
    assert notes == [
        "-:3:6: note: 'tensor.cast' op has no reference meaning",
        "-:4:6: note: 'math.tan' op has no reference meaning",
    ]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "function @main must be called with 1 arrays, but got 0"),
        ([quantized(1, 2, 3, 4, dtype=np.int8)], "input 'image' must be uint8[1, 4], but got int8[1, 4]"),
        ([quantized(1, 2, 3)], "input 'image' must be uint8[1, 4], but got uint8[1, 3]"),
    ],
)
def test_inputs_are_checked(inputs: list[NDArray[Any]], message: str) -> None:
    text = f'func.func @main(%x: {U8} {{qnn.name = "image"}}) -> {U8} {{ func.return %x : {U8} }}'
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        interpreter.run(parse(text), inputs)


def test_a_module_without_main_is_refused() -> None:
    with pytest.raises(CompileError, match="module must have a function @main"):
        interpreter.run(parse("module {}"), [])


# Ops of a module by their names.

TEXT = """func.func @main(%n: index) -> index {
  %a = arith.constant 1 : index
  scf.for %i = %a to %n step %a {
    %b = arith.addi %i, %n : index
    scf.for %j = %a to %b step %a {
      %c = arith.muli %j, %n : index
    }
  }
  %d = arith.addi %a, %n : index
  return %d : index
}"""


def test_ops_are_found_in_order_at_any_depth() -> None:
    module = parse(TEXT, make_context())
    load_kernel_dialects(module)
    before = str(module)
    found = [op.name for op in ops_named(module, "arith.addi", "arith.muli")]
    assert found == ["arith.addi", "arith.muli", "arith.addi"]
    assert [len(list(op.regions[0].blocks[0].operations)) for op in ops_named(module, "scf.for")] == [2, 3]
    assert ops_named(module, "vector.gather") == []
    assert str(module) == before
