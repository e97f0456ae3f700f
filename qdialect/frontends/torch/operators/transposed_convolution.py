"""conv_transpose1d and conv_transpose2d: data NCL or NCHW, weights [C, O / groups, ...]; and what both are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import ConvTranspose2DOp, F32Conv2DOp
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.planning.convolution import Layer, from_image, image
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.weight import Weight
from qdialect.frontends.planning.window import effective_kernel_extent
from qdialect.frontends.torch.operators.contraction import bias_of, data_of, weight_of
from qdialect.frontends.torch.operators.convolution import convolution
from qdialect.frontends.torch.operators.f32_contraction import F32Contraction, f32_weight, is_integer
from qdialect.frontends.torch.operators.padding import Border
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.operators.volumes import convolution_of_volumes
from qdialect.frontends.torch.tensors import Quantized


@dataclass(frozen=True)
class _Layer:
    """A layer over images, their channels last; a signal is an image of height 1."""

    batch: int
    size: Shape
    taps: Array
    """[O, KH, KW, C / groups]"""
    groups: int
    strides: Shape
    padding: Shape
    extra: Shape
    dilation: Shape
    output: Shape
    """Of the node."""

    def attributes(self) -> dict[str, Any]:
        """Of the op."""
        return {
            "strides": self.strides,
            "padding": (*self.padding, *self.padding),
            "output_padding": self.extra,
            "dilation": self.dilation,
            "groups": self.groups,
        }


@imports("convolution.default")
def _either(call: Call) -> Result:
    """What PyTorch makes of all convolutions."""
    if call.argument("transposed"):
        return _transposed_convolution(call)
    rank = len(call.tensor("weight").shape)
    return convolution_of_volumes(call) if rank == 5 else convolution(call, rank)


@imports("conv_transpose2d.input", "conv_transpose1d.default")
def _transposed_convolution(call: Call) -> Result:
    """Of integers where scales, if there are several, lie along the output channels; else of float32."""
    weight = call.tensor("weight")
    of_outputs = isinstance(weight, Quantized) and (len(weight.scales) == 1 or weight.axis == 1)
    if of_outputs and is_integer(call, "input", "weight"):
        return _of_integers(call, weight_of(call, "weight", tuple(range(len(weight.shape))), 1))
    values = f32_weight(call, "weight")
    require(values is not None, "argument 'weight' must be constant")
    assert values is not None
    return _of_floats(call, values)


def _of_integers(call: Call, weight: Weight) -> Result:
    data, layer = data_of(call, "input"), _layer(call, weight.values)
    scales, zero_points = _of_groups(weight.scales, layer.groups), _of_groups(weight.zero_points, layer.groups)
    of_all = Layer(ConvTranspose2DOp, data, Weight(layer.taps, scales, zero_points), layer.attributes())
    return of_all.contraction(layer.output, bias_of(call, "bias", layer.taps.shape[0]), call.name)


def _of_groups(entries: Any, groups: int) -> Any:
    """Every group has the scales of the channels of one."""
    return entries * groups if len(entries) > 1 else entries


def _of_floats(call: Call, weight: Array) -> Result:
    """A convolution with the taps reversed, over data with zeros between its elements and around them."""
    source, layer = call.f32("input"), _layer(call, weight)
    reversed_ = np.ascontiguousarray(layer.taps[:, ::-1, ::-1])
    extent = effective_kernel_extent(layer.taps.shape[1:3], layer.dilation)
    low = tuple(r - 1 - p for r, p in zip(extent, layer.padding, strict=True))
    # Zeros follow every element, the last one too.
    high = tuple(one + more - (s - 1) for one, more, s in zip(low, layer.extra, layer.strides, strict=True))
    border = Border((0, *low, 0), (0, *high, 0))

    def contract(emitter: Emitter, values: tuple[Value, ...]) -> ir.Value:
        data = border.filled(emitter, _spread(emitter, image(emitter, values[0]), layer), 0)
        how = {"dilation": layer.dilation, "groups": layer.groups}
        return emitter.build(F32Conv2DOp, data, emitter.constant(reversed_), element="f32", **how)

    bias = bias_of(call, "bias", layer.taps.shape[0])
    return F32Contraction(layer.output, (source,), bias, contract, from_image(layer.output), name=call.name)


def _spread(emitter: Emitter, data: ir.Value, layer: _Layer) -> ir.Value:
    """`image` with zeros behind each element, as many as a stride lacks."""
    (height, width), (down, across) = layer.size, layer.strides
    channels = layer.taps.shape[3] * layer.groups
    apart = emitter.reshape(data, (layer.batch, height, 1, width, 1, channels))
    border = Border((0,) * 6, (0, 0, down - 1, 0, across - 1, 0))
    return emitter.reshape(border.filled(emitter, apart, 0), (layer.batch, height * down, width * across, channels))


def _layer(call: Call, weight: Array) -> _Layer:
    shape, rank = call.tensor("input").shape, weight.ndim
    require(len(shape) == rank and rank in (3, 4), f"input must have {rank} dimensions, 3 or 4, but got {len(shape)}")
    (groups,) = call.integers("groups", 1)
    inputs, share, *kernel = weight.shape
    require(inputs == shape[1], f"weight must have {shape[1]} inputs, but got {inputs}")
    require(groups >= 1 and inputs % groups == 0, f"groups must divide {inputs} channels, but got {groups}")
    flat = 4 - rank
    apart = weight.reshape(groups, inputs // groups, share, *(1,) * flat, *kernel)
    taps = np.ascontiguousarray(apart.transpose(0, 2, 3, 4, 1)).reshape(groups * share, *apart.shape[3:], -1)
    strides, dilation, extra, padding = (
        call.integers(name, rank - 2) for name in ("stride", "dilation", "output_padding", "padding")
    )
    smallest = min(*strides, *dilation, *(amount + 1 for amount in (*extra, *padding)))
    require(smallest >= 1, "stride and dilation must be at least 1 and padding at least 0")
    ones, zeros = (1,) * flat, (0,) * flat
    size = (*ones, *shape[2:])
    own = (*ones, *strides), (*zeros, *padding), (*zeros, *extra), (*ones, *dilation)
    return _Layer(shape[0], size, taps, groups, *own, call.node.outputs[0].shape)
