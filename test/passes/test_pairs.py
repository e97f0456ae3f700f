"""Functions of two tensors, long chains and profiles through the passes."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled_ops import check
from drawn_graphs import graph, op_names, run_both
from quantized_layers import SCALE, ZERO_POINT, sigmoid

import qdialect
from qdialect import dialect as qnn
from qdialect.arithmetic import PairArithmetic, Rounding, SubArithmetic
from qdialect.arithmetic.profiles import ONEDNN, ONNX_PROFILES, PROFILES
from qdialect.dialect.constants import constant
from qdialect.frontends.model_files import FORMATS
from qdialect.ir._mlir import ir
from qdialect.passes.compose_luts import ComposeLutsPass
from qdialect.passes.tabulate_unary import TabulateUnaryPass
from qdialect.reference import interpreter

EVERY = "tensor<16x20xui8>"
PAIRS: list[tuple[Any, dict[str, Any]]] = [
    (qnn.AddOp, {}),
    (qnn.MulOp, {"rounding": Rounding.FIXED32_DOUBLE}),
    *((qnn.SubOp, {"arithmetic": arithmetic}) for arithmetic in SubArithmetic),
    *((qnn.DivOp, {"arithmetic": arithmetic}) for arithmetic in PairArithmetic),
    *((qnn.PreluOp, {"arithmetic": arithmetic}) for arithmetic in PairArithmetic),
    (qnn.MaximumOp, {}),
    (qnn.MinimumOp, {}),
    (qnn.SquaredDifferenceOp, {}),
]


def pair(op: Any, how: dict[str, Any], lhs: ir.Value, rhs: ir.Value, **changes: Any) -> ir.Value:
    attributes: dict[str, Any] = {
        "lhs_scale": SCALE,
        "lhs_zero_point": ZERO_POINT,
        "rhs_scale": 1 / 256,
        "rhs_zero_point": 0,
        "output_scale": 0.04,
        "output_zero_point": 10,
        "output_min": 3,
        "output_max": 250,
        **how,
        **changes,
    }
    return qnn.build(op, lhs, rhs, element="ui8", **attributes).output


@pytest.mark.parametrize(("op", "how"), PAIRS)
def test_with_a_uniform_constant(op: Any, how: dict[str, Any]) -> None:
    def body(x: ir.Value) -> ir.Value:
        return pair(op, how, x, constant(np.full((1,), 200, dtype=np.uint8)))

    assert op_names(run_both(graph([EVERY], body), TabulateUnaryPass())) == ["qnn.lut"]


@pytest.mark.parametrize(("op", "how"), PAIRS)
def test_of_a_tensor_and_a_function_of_it(op: Any, how: dict[str, Any]) -> None:
    after = run_both(graph([EVERY], lambda x: pair(op, how, x, sigmoid(x))), ComposeLutsPass())
    assert op_names(after) == ["qnn.lut"]


# More than a thousand ops in a row: no pass, reference or lowering takes a frame of Python's stack for each.

COUNT = 1500
assert sys.getrecursionlimit() < COUNT

PARAMETERS = "axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 0>"


def between_quantized_values(op: str) -> str:
    """A chain of `op`, in which {x} is its operand, between a dequantize and a quantize."""
    ops = "\n".join(f"  %v{i + 1} = {op.format(x=f'%v{i}')} : tensor<4xf32>" for i in range(COUNT))
    return f"""func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {{
  %v0 = "qnn.dequantize"(%x) {{{PARAMETERS}}} : (tensor<4xi8>) -> tensor<4xf32>
{ops}
  %y = "qnn.quantize"(%v{COUNT}) {{{PARAMETERS}, scaling = "divide", nan = "max", rounding = "half_even"}}
      : (tensor<4xf32>) -> tensor<4xi8>
  func.return %y : tensor<4xi8>
}}"""


def of_floats(op: str) -> str:
    """A chain of `op` on f32."""
    ops = "\n".join(f"  %v{i + 1} = {op.format(x=f'%v{i}')} : tensor<4xf32>" for i in range(COUNT))
    return f"func.func @main(%v0: tensor<4xf32>) -> tensor<4xf32> {{\n{ops}\n  return %v{COUNT} : tensor<4xf32>\n}}"


@pytest.mark.parametrize("op", ["math.absf {x}", "arith.maximumf {x}, {x}"])
@pytest.mark.parametrize("text_of", [between_quantized_values, of_floats])
def test_a_long_chain_has_its_results(op: str, text_of: Callable[[str], str]) -> None:
    module = qdialect.parse(text_of(op))
    dtype = np.int8 if text_of is between_quantized_values else np.float32
    array = np.array([-3, -1, 0, 7], dtype=dtype)
    wanted = np.abs(array) if op.startswith("math") else array
    assert interpreter.run(module, [array])[0].tolist() == wanted.tolist()
    qdialect.PassManager("fuse-qnn").run(module)
    assert interpreter.run(module, [array])[0].tolist() == wanted.tolist()
    found = qdialect.compile(module)(array)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == wanted.tolist()


# Profiles are attributes that the ops take, and the names that formats know.


def test_every_format_names_profiles_that_exist() -> None:
    named = {name for entry in FORMATS.values() for name in entry.profiles()}
    assert named <= PROFILES.keys() | ONNX_PROFILES.keys()
    assert {"tflite", "tflite-xnnpack", "ort", "pytorch", "tosa"} <= named


# R15: MXNet computes as oneDNN does.


def test_the_arithmetic_of_onednn_is_a_profile() -> None:
    """Sums become f32, the activation works on these, and one rounding follows, the zero point before it."""
    rng, scale = np.random.default_rng(3), 0.0625
    weight = rng.integers(-128, 128, (4, 1, 1, 3)).astype(np.int8)

    def body(x: ir.Value) -> ir.Value:
        how: dict[str, Any] = {"input_scale": 0.5, "input_zero_point": 0, "weight_scales": (scale,)}
        acc = qnn.build(qnn.Conv2DOp, x, constant(weight), None, element="i32", **how).output
        real = qnn.build(qnn.DequantizeOp, acc, element="f32", scales=(0.5 * scale,), zero_points=(0,)).output
        zero = constant(np.zeros((1, 9, 9, 4), np.float32))
        activated = ir.Operation.create("arith.maximumf", results=[real.type], operands=[real, zero]).results[0]
        to: dict[str, Any] = {"scales": (3.7,), "zero_points": (0,)}
        return qnn.build(qnn.QuantizeOp, activated, element="ui8", **to, **ONEDNN.quantization).output

    module = graph(["tensor<1x9x9x3xi8>"], body)
    x = rng.integers(-128, 128, (1, 9, 9, 3)).astype(np.int8)
    acc = np.einsum("nyxc,oc->nyxo", x.astype(np.int64), weight.reshape(4, 3).astype(np.int64))
    real = np.maximum(acc.astype(np.float32) * np.float32(0.5 * scale), np.float32(0))
    wanted = np.clip(np.rint(real * (np.float32(1) / np.float32(3.7))), 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(interpreter.run(module, [x])[0], wanted)
    check(module, [x])
