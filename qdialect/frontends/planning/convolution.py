"""Convolutions over images NCHW, rows NCL as images of height 1, and volumes NCDHW as images of their slices."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from qdialect._mlir import ir
from qdialect.dialect import Conv2DOp, ConvTranspose2DOp
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.planning.contraction import Contraction, Finish, accumulator_attributes
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.movement import move
from qdialect.frontends.planning.tensors import Plan, Quantized
from qdialect.frontends.planning.volumes import DepthTaps, taps_of_depth
from qdialect.frontends.planning.weight import RunTimeWeight, Weight
from qdialect.frontends.planning.window import Window


@dataclass(frozen=True)
class Layer:
    """A convolution of either direction; the weights are [O, ..., C / groups]."""

    op_class: type[Conv2DOp | ConvTranspose2DOp]
    data: Quantized
    weight: Weight | RunTimeWeight
    attributes: dict[str, Any]

    def contraction(self, shape: Shape, bias: Array | None, name: str | None = None) -> Contraction:
        """The f32 values of the result, which has the model's `shape`."""
        return Contraction(shape, self.data, self.weight.scales, bias, self._accumulate, from_image(shape), name=name)

    def over_volumes(self, plan: Plan, name: str, window: Window) -> Layer:
        """The same layer of images where its data and weights are volumes, `window` being that of the model.

        Raises `UnsupportedError` where the weights of several slices are known at run time only.
        """
        if len(window.kernel) < 3:
            return self
        if (window.kernel[0], window.strides[0], window.before[0], window.after[0]) == (1, 1, 0, 0):
            return self
        weight = self.weight
        require(isinstance(weight, Weight), "weight must be constant where a window reads several slices of a volume")
        assert isinstance(weight, Weight)
        movement = DepthTaps.of(self.data.shape, window, self.attributes["groups"], plan.budget)
        moved = move(plan, name, self.data, movement)
        assert isinstance(moved, Quantized)
        return replace(self, data=moved, weight=replace(weight, values=taps_of_depth(weight.values)))

    def _accumulate(self, emitter: Emitter, bias: Array | None) -> ir.Value:
        return emitter.build(
            self.op_class,
            image(emitter, self.data.values),
            self.weight.emit(emitter, kernel_shape(self.weight.shape)),
            None if bias is None else emitter.constant(bias),
            element="i32",
            **accumulator_attributes(self.data, self.weight),
            **self.attributes,
        )


def check_groups(channels: int, weight: Shape, groups: int) -> None:
    """Raise `UnsupportedError` where weights [O, ..., C / groups] cannot read as many `channels`."""
    holds = groups >= 1 and channels == groups * weight[-1]
    require(holds, f"input must have {groups} * {weight[-1]} channels, but got {channels}")
    require(weight[0] % groups == 0, f"output channels must be a multiple of {groups}, but got {weight[0]}")


def attributes_of(window: Window, groups: int) -> dict[str, Any]:
    """Those of `Conv2DOp` for a window over at most two dimensions."""
    flat = window.two_dimensional()
    return {"strides": flat.strides, "padding": flat.padding, "dilation": flat.dilation, "groups": groups}


def image(emitter: Emitter, value: Value) -> ir.Value:
    """The data as images NHWC."""
    batch, channels, *size = value.shape
    height, width = (1, *size)[-2:]
    return emitter.reshape(emitter.last(value), (batch * math.prod(size[:-2]), height, width, channels))


def kernels(weight: Array) -> Array:
    """The weights of images."""
    return weight.reshape(kernel_shape(weight.shape))


def kernel_shape(weight: Shape) -> Shape:
    """That of weights of images, from [O, ..., C / groups]."""
    return weight[0], *(1, *weight[1:-1])[-2:], weight[-1]


def from_image(shape: Shape) -> Finish:
    """Brings images NHWC to the model's `shape`."""
    last = (shape[0], *shape[2:], shape[1])
    return lambda emitter, value: (emitter.reshape(value, last), True)
