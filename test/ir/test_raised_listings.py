"""Covers R3, R16: a convolution and its leaky_relu as they reach code generation, typed literally, are one kernel.

The float form multiplies, adds, floors, casts and clips, then divides and rounds; the integer form multiplies, shifts,
compares and selects.  What a listing means is computed here, op by op in plain NumPy.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from drawn_graphs import Array, drawn_epilogue, drawn_graph, op_names

from qdialect import CompileError, compile, parse
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.pattern import explain_matches
from qdialect.runtime import Executable

F32 = np.float32


@dataclass(frozen=True)
class Layer:
    """A convolution of one image whose kernel is as wide as the image."""

    height: int
    width: int
    depth: int
    channels: int
    taps: int

    @property
    def rows(self) -> int:
        return self.height - self.taps + 1

    def tensor(self, element: str) -> str:
        return f"tensor<1x{self.rows}x1x{self.channels}x{element}>"

    def weights(self) -> Array:
        rng = np.random.default_rng(5)
        return rng.integers(-127, 128, (self.channels, self.taps, self.width, self.depth), dtype=np.int8)

    def image(self) -> Array:
        rng = np.random.default_rng(6)
        return rng.integers(0, 256, (1, self.height, self.width, self.depth), dtype=np.uint8)

    def accumulators(self, image: Array, zero_point: int) -> Array:
        """The convolution as int32[1, rows, 1, channels]."""
        weights = self.weights().astype(np.int64).reshape(self.channels, -1)
        wide = image.astype(np.int64) - zero_point
        windows = [wide[0, y : y + self.taps].reshape(-1) for y in range(self.rows)]
        return (np.stack(windows) @ weights.T).astype(np.int32).reshape(1, self.rows, 1, self.channels)


SMALL, FULL = Layer(6, 8, 4, 16, 2), Layer(20, 64, 4, 16, 4)
LAYERS = pytest.mark.parametrize("layer", [SMALL, FULL], ids=["small", "full"])


def hexadecimal(array: Array) -> str:
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}">'


def convolution(layer: Layer, zero_point: int) -> str:
    shape = "x".join(map(str, layer.weights().shape))
    data = f"tensor<1x{layer.height}x{layer.width}x{layer.depth}xui8>"
    return f"""
      %w = "qnn.constant"() {{value = {hexadecimal(layer.weights())} : tensor<{shape}xi8>}} : () -> tensor<{shape}xi8>
      %0 = "qnn.conv2d"(%x, %w) {{dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.02 : f64,
        input_zero_point = {zero_point} : i64, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>,
        weight_scales = array<f64: 0.005>, weight_zero_points = array<i64: 0>
      }} : ({data}, tensor<{shape}xi8>) -> {layer.tensor("i32")}"""


def function(layer: Layer, body: str) -> str:
    data = f"tensor<1x{layer.height}x{layer.width}x{layer.depth}xui8>"
    return f"func.func @main(%x: {data}) -> {layer.tensor('ui8')} {{{body}\n}}"


def by_channel(layer: Layer, name: str, values: Array, element: str) -> str:
    shape = f"array<i64: 1, {layer.rows}, 1, {layer.channels}>"
    row = f"tensor<{layer.channels}x{element}>"
    return f"""
      %{name}c = "qnn.constant"() {{value = {hexadecimal(values)} : {row}}} : () -> {row}
      %{name} = "qnn.broadcast"(%{name}c) {{shape = {shape}}} : ({row}) -> {layer.tensor(element)}"""


def float_constants(layer: Layer) -> tuple[Array, Array, Array]:
    """Subtrahends of accumulators, their addends and their factors."""
    rng = np.random.default_rng(7)
    lost, gained = (rng.integers(-9000, 9000, layer.channels, dtype=np.int32) for _ in range(2))
    return lost, gained, np.full(layer.channels, 5.644200719e-04, F32)


def float_listing(layer: Layer) -> str:
    lost, gained, factors = float_constants(layer)
    i1, i8, i32, f32, ui8 = (layer.tensor(e) for e in ("i1", "i8", "i32", "f32", "ui8"))
    constants = (
        by_channel(layer, "p2", lost, "i32") + by_channel(layer, "p3", gained, "i32")
        + by_channel(layer, "p4", factors, "f32")
    )  # fmt: skip
    return function(
        layer,
        f"""{convolution(layer, 0)}{constants}
      %h = arith.constant dense<102.5> : {f32}
      %z = arith.constant dense<0> : {i32}
      %m = arith.constant dense<255> : {i32}
      %zp = arith.constant dense<102> : {i32}
      %s = arith.constant dense<0.177173> : {f32}
      %f0 = arith.constant dense<0.0> : {f32}
      %al = arith.constant dense<0.01> : {f32}
      %d = arith.constant dense<0.0350804> : {f32}
      %p5 = arith.constant dense<7.0> : {f32}
      %f255 = arith.constant dense<255.0> : {f32}
      %1 = arith.subi %0, %p2 : {i32}
      %2 = arith.addi %1, %p3 : {i32}
      %3 = arith.sitofp %2 : {i32} to {f32}
      %4 = arith.mulf %3, %p4 : {f32}
      %5 = arith.addf %4, %h : {f32}
      %6 = math.floor %5 : {f32}
      %7 = arith.fptosi %6 : {f32} to {i32}
      %80 = arith.maxsi %7, %z : {i32}
      %8 = arith.minsi %80, %m : {i32}
      %9 = arith.subi %8, %zp : {i32}
      %10 = arith.sitofp %9 : {i32} to {f32}
      %11 = arith.mulf %10, %s : {f32}
      %c12 = arith.cmpf olt, %11, %f0 : {f32}
      %m12 = arith.mulf %11, %al : {f32}
      %12 = arith.select %c12, %m12, %11 : {i1}, {f32}
      %13 = arith.divf %12, %d : {f32}
      %14 = math.round %13 : {f32}
      %15 = arith.addf %14, %p5 : {f32}
      %m16 = arith.maximumf %15, %f0 : {f32}
      %16 = arith.minimumf %m16, %f255 : {f32}
      %17 = arith.fptosi %16 : {f32} to {i32}
      %18 = arith.trunci %17 : {i32} to {i8}
      %19 = tensor.bitcast %18 : {i8} to {ui8}
      return %19 : {ui8}""",
    )


def float_meaning(layer: Layer, image: Array) -> Array:
    lost, gained, factors = float_constants(layer)
    v2 = layer.accumulators(image, 0) - lost + gained
    v5 = v2.astype(F32) * factors + F32(102.5)
    v8 = np.minimum(np.maximum(np.floor(v5).astype(np.int32), 0), 255)
    v11 = (v8 - 102).astype(F32) * F32(0.177173)
    v12 = np.where(v11 < 0, v11 * F32(0.01), v11)
    v13 = v12 / F32(0.0350804)
    # Ties away from zero; float64 holds the sum.
    v14 = np.copysign(np.floor(np.abs(v13.astype(np.float64)) + 0.5), v13).astype(F32)
    v16 = np.minimum(np.maximum(v14 + F32(7), F32(0)), F32(255))
    return v16.astype(np.int32).astype(np.uint8)


def integer_listing(layer: Layer) -> str:
    i1, i8, i32, i64, f32, ui8 = (layer.tensor(e) for e in ("i1", "i8", "i32", "i64", "f32", "ui8"))
    return function(
        layer,
        f"""{convolution(layer, 121)}
      %f = arith.constant dense<5.644200719e-04> : {f32}
      %h = arith.constant dense<103.5> : {f32}
      %m = arith.constant dense<1374389535> : {i64}
      %r = arith.constant dense<68719476736> : {i64}
      %s = arith.constant dense<37> : {i64}
      %zp = arith.constant dense<103> : {i32}
      %p6 = arith.constant dense<102> : {i32}
      %z = arith.constant dense<0> : {i32}
      %mx = arith.constant dense<255> : {i32}
      %3 = arith.sitofp %0 : {i32} to {f32}
      %4 = arith.mulf %3, %f : {f32}
      %5 = arith.addf %4, %h : {f32}
      %6 = math.floor %5 : {f32}
      %7 = arith.fptosi %6 : {f32} to {i32}
      %min8 = arith.minsi %7, %mx : {i32}
      %8 = arith.maxsi %min8, %z : {i32}
      %e = arith.extsi %8 : {i32} to {i64}
      %mul9 = arith.muli %e, %m : {i64}
      %rnd9 = arith.addi %mul9, %r : {i64}
      %shr9 = arith.shrsi %rnd9, %s : {i64}
      %9 = arith.trunci %shr9 : {i64} to {i32}
      %10 = arith.cmpi slt, %8, %zp : {i32}
      %11 = arith.addi %9, %p6 : {i32}
      %12 = arith.select %10, %11, %8 : {i1}, {i32}
      %max13 = arith.maxsi %12, %z : {i32}
      %13 = arith.minsi %max13, %mx : {i32}
      %14 = arith.trunci %13 : {i32} to {i8}
      %15 = tensor.bitcast %14 : {i8} to {ui8}
      return %15 : {ui8}""",
    )


def integer_meaning(layer: Layer, image: Array) -> Array:
    v5 = layer.accumulators(image, 121).astype(F32) * F32(5.644200719e-04) + F32(103.5)
    v8 = np.maximum(np.minimum(np.floor(v5).astype(np.int32), 255), 0)
    v9 = ((v8.astype(np.int64) * 1374389535 + 68719476736) >> 37).astype(np.int32)
    v12 = np.where(v8 < 103, v9 + 102, v8)
    return np.minimum(np.maximum(v12, 0), 255).astype(np.uint8)


FORMS = pytest.mark.parametrize(
    ("listing", "meaning"),
    [(float_listing, float_meaning), (integer_listing, integer_meaning)],
    ids=["float", "integer"],
)


@LAYERS
@FORMS
def test_a_listing_is_one_kernel_with_its_own_bits(listing: Any, meaning: Any, layer: Layer) -> None:
    module = parse(listing(layer))
    compiled = compile(module)
    assert _kernels(compiled) == ["qnn.fused_conv2d"]
    image = layer.image()
    wanted = meaning(layer, image)
    assert len(np.unique(wanted)) > 20
    np.testing.assert_array_equal(compiled(image), wanted)


def _kernels(compiled: Executable) -> list[str]:
    """The image becomes words where a CPU has no dot product of bytes."""
    return [call.label for call in compiled.calls if call.label != "words"]


@FORMS
def test_a_listing_is_one_fused_op_and_nothing_is_left_to_explain(listing: Any, meaning: Any) -> None:
    module = parse(listing(SMALL))
    with explain_matches() as remarks:
        FuseQnnPass().run(module)
    assert op_names(module) == ["qnn.fused_conv2d"]
    assert [remark.message for remark in remarks] == []


def test_the_float_form_may_round_to_even() -> None:
    text = (
        float_listing(SMALL).replace("%6 = math.floor", "%6 = math.roundeven").replace("dense<102.5>", "dense<102.0>")
    )
    image = SMALL.image()
    lost, gained, factors = float_constants(SMALL)
    v5 = (SMALL.accumulators(image, 0) - lost + gained).astype(F32) * factors + F32(102)
    v11 = (np.clip(np.rint(v5).astype(np.int32), 0, 255) - 102).astype(F32) * F32(0.177173)
    v13 = np.where(v11 < 0, v11 * F32(0.01), v11) / F32(0.0350804)
    v14 = np.copysign(np.floor(np.abs(v13.astype(np.float64)) + 0.5), v13).astype(F32)
    compiled = compile(parse(text))
    assert _kernels(compiled) == ["qnn.fused_conv2d"]
    np.testing.assert_array_equal(compiled(image), np.clip(v14 + F32(7), 0, 255).astype(np.uint8))


def test_a_rounding_of_no_requantization_is_named_with_its_reason() -> None:
    module = parse(float_listing(SMALL).replace("dense<102.5>", "dense<102.3>"))
    with pytest.raises(CompileError, match=r"math\.round"):
        compile(module)
    with explain_matches() as remarks:
        FuseQnnPass().run(module)
    (reason,) = [remark.message for remark in remarks]
    assert reason.startswith(
        "[raise-requantize] 'tensor.bitcast' depends on 'arith.minsi', which must round as a requantization does"
    )


# Covers R16: drawn element-wise graphs, compiled, against the same ops in plain NumPy.
#
# From 8 bits any graph is one table; from accumulators one that rounds as some requantization does is one kernel.


@pytest.mark.parametrize("seed", range(24))
def test_a_graph_between_bytes_is_a_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, element = (str(rng.choice(["i8", "ui8"])) for _ in range(2))
    text, image, wanted = drawn_graph(rng, source, element)
    wanted = np.broadcast_to(wanted, image.shape)
    module = parse(text)
    np.testing.assert_array_equal(compile(module)(image), wanted)
    FuseQnnPass().run(module)
    assert op_names(module) in (["qnn.lut"], ["qnn.clip"], []), text


@pytest.mark.parametrize("seed", range(24))
def test_a_requantization_written_out_is_one_kernel(seed: int) -> None:
    rng = np.random.default_rng(seed)
    element = str(rng.choice(["i8", "ui8"]))
    text, image, wanted = drawn_epilogue(rng, element)
    module = parse(text)
    FuseQnnPass().run(module)
    assert op_names(module) == ["qnn.fused_dense"], text
    np.testing.assert_array_equal(compile(module)(image), wanted)
