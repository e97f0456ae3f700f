"""Drawn networks of convolutions, on which strategies are compared."""

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
