"""Transposed convolutions, data NCL to NCDHW, weights [C, O / groups, ...]; and what PyTorch makes of them all."""

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
from qdialect.frontends.planning.transposed_volumes import TransposedVolumes
from qdialect.frontends.planning.volumes import RANK, DepthTaps, taps_of_depth
from qdialect.frontends.planning.weight import Weight
from qdialect.frontends.planning.window import Window, effective_kernel_extent
from qdialect.frontends.torch.operators.contraction import bias_of, data_of, weight_of
from qdialect.frontends.torch.operators.convolution import convolution
from qdialect.frontends.torch.operators.f32_contraction import F32Contraction, f32_weight, is_integer
from qdialect.frontends.torch.operators.padding import Border
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.operators.volumes import convolution_of_volumes
from qdialect.frontends.torch.tensors import Quantized


@dataclass(frozen=True)
class _Layer:
    """A layer over images or volumes, their channels last; a signal is an image of height 1."""

    batch: int
    size: Shape
    taps: Array
    """[O, KH, KW, C / groups], of volumes [O, KD, KH, KW, C / groups]"""
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
    call.ignore("output_padding")
    rank = len(call.tensor("weight").shape)
    return convolution_of_volumes(call) if rank == 5 else convolution(call, rank)


@imports("conv_transpose2d.input", "conv_transpose1d.default", "conv_transpose3d.input")
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
    of_all, bias = Weight(layer.taps, scales, zero_points), bias_of(call, "bias", layer.taps.shape[0])
    if len(layer.size) == 3:
        own = layer.strides, layer.dilation, layer.padding, layer.padding, layer.extra, layer.groups
        return TransposedVolumes(*own, layer.output[2:]).contraction(call.plan, data, of_all, bias, call.name)
    return Layer(ConvTranspose2DOp, data, of_all, layer.attributes()).contraction(layer.output, bias, call.name)


def _of_groups(entries: Any, groups: int) -> Any:
    """Every group has the scales of the channels of one."""
    return entries * groups if len(entries) > 1 else entries


def _of_floats(call: Call, weight: Array) -> Result:
    """A convolution with the taps reversed, over data with zeros between its elements and around them."""
    source, layer = call.f32("input"), _layer(call, weight)
    reversed_ = np.flip(layer.taps, tuple(range(1, layer.taps.ndim - 1)))
    extent = effective_kernel_extent(layer.taps.shape[1:-1], layer.dilation)
    low = tuple(r - 1 - p for r, p in zip(extent, layer.padding, strict=True))
    # Zeros follow every element, the last one too.
    high = tuple(one + more - (s - 1) for one, more, s in zip(low, layer.extra, layer.strides, strict=True))
    border = Border((0, *low, 0), (0, *high, 0))
    depth = _depth(call, layer) if len(layer.size) == 3 else None
    taps = np.ascontiguousarray(reversed_) if depth is None else taps_of_depth(reversed_)

    def contract(emitter: Emitter, values: tuple[Value, ...]) -> ir.Value:
        whole = image(emitter, values[0]) if depth is None else emitter.last(values[0])
        data = border.filled(emitter, _spread(emitter, whole, layer), 0)
        images = data if depth is None else depth.emit(emitter, data, None)
        how = {"dilation": layer.dilation[-2:], "groups": layer.groups}
        return emitter.build(F32Conv2DOp, images, emitter.constant(taps), element="f32", **how)

    bias = bias_of(call, "bias", layer.taps.shape[0])
    return F32Contraction(layer.output, (source,), bias, contract, from_image(layer.output), name=call.name)


def _depth(call: Call, layer: _Layer) -> DepthTaps:
    """The windows over volumes that have zeros between their elements and around them."""
    ones, zeros = (1, 1, 1), (0, 0, 0)
    extent = effective_kernel_extent(layer.taps.shape[1:-1], layer.dilation)
    padded = [whole + r - 1 for whole, r in zip(layer.output[2:], extent, strict=True)]
    window = Window(layer.taps.shape[1:-1], ones, layer.dilation, zeros, zeros, layer.output[2:])
    before = (layer.batch, layer.taps.shape[-1] * layer.groups, *padded)
    return DepthTaps.of(before, window, layer.groups, call.plan.budget)


def _spread(emitter: Emitter, data: ir.Value, layer: _Layer) -> ir.Value:
    """`data` with zeros behind each element, as many as a stride lacks."""
    channels = layer.taps.shape[-1] * layer.groups
    single = (extent for size in layer.size for extent in (size, 1))
    added = (extent for stride in layer.strides for extent in (0, stride - 1))
    border = Border((0,) * (2 + 2 * len(layer.size)), (0, *added, 0))
    apart = emitter.reshape(data, (layer.batch, *single, channels))
    spread = (size * stride for size, stride in zip(layer.size, layer.strides, strict=True))
    return emitter.reshape(border.filled(emitter, apart, 0), (layer.batch, *spread, channels))


def _layer(call: Call, weight: Array) -> _Layer:
    shape, rank = call.tensor("input").shape, weight.ndim
    require(len(shape) in (3, 4, RANK), f"input must have 3 to 5 dimensions, but got {len(shape)}")
    require(rank == len(shape), f"weight must have {len(shape)} dimensions, but got {rank}")
    (groups,) = call.integers("groups", 1)
    inputs, share, *kernel = weight.shape
    require(inputs == shape[1], f"weight must have {shape[1]} inputs, but got {inputs}")
    require(groups >= 1 and inputs % groups == 0, f"groups must divide {inputs} channels, but got {groups}")
    flat = max(4 - rank, 0)
    apart = weight.reshape(groups, inputs // groups, share, *(1,) * flat, *kernel)
    taps = np.ascontiguousarray(np.moveaxis(apart, 1, -1)).reshape(groups * share, *apart.shape[3:], -1)
    strides, dilation, extra, padding = (
        call.integers(name, rank - 2) for name in ("stride", "dilation", "output_padding", "padding")
    )
    smallest = min(*strides, *dilation, *(amount + 1 for amount in (*extra, *padding)))
    require(smallest >= 1, "stride and dilation must be at least 1 and padding at least 0")
    ones, zeros = (1,) * flat, (0,) * flat
    size = (*ones, *shape[2:])
    own = (*ones, *strides), (*zeros, *padding), (*zeros, *extra), (*ones, *dilation)
    return _Layer(shape[0], size, taps, groups, *own, call.node.outputs[0].shape)
