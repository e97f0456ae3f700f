"""`!quant.uniform` types and back: the same module, whatever its ops know of their quantization."""

from __future__ import annotations

import pytest
from compiled_ops import Attributes
from graphs import graph
from tosa_networks import network

import qdialect
from qdialect.arithmetic import FloatRounding
from qdialect.dialect import ClipOp, DequantizeOp, QuantizeOp, RequantizeOp, build
from qdialect.frontends.tosa import import_tosa
from qdialect.ir._mlir import ir

TO, FROM = "qnn-to-quant-types", "qnn-from-quant-types"


def check_round_trip(module: ir.Module) -> str:
    """There and back, through text too, is where it began; returns the text with types."""
    before = str(module)
    qdialect.PassManager.parse(TO).run(module)
    typed = str(module)
    again = qdialect.parse(typed)
    qdialect.PassManager.parse(FROM).run(again)
    assert str(again) == before
    return typed


@pytest.mark.parametrize("element", ["i8", "ui8", "i16", "ui16", "i32"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("scales", [(0.047058823529411764,), (0.1, 2.0**-100, 3e5)])
def test_quantize_and_dequantize(element: str, axis: int, scales: tuple[float, ...]) -> None:
    points = tuple(range(1, len(scales) + 1))

    def body(x: ir.Value) -> ir.Value:
        where: Attributes = {"scales": scales, "zero_points": points, "axis": axis}
        how: Attributes = {"rounding": "half_away", "scaling": "reciprocal", "nan": "min"}
        quantized = build(QuantizeOp, x, element=element, **where, **how).output
        return build(DequantizeOp, quantized, element="f32", **where).output

    typed = check_round_trip(graph(["tensor<3x3xf32>"], body))
    assert "quant.qcast" in typed
    assert "quant.dcast" in typed
    assert "qnn.quantize" not in typed


@pytest.mark.parametrize("fused", [False, True])
def test_a_network_keeps_every_bit(fused: bool) -> None:
    text = network("DOUBLE_ROUND")
    module = import_tosa(text.render(list(text.types)[-1]))
    if fused:
        qdialect.PassManager.parse("fuse-qnn").run(module)
    assert check_round_trip(module).count("to tensor<1x8x8x8x!quant.uniform<i8:f32, ") == (2 if fused else 3)


def interface(element: str, attributes: str) -> str:
    return f"""
    func.func @main(%x: tensor<4x{element}> {attributes}) -> (tensor<4x{element}> {attributes}) {{
      return %x : tensor<4x{element}>
    }}
    """


@pytest.mark.parametrize("element", ["i8", "ui8", "i16", "ui16", "i32"])
def test_interfaces(element: str) -> None:
    known = '{qnn.name = "image", qnn.scale = 0.047058823529411764 : f64, qnn.zero_point = 3 : i64}'
    storage = f"u{element[2:]}" if element.startswith("u") else element
    typed = check_round_trip(qdialect.parse(interface(element, known)))
    assert f"%arg0: tensor<4x!quant.uniform<{storage}:f32, 0.047058823529411764:3>>" in typed


def test_parameters_that_no_type_has_stay_attributes() -> None:
    outside = "{qnn.scale = 0.5 : f64, qnn.zero_point = 300 : i64}"
    assert "!quant" not in check_round_trip(qdialect.parse(interface("i8", outside)))

    def body(x: ir.Value) -> ir.Value:
        return build(DequantizeOp, x, element="f32", scales=(0.5,), zero_points=(1, 2, 3), axis=0).output

    assert "!quant" not in check_round_trip(graph(["tensor<3xi8>"], body))


def test_values_between_ops_have_types() -> None:
    def body(x: ir.Value) -> ir.Value:
        output: Attributes = {"output_scale": 0.25, "output_zero_point": 7}
        quantized = build(RequantizeOp, x, element="ui8", input_scale=0.5, rounding="fixed64_up", **output).output
        return build(ClipOp, quantized, element="ui8", min=3, max=9).output

    typed = check_round_trip(graph(["tensor<3xi8>"], body))
    assert "tensor<3xi8> to tensor<3x!quant.uniform<u8:f32, 2.500000e-01:7>>" in typed


def test_a_narrow_storage_range_is_a_clamp() -> None:
    type_ = "tensor<3x!quant.uniform<i8<-127:127>:f32, 0.5:1>>"
    module = qdialect.parse(f"""
    func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
      %0 = quant.qcast %x : tensor<3xf32> to {type_}
      %1 = quant.dcast %0 : {type_} to tensor<3xf32>
      return %1 : tensor<3xf32>
    }}
    """)
    qdialect.PassManager.parse(FROM).run(module)
    operations = list(module.body.operations[0].regions[0].blocks[0].operations)
    names = [op.operation.name for op in operations]
    assert names == ["qnn.quantize", "qnn.clip", "qnn.dequantize", "func.return"]
    quantize = operations[0]
    assert isinstance(quantize, QuantizeOp)
    assert quantize.rounding is FloatRounding.HALF_EVEN
    assert "{max = 127 : i64, min = -127 : i64}" in str(module)
