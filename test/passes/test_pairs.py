"""Functions of two tensors, tables, whole networks, long chains and profiles through the passes."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, TABLE, check, quantization
from drawn_graphs import graph, op_names, ops_of, random_inputs, run_both
from quantized_layers import SCALE, ZERO_POINT, sigmoid

import qdialect
from qdialect.arithmetic import AddArithmetic, Multiplier, PairArithmetic, Rounding, SubArithmetic, Table
from qdialect.arithmetic.profiles import ONEDNN, ONNX_PROFILES, PROFILES, ActivationOrder, Profile
from qdialect.dialect import (
    AddOp,
    Conv2DOp,
    DequantizeOp,
    DivOp,
    LutOp,
    MaximumOp,
    MinimumOp,
    MulOp,
    PreluOp,
    QuantizeOp,
    SigmoidOp,
    SquaredDifferenceOp,
    SubOp,
    build,
)
from qdialect.dialect.constants import constant
from qdialect.frontends.model_files import FORMATS
from qdialect.frontends.tflite import import_tflite
from qdialect.ir._mlir import ir
from qdialect.ir.context import verify
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.passes.compose_luts import ComposeLutsPass
from qdialect.passes.decompose_fused import DecomposeFusedPass
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.tabulate_unary import TabulateUnaryPass
from qdialect.reference import interpreter
from qdialect.targets import GENERIC, TARGETS

EVERY = "tensor<16x20xui8>"
PAIRS: list[tuple[Any, dict[str, Any]]] = [
    (AddOp, {}),
    (MulOp, {"rounding": Rounding.FIXED32_DOUBLE}),
    *((SubOp, {"arithmetic": arithmetic}) for arithmetic in SubArithmetic),
    *((DivOp, {"arithmetic": arithmetic}) for arithmetic in PairArithmetic),
    *((PreluOp, {"arithmetic": arithmetic}) for arithmetic in PairArithmetic),
    (MaximumOp, {}),
    (MinimumOp, {}),
    (SquaredDifferenceOp, {}),
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
    return build(op, lhs, rhs, element="ui8", **attributes).output


@pytest.mark.parametrize(("op", "how"), PAIRS)
def test_with_a_uniform_constant(op: Any, how: dict[str, Any]) -> None:
    def body(x: ir.Value) -> ir.Value:
        return pair(op, how, x, constant(np.full((1,), 200, dtype=np.uint8)))

    assert op_names(run_both(graph([EVERY], body), TabulateUnaryPass())) == ["qnn.lut"]


@pytest.mark.parametrize(("op", "how"), PAIRS)
def test_of_a_tensor_and_a_function_of_it(op: Any, how: dict[str, Any]) -> None:
    after = run_both(graph([EVERY], lambda x: pair(op, how, x, sigmoid(x))), ComposeLutsPass())
    assert op_names(after) == ["qnn.lut"]


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


# Real networks: fusion leaves one op for each kernel and the bits as they were, and fused ops come apart again.

NETWORKS = {
    "mobilenet_v1_0.25_224_quant": {"qnn.fused_conv2d": 28},
    "vww_96_int8": {"qnn.fused_conv2d": 27, "qnn.fused_dense": 1},
    "kws_ref_model": {"qnn.fused_conv2d": 9, "qnn.fused_dense": 1},
    "ad01_int8": {"qnn.fused_dense": 10},
    "pretrainedResnet_quant": {"qnn.fused_conv2d": 9, "qnn.fused_dense": 1},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_keeps_its_bits(name: str, require_model: Callable[[str], Path]) -> None:
    module = import_tflite(str(require_model(name)))
    inputs = random_inputs(module)
    expected = interpreter.run(module, inputs)
    FuseQnnPass().run(module)
    verify(module)
    names = op_names(module)
    assert {op: names.count(op) for op in NETWORKS[name]} == NETWORKS[name]
    assert not {"qnn.conv2d", "qnn.dense", "qnn.requantize", "qnn.clip", "qnn.add", "qnn.pad"} & set(names)
    for wanted, found in zip(expected, interpreter.run(module, inputs), strict=True):
        np.testing.assert_array_equal(wanted, found)
    DecomposeFusedPass().run(module)
    verify(module)
    assert not any(op.startswith("qnn.fused") for op in op_names(module))
    for wanted, found in zip(expected, interpreter.run(module, inputs), strict=True):
        np.testing.assert_array_equal(wanted, found)


# Thousands of ops in a row: no pass, reference or lowering takes a frame of Python's stack for each.

COUNT = 3000
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

QUANTIZED = "tensor<16x16xui8>"
SCALES = {"lhs_scale": 0.05, "rhs_scale": 0.03, "output_scale": 0.07}
POINTS = {"lhs_zero_point": 3, "rhs_zero_point": 9, "output_zero_point": 5, "output_min": 0, "output_max": 255}


def test_every_format_names_profiles_that_exist() -> None:
    named = {name for entry in FORMATS.values() for name in entry.profiles()}
    assert named <= PROFILES.keys() | ONNX_PROFILES.keys()
    assert {"tflite", "tflite-xnnpack", "ort", "pytorch", "tosa"} <= named


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())
def test_ops_take_the_attributes_of_a_profile(profile: Profile) -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        total = build(AddOp, x, x, element="ui8", **SCALES, **POINTS, **profile.sum).output
        product = build(MulOp, x, x, element="ui8", **SCALES, **POINTS, **profile.rescale).output
        how = {"input_scale": 0.05, "input_zero_point": 7, "output_scale": 1 / 256, "output_zero_point": 0}
        return [total, product, build(SigmoidOp, x, element="ui8", **how, **profile.table).output]

    module = graph([QUANTIZED], body)
    (added,) = ops_of(module, "qnn.add")
    found = (added.arithmetic, added.rounding, added.multiplier)
    assert found == (profile.addition, profile.rounding, profile.multiplier)
    x = np.arange(256, dtype=np.uint8).reshape(16, 16)
    assert len(interpreter.run(module, [x])) == 3


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())
def test_f32_values_are_quantized_by_a_profile(profile: Profile) -> None:
    def body(x: ir.Value) -> ir.Value:
        return build(QuantizeOp, x, element="i8", scales=(0.5,), zero_points=(1,), **profile.quantization).output

    (quantized,) = interpreter.run(graph(["tensor<3xf32>"], body), [np.array([0.25, -0.25, np.nan], np.float32)])
    even = profile.float_rounding == "half_even"
    at_nan = {"zero_point": 1, "zero": 0, "min": -128, "max": 127}[profile.nan]
    assert quantized.tolist() == [1 if even else 2, 1 if even else 0, at_nan]


def test_who_rounds_once() -> None:
    assert {name for name, profile in PROFILES.items() if profile.order is ActivationOrder.F32_VALUES} == {
        "pytorch",
        "onednn",
    }


def test_what_tells_the_profiles_of_one_runtime_apart() -> None:
    def kind(name: str) -> tuple[Rounding, Multiplier, AddArithmetic]:
        profile = PROFILES[name]
        return profile.rounding, profile.multiplier, profile.addition

    assert kind("tflite") == (Rounding.FIXED32_DOUBLE, Multiplier.F64, AddArithmetic.SHIFTED_FIXED)
    assert kind("tflite-xnnpack") == (Rounding.F32_RNE_ZP_LAST, Multiplier.F32, AddArithmetic.FIXED_ONCE)
    assert kind("tosa-double") == (Rounding.FIXED64_DOUBLE, Multiplier.F64, AddArithmetic.SHIFTED_DOUBLE)


# R15: MXNet computes as oneDNN does.


def test_the_arithmetic_of_onednn_is_a_profile() -> None:
    """Sums become f32, the activation works on these, and one rounding follows, the zero point before it."""
    rng, scale = np.random.default_rng(3), 0.0625
    weight = rng.integers(-128, 128, (4, 1, 1, 3)).astype(np.int8)

    def body(x: ir.Value) -> ir.Value:
        how: dict[str, Any] = {"input_scale": 0.5, "input_zero_point": 0, "weight_scales": (scale,)}
        acc = build(Conv2DOp, x, constant(weight), None, element="i32", **how).output
        real = build(DequantizeOp, acc, element="f32", scales=(0.5 * scale,), zero_points=(0,)).output
        zero = constant(np.zeros((1, 9, 9, 4), np.float32))
        activated = ir.Operation.create("arith.maximumf", results=[real.type], operands=[real, zero]).results[0]
        to: dict[str, Any] = {"scales": (3.7,), "zero_points": (0,)}
        return build(QuantizeOp, activated, element="ui8", **to, **ONEDNN.quantization).output

    module = graph(["tensor<1x9x9x3xi8>"], body)
    x = rng.integers(-128, 128, (1, 9, 9, 3)).astype(np.int8)
    acc = np.einsum("nyxc,oc->nyxo", x.astype(np.int64), weight.reshape(4, 3).astype(np.int64))
    real = np.maximum(acc.astype(np.float32) * np.float32(0.5 * scale), np.float32(0))
    wanted = np.clip(np.rint(real * (np.float32(1) / np.float32(3.7))), 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(interpreter.run(module, [x])[0], wanted)
    check(module, [x])
