"""Drawn networks of convolutions, on which strategies are compared."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest
from drawn_graphs import graph
from numpy.typing import NDArray
from quantized_layers import add, bias_of, conv, requantize

from qdialect.dialect import MaxPool2DOp, build
from qdialect.dialect.constants import constant
from qdialect.ir import context
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.cost import variants
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.passes.outline_fused import OutlineFusedPass
from qdialect.passes.outlined import EXTERNAL
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter
from qdialect.reference.interpreter import run
from qdialect.runtime import compile_module
from qdialect.support.externals import ExternalFunction
from qdialect.targets import TARGETS, host_features, resolve

ROUNDINGS = ("fixed64_up", "fixed32_double")


def literal(values: NDArray[Any], element: str) -> str:
    return f"dense<{values.tolist()}> : tensor<{'x'.join(map(str, values.shape))}x{element}>"


class Network:
    """The text of a chain of fused ops on small images of odd sizes, with drawn weights."""

    def __init__(self, seed: int, shape: Sequence[int] | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.names = (f"%v{number}" for number in count())
        self.lines: list[str] = []
        self.shape = list(shape or (1, *map(int, self.rng.integers(5, 10, 2)), int(self.rng.integers(1, 9))))
        self.value, self.input = "%x", self.type

    @property
    def type(self) -> str:
        return f"tensor<{'x'.join(map(str, self.shape))}xui8>"

    def convolution(
        self,
        channels: int,
        kernel: int,
        stride: int = 1,
        groups: int = 1,
        *,
        table: bool = False,
        near: bool = False,
        pad: int | None = None,
    ) -> None:
        """A convolution, without `pad` padded to keep the size at stride 1; some channels' weights need nine bits.

        Weights that are `near` their zero point need seven.
        """
        rng, depth = self.rng, self.shape[3] // groups
        pad = kernel // 2 if pad is None else pad
        weights = rng.choice([0, 255, *range(60, 200)], (channels, kernel, kernel, depth))
        points = rng.choice([128, *range(256)], channels)
        if near:
            weights, points = rng.integers(64, 192, weights.shape), np.full(channels, 128)
        weight, bias = self.constant(weights, "ui8"), self.constant(rng.integers(-9999, 9999, channels), "i32")
        scale = 0.01 * 75 * 50 * kernel * np.sqrt(depth) / 60
        stages = [f'{{requantize = {{rounding = "{rng.choice(ROUNDINGS)}"}}}}']
        stages += [f"{{lut = {{table = {literal(rng.integers(-128, 128, 256), 'i8')}}}}}"] if table else []
        before, size = self.type, [(extent + 2 * pad - kernel) // stride + 1 for extent in self.shape[1:3]]
        operand, self.value, self.shape = self.value, next(self.names), [1, *size, channels]
        self.lines.append(
            f'{self.value} = "qnn.fused_conv2d"({operand}, {weight}, {bias}) {{input_scale = 0.02 : f64, '
            f"input_zero_point = {rng.integers(0, 256)} : i64, weight_scales = array<f64: 0.5>, weight_zero_points = "
            f"array<i64: {', '.join(map(str, points))}>, strides = array<i64: {stride}, {stride}>, "
            f"padding = array<i64: {pad}, {pad}, {pad}, {pad}>, groups = {groups} : i64, output_scale = {scale} : f64, "
            f"output_zero_point = {rng.integers(90, 160)} : i64, epilogue = [{', '.join(stages)}]}} : "
            f"({before}, tensor<{channels}x{kernel}x{kernel}x{depth}xui8>, tensor<{channels}xi32>) -> {self.type}"
        )

    def constant(self, values: NDArray[Any], element: str) -> str:
        name, type_ = next(self.names), f"tensor<{'x'.join(map(str, values.shape))}x{element}>"
        self.lines.append(f'{name} = "qnn.constant"() {{value = {literal(values, element)}}} : () -> {type_}')
        return name

    def text(self) -> str:
        lines = [*self.lines, f"return {self.value} : {self.type}"]
        return "\n  ".join([f"func.func @main(%x: {self.input}) -> {self.type} {{", *lines]) + "\n}\n"


def drawn(seed: int) -> Network:
    """A 3x3 convolution and a table, a depthwise one, and one of 1x1."""
    network = Network(seed)
    channels = int(network.rng.integers(33, 48))
    network.convolution(channels, 3, table=True)
    network.convolution(channels, 3, 2, channels)
    network.convolution(int(network.rng.integers(1, 90)), 1)
    return network


# Small networks as text, one for each kind of kernel: what the tests of phases lower, print, parse and run.

_REQUANTIZE = """\
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = -3 : i64, rounding = "fixed64_up", multiplier = "f64", axis = """

CONVOLUTION = f"""\
func.func @main(%x: tensor<1x6x6x4xi8> {{qnn.name = "image"}}) -> (tensor<1x6x6x8xi8> {{qnn.name = "scores"}}) {{
  %w = "qnn.constant"() {{value = dense<3> : tensor<8x3x3x4xi8>}} : () -> tensor<8x3x3x4xi8>
  %0 = "qnn.conv2d"(%x, %w) {{
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  }} : (tensor<1x6x6x4xi8>, tensor<8x3x3x4xi8>) -> tensor<1x6x6x8xi32> loc("net/conv;1")
  %1 = "qnn.requantize"(%0) {{
{_REQUANTIZE}3 : i64
  }} : (tensor<1x6x6x8xi32>) -> tensor<1x6x6x8xi8> loc("rescale")
  %2 = "qnn.sigmoid"(%1) {{
    input_scale = 2.0 : f64, input_zero_point = -3 : i64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  }} : (tensor<1x6x6x8xi8>) -> tensor<1x6x6x8xi8> loc("activation")
  return %2 : tensor<1x6x6x8xi8>
}}
"""

DEPTHWISE = f"""\
func.func @main(%x: tensor<1x6x6x8xui8>) -> tensor<1x6x6x8xi8> {{
  %w = "qnn.constant"() {{value = dense<-5> : tensor<8x3x3x1xi8>}} : () -> tensor<8x3x3x1xi8>
  %0 = "qnn.conv2d"(%x, %w) {{
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 8 : i64
  }} : (tensor<1x6x6x8xui8>, tensor<8x3x3x1xi8>) -> tensor<1x6x6x8xi32>
  %1 = "qnn.requantize"(%0) {{
{_REQUANTIZE}3 : i64
  }} : (tensor<1x6x6x8xi32>) -> tensor<1x6x6x8xi8>
  return %1 : tensor<1x6x6x8xi8>
}}
"""

MATMUL = f"""\
func.func @main(%x: tensor<2x5x12xi8>, %w: tensor<2x12x18xi8>) -> tensor<2x5x18xi8> {{
  %0 = "qnn.matmul"(%x, %w) {{
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  }} : (tensor<2x5x12xi8>, tensor<2x12x18xi8>) -> tensor<2x5x18xi32>
  %1 = "qnn.requantize"(%0) {{
{_REQUANTIZE}2 : i64
  }} : (tensor<2x5x18xi32>) -> tensor<2x5x18xi8>
  return %1 : tensor<2x5x18xi8>
}}
"""

SOFTMAX = """\
func.func @main(%x: tensor<3x21xi8>) -> tensor<3x21xi8> {
  %0 = "qnn.softmax"(%x) {
    axis = 1 : i64, input_scale = 0.1 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<3x21xi8>) -> tensor<3x21xi8>
  return %0 : tensor<3x21xi8>
}
"""

NETWORKS = {"convolution": CONVOLUTION, "depthwise": DEPTHWISE, "matmul": MATMUL, "softmax": SOFTMAX}

STATES = """
func.func @main(%rows: tensor<8x16xf32> {qnn.name = "rows", qnn.state = 0 : i64},
                %x: tensor<1x16xf32>, %i: tensor<1xi32>,
                %n: tensor<2xi64> {qnn.name = "n", qnn.state = 2 : i64, qnn.start = dense<[5, 7]> : tensor<2xi64>})
    -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<2xi64>) {
  %0 = "qnn.dynamic_scatter"(%rows, %i, %x) {reduction = "none"}
      : (tensor<8x16xf32>, tensor<1xi32>, tensor<1x16xf32>) -> tensor<8x16xf32>
  %1 = math.exp %0 : tensor<8x16xf32>
  %2 = arith.addi %n, %n : tensor<2xi64>
  return %0, %1, %2 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<2xi64>
}
"""
"""Rows of which a call writes one, and numbers that it doubles."""
DIVISIBLE = CONVOLUTION.replace("1x6x6x", "1x31x16x")
"""A network that is worth dividing among threads."""


# Networks whose fused ops go to a target, and what computes them in the place of a library.

Array = NDArray[Any]
Compute = Callable[..., Array]


def branched() -> ir.Module:
    """Four convolutions of i8 with padding, one of whose results is read by two ops, and a pool between."""

    def layer(value: ir.Value, seed: int) -> ir.Value:
        shape = (5, 3, 3, ir.RankedTensorType(value.type).shape[3])
        weight = constant(np.random.default_rng(seed).integers(-127, 127, shape, dtype=np.int8))
        return requantize(conv(value, weight=weight, bias=bias_of(seed)), "i8")

    def body(value: ir.Value) -> list[ir.Value]:
        first = layer(value, 1)
        second, third = layer(first, 2), layer(first, 3)
        joined = add(second, third, "i8")
        pooled = build(
            MaxPool2DOp, joined, element="i8", kernel=(2, 2), strides=(2, 2), output_min=-128, output_max=127
        ).output
        return [layer(pooled, 4), first]

    return graph(["tensor<1x7x6x3xi8>"], body)


def with_externs(module: ir.Module, **options: Any) -> ir.Module:
    """A copy of `module`, fused, with what fits in `options` handed to the target ``npu``."""
    copy = context.copy(module)
    PassManager.parse("fuse-qnn").run(copy)
    PassManager(OutlineFusedPass(target="npu", **options)).run(copy)
    return copy


def interpreted(module: ir.Module) -> Compute:
    """The functions of `module` that go to a target, by the reference."""
    modules = {name: _alone(module, name) for name in _names(module)}

    def compute(function: ExternalFunction, *arrays: Array) -> Array:
        return interpreter.run(modules[function.name], arrays)[0]

    return compute


def _names(module: ir.Module) -> list[str]:
    functions = [op.operation for op in module.body.operations]
    return [ir.StringAttr(f.attributes["sym_name"]).value for f in functions if EXTERNAL in f.attributes]


def _alone(module: ir.Module, name: str) -> ir.Module:
    """The function of that name as the one of a module."""
    copy = context.copy(module)
    with copy.context:
        for op in [op.operation for op in copy.body.operations]:
            if ir.StringAttr(op.attributes["sym_name"]).value != name:
                op.erase()
        (function,) = copy.body.operations
        function.operation.attributes["sym_name"] = ir.StringAttr.get("main")
        del function.operation.attributes["sym_visibility"]
        return ir.Module.parse(str(copy))


# A network whose products are multiplied in matrix tiles where the CPU has them, and what runs where it has.

AMX = resolve("amxint8")
_HAS_TILES = "amx-int8" in host_features()
with_tiles = pytest.mark.skipif(not _HAS_TILES, reason="this CPU has no matrix tiles")


def tiled() -> str:
    """Two convolutions, in tiles of several shapes, and large enough to be divided among threads."""
    drawn = Network(7, (1, 7, 35, 64))
    drawn.convolution(40, 1)
    drawn.convolution(9, 3)
    return drawn.text()


def in_tiles(text: str) -> str:
    """A module with matrix tiles in every kernel that can have them, where the target has tiles."""
    amx, module = TARGETS["amxint8"], parse(text)
    variants.set_wanted_variants(module, amx, {})
    found = [call.tunable for call in lower(module, amx, Phase.LINALG).calls if call.tunable]
    variants.set_wanted_variants(module, amx, {one.kernel: "tiles" for one in found if "tiles" in one.candidates})
    return str(module)


def network(seed: int, shape: tuple[int, ...], *layers: tuple[int, int, int]) -> Network:
    """Convolutions of so many channels, so wide, at such strides."""
    found = Network(seed, shape)
    for number, layer in enumerate(layers):
        found.convolution(*layer, table=number == 0)
    return found


def assert_same_bits(drawn: Network, shape: tuple[int, ...]) -> None:
    """Compare a network in matrix tiles with the reference, on one thread and two, and by vector ops."""
    module = parse(drawn.text())
    assert 'tdpbusd"' in str(lower(module, AMX, Phase.X86).module)
    image = drawn.rng.integers(0, 256, shape).astype(np.uint8)
    wanted = run(module, [image])[0]
    for target in ("amxint8,portable", *(("amxint8",) if _HAS_TILES else ())):
        for threads in (1, 2):
            found = compile_module(module, target=target, threads=threads)(image)
            np.testing.assert_array_equal(found, wanted)
