"""Plans convolutions over one to three dimensions, transposed ones too."""

from __future__ import annotations

from typing import Any

import numpy as np

from qdialect.dialect import Conv2DOp, DynamicConv2DOp
from qdialect.frontends.building.checks import Array, Shape, require, required
from qdialect.frontends.building.slices import framed
from qdialect.frontends.building.windows import Window
from qdialect.frontends.planning import convolution
from qdialect.frontends.planning.contraction import Weight
from qdialect.frontends.planning.convolution import RANK, Layer, TransposedWindow
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.torch.operators import contraction
from qdialect.frontends.torch.operators.pool import window_of
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.operators.run_time_quantization import DynamicContraction, dynamic_data_of, is_dynamic
from qdialect.frontends.torch.operators.tensors import Quantized

# conv1d, conv2d and conv3d: data NCL to NCDHW, weights OIL to OIDHW.
#
# The slices of a window along the depth become channels of an image, so that one convolution over images sums them up.


@imports(*(f"conv{rank}d.{overload}" for rank in (1, 2, 3) for overload in ("default", "padding")))
def _convolution(call: Call) -> Result:
    """Of integers where data and weights are quantized, else of float32."""
    rank = len(call.tensor("weight").shape)
    require(3 <= rank <= RANK, f"input must have 3 to 5 dimensions, but got {rank}")
    if rank < RANK and is_dynamic(call, "input", "weight", 0):
        return _dynamic_convolution(call, rank)
    if not contraction.is_integer(call, "input", "weight", 0):
        return _f32_convolution(call, rank)
    data, weight = contraction.data_of(call, "input"), contraction.weight_of(call, "weight", (0, *range(2, rank), 1), 0)
    window, groups = _window(call, data.shape, weight.values.shape, rank)
    channels = len(weight.values)
    layer = Layer(Conv2DOp, data, weight, convolution.attributes_of(window, groups)).over_volumes(
        call.plan, call.name, window
    )
    bias = contraction.bias_of(call, "bias", channels)
    return layer.contraction((data.shape[0], channels, *window.output), bias, call.name)


def _dynamic_convolution(call: Call, rank: int) -> Result:
    data, weight = dynamic_data_of(call, "input"), contraction.weight_of(call, "weight", (0, *range(2, rank), 1), 0)
    window, groups = _window(call, data.shape, weight.values.shape, rank)
    is_padded = any(window.padding)
    if not data.parameters.is_of_tensor or (is_padded and data.source is None):
        return _f32_convolution(call, rank)
    channels = len(weight.values)
    shape = (data.shape[0], channels, *window.output)
    attributes = convolution.attributes_of(window, groups)
    del attributes["padding"]
    flat = window.two_dimensional()
    return DynamicContraction(
        shape,
        DynamicConv2DOp,
        data,
        is_padded,
        weight,
        convolution.kernels(weight.values),
        contraction.bias_of(call, "bias", channels),
        attributes,
        lambda emitter, value: framed(emitter, convolution.image(emitter, value), *flat.border),
        convolution.from_image(shape),
        name=call.name,
    )


def _f32_convolution(call: Call, rank: int) -> Result:
    data = call.f32("input")
    weight = required(contraction.f32_weight(call, "weight"), "argument 'weight' must be constant")
    require(weight.ndim == rank, f"weight must have {rank} dimensions, but got {weight.ndim}")
    last = np.ascontiguousarray(np.moveaxis(weight, 1, -1))
    window, groups = _window(call, data.shape, last.shape, rank)
    shape = (data.shape[0], len(last), *window.output)
    sums = convolution.f32_convolution(call.plan.budget, data.shape, last, window, groups)
    bias = contraction.bias_of(call, "bias", len(last))
    return contraction.F32Contraction(
        shape,
        (data,),
        bias,
        lambda emitter, values: sums(emitter, values[0]),
        convolution.from_image(shape),
        name=call.name,
    )


def _window(call: Call, data: Shape, weight: Shape, rank: int) -> tuple[Window, int]:
    """The window of weights [O, ..., C / groups] over the data, and the number of groups."""
    require(len(data) == rank, f"input must have {rank} dimensions, but got {len(data)}")
    (groups,) = call.integers("groups", 1)
    convolution.check_groups(data[1], weight, groups)
    return window_of(call, data[2:], weight[1:-1], dilated=True), groups


# Transposed convolutions, data NCL to NCDHW, weights [C, O / groups, ...]; and what PyTorch makes of them all.


@imports("convolution.default")
def _either(call: Call) -> Result:
    """The operator that all convolutions of PyTorch become."""
    if call.argument("transposed"):
        return _transposed_convolution(call)
    call.ignore("output_padding")
    return _convolution(call)


@imports("conv_transpose2d.input", "conv_transpose1d.default", "conv_transpose3d.input")
def _transposed_convolution(call: Call) -> Result:
    """Of integers where scales, if there are several, lie along the output channels; else of float32."""
    weight = call.tensor("weight")
    of_outputs = isinstance(weight, Quantized) and (len(weight.scales) == 1 or weight.axis == 1)
    if of_outputs and contraction.is_integer(call, "input", "weight", 1):
        return _of_integers(call, contraction.weight_of(call, "weight", tuple(range(len(weight.shape))), 1))
    return _of_floats(call, required(contraction.f32_weight(call, "weight"), "argument 'weight' must be constant"))


def _of_integers(call: Call, weight: Weight) -> Result:
    data, (window, taps) = contraction.data_of(call, "input"), _transposed(call, weight.values)
    scales, zero_points = _of_groups(weight.scales, window.groups), _of_groups(weight.zero_points, window.groups)
    bias = contraction.bias_of(call, "bias", len(taps))
    return window.contraction(call.plan, data, Weight(taps, scales, zero_points), bias, call.name)


def _of_groups(entries: Any, groups: int) -> Any:
    """Every group has the scales of the channels of one."""
    return entries * groups if len(entries) > 1 else entries


def _of_floats(call: Call, weight: Array) -> Result:
    source, (window, taps) = call.f32("input"), _transposed(call, weight)
    sums = convolution.f32_transposed_convolution(call.plan.budget, source.shape, weight, window)
    output = call.node.outputs[0].shape
    bias, finish = contraction.bias_of(call, "bias", len(taps)), convolution.from_image(output)
    return contraction.F32Contraction(
        output, (source,), bias, lambda emitter, values: sums(emitter, values[0]), finish, name=call.name
    )


def _transposed(call: Call, weight: Array) -> tuple[TransposedWindow, Array]:
    """The window of a layer, and its taps [O, ..., C / groups]."""
    shape, rank = call.tensor("input").shape, weight.ndim
    require(len(shape) in (3, 4, RANK), f"input must have 3 to 5 dimensions, but got {len(shape)}")
    require(rank == len(shape), f"weight must have {len(shape)} dimensions, but got {rank}")
    (groups,) = call.integers("groups", 1)
    inputs, share, *kernel = weight.shape
    require(inputs == shape[1], f"weight must have {shape[1]} inputs, but got {inputs}")
    require(groups >= 1 and inputs % groups == 0, f"groups must divide {inputs} channels, but got {groups}")
    apart = weight.reshape(groups, inputs // groups, share, *kernel)
    taps = np.ascontiguousarray(np.moveaxis(apart, 1, -1)).reshape(groups * share, *apart.shape[3:], -1)
    strides, dilation, extra, padding = (
        call.integers(name, rank - 2) for name in ("stride", "dilation", "output_padding", "padding")
    )
    smallest = min(*strides, *dilation, *(amount + 1 for amount in (*extra, *padding)))
    require(smallest >= 1, "stride and dilation must be at least 1 and padding at least 0")
    output = call.node.outputs[0].shape[2:]
    return TransposedWindow(strides, dilation, padding, output, groups, padding, extra), taps
