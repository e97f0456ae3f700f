"""Drawn networks on every kind of target: all that this machine executes, and some as plain vector ops."""

import re
from itertools import count
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdialect import target
from qdialect.aot.disassembly import disassembly
from qdialect.context import parse
from qdialect.lowering.pipeline import lower
from qdialect.reference.interpreter import run
from qdialect.runtime import compile_module
from qdialect.runtime.object_code import object_code
from qdialect.target import TARGETS, resolve

KINDS = [name for name in TARGETS if name != "generic"]
EXECUTED = [name for name in KINDS if TARGETS[name].features <= target.host_features()]
PORTABLE = [f"{name},portable" for name in KINDS if name not in EXECUTED or name in ("avx512vbmi", "avx2")]
ROUNDINGS = ("fixed64_up", "fixed32_double")


def literal(values: NDArray[Any], element: str) -> str:
    return f"dense<{values.tolist()}> : tensor<{'x'.join(map(str, values.shape))}x{element}>"


class Network:
    """The text of a chain of fused ops on small images of odd sizes, with drawn weights."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.names = (f"%v{number}" for number in count())
        self.lines: list[str] = []
        self.shape = [1, *map(int, self.rng.integers(5, 10, 2)), int(self.rng.integers(1, 9))]
        self.value, self.input = "%x", self.type

    @property
    def type(self) -> str:
        return f"tensor<{'x'.join(map(str, self.shape))}xui8>"

    def convolution(
        self, channels: int, kernel: int, stride: int = 1, groups: int = 1, *, table: bool = False, near: bool = False
    ) -> None:
        """A convolution padded to keep the size at stride 1; of some channels the weights need nine bits.

        Weights that are `near` their zero point need seven.
        """
        rng, pad, depth = self.rng, kernel // 2, self.shape[3] // groups
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


def assert_same(network: Network, names: list[str]) -> None:
    module = parse(network.text())
    image = network.rng.integers(0, 256, [int(n) for n in re.findall(r"\d+(?=x)", network.input)]).astype(np.uint8)
    wanted = run(module, [image])[0]
    assert len(np.unique(wanted)) > 3, "a network whose result depends on its input"
    for name in names:
        found = compile_module(module, target=name)(image)
        np.testing.assert_array_equal(found, wanted, err_msg=f"target {name}")


def test_every_strategy_that_this_cpu_executes_gives_the_bits_of_the_reference() -> None:
    assert_same(drawn(1), EXECUTED)


def test_portable_code_of_a_strategy_gives_the_same_bits() -> None:
    network = Network(3)
    network.convolution(21, 1, table=True)
    assert_same(network, PORTABLE)


def test_portable_code_needs_no_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "host_features", frozenset[str])
    network = Network(4)
    network.convolution(8, 1)
    assert "llvm.x86" not in str(lower(parse(network.text()), resolve("avx512vbmi,portable")).module)
    assert_same(network, ["avx512vbmi,portable"])


USED = {
    "avx512vbmi": ("zmm", {"vpdpbusd", "vpermt2b"}, set[str]()),
    "avx512vnni": ("zmm", {"vpdpbusd", "vpshufb"}, {"vpermi2b", "vpermb", "vpermt2b"}),
    "avx512bw": ("zmm", {"vpmaddwd", "vpshufb"}, {"vpdpbusd", "vpermi2b", "vpermb", "vpermt2b"}),
    "avxvnni": ("ymm", {"{vex} vpdpbusd", "vpshufb"}, set[str]()),
    "avx2": ("ymm", {"vpmaddwd", "vpshufb"}, {"vpdpbusd"}),
    "haswell": ("ymm", {"vpmaddwd", "vpshufb"}, {"vpdpbusd"}),
    "sse4.1": ("xmm", {"pmaddwd", "pshufb"}, {"vpmaddwd"}),
    "avxvnniint8": ("ymm", {"{vex} vpdpbusd", "vpshufb"}, set[str]()),
    "amxint8": ("zmm", {"vpdpbusd", "vpermt2b"}, set[str]()),
    "x86-64": ("xmm", {"pmaddwd"}, {"pshufb", "pmuldq", "vpmaddwd"}),
}


@pytest.mark.parametrize(
    ("name", "dot"),
    [("avx512bw", "vpmaddubsw"), ("avx2", "vpmaddubsw"), ("sse4.1", "pmaddubsw"), ("x86-64", "pmaddwd")],
)
def test_depthwise_layers_sum_products_in_pairs_where_there_is_no_vnni(name: str, dot: str) -> None:
    network = Network(6)
    network.shape[3] = 64
    network.value, network.input = "%x", network.type
    network.convolution(64, 3, groups=64, near=True)
    chosen = resolve(name)
    text = disassembly(object_code(lower(parse(network.text()), chosen).module, chosen))
    assert re.search(rf"\b{dot}\b", text)
    assert ("maddubsw" in text) == ("maddubsw" in dot)


@pytest.mark.parametrize("name", USED)
def test_code_has_the_registers_and_the_instructions_of_its_target(name: str) -> None:
    widest, used, unknown = USED[name]
    network = Network(5)
    network.convolution(70, 1, table=True)
    chosen = resolve(name)
    text = disassembly(object_code(lower(parse(network.text()), chosen).module, chosen))
    assert [kind for kind in ("xmm", "ymm", "zmm") if f"%{kind}" in text or kind in text][-1] == widest
    found = set(re.findall(r"(?:\{vex\} )?\b[a-z]\w+", text))
    assert used <= found
    assert not unknown & found
