"""Plans matrix products and convolutions, transposed ones too: in integers where the weight is constant and quantized.

All others are computed in float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic.block_weights import PackedWeights
from qdialect.frontends.building.checks import Array, Shape, check_scale, require, required
from qdialect.frontends.building.slices import framed
from qdialect.frontends.building.windows import Window
from qdialect.frontends.planning import block_weights, contraction, convolution
from qdialect.frontends.planning.block_weights import block_product, packed_matrix, takes_quantized_rows
from qdialect.frontends.planning.contraction import Contraction, Weight, accumulator_attributes, ordered_weight
from qdialect.frontends.planning.convolution import RANK, Layer, TransposedWindow
from qdialect.frontends.planning.elementwise import value_of_tensor
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import EIGHT_BIT, Constant, F32Tensor, Plan, known_array
from qdialect.frontends.torch.operators.pool import window_of
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports
from qdialect.frontends.torch.operators.run_time_quantization import DynamicContraction, dynamic_data_of, is_dynamic
from qdialect.frontends.torch.operators.tensors import Quantized, RunTimeQuantized
from qdialect.ir._mlir import ir


def data_of(call: Call, name: str) -> Quantized:
    """Data that a contraction can read."""
    data = call.quantized(name)
    require(data.is_eight_bit, f"argument '{name}' must be i8 or ui8 with one scale, but got {data.values.element}")
    check_scale(data.scales[0], "input scale")
    return data


def weight_of(call: Call, name: str, order: tuple[int, ...], channel_axis: int) -> Weight:
    """Constant weights with their dimensions in `order`; scales by channel lie along `channel_axis` of the model's."""
    source = call.tensor(name)
    holds = isinstance(source, Quantized) and source.values.data is not None
    require(holds, f"argument '{name}' must be quantized and constant")
    assert isinstance(source, Quantized)
    return ordered_weight(source, order, channel_axis)


def bias_of(call: Call, name: str, channels: int) -> Array | None:
    """A constant float bias."""
    tensor = call.result(name)
    if tensor is None:
        return None
    values = required(None if isinstance(tensor, tuple) else known_array(tensor), f"argument '{name}' must be constant")
    require(values.dtype == np.float32, f"bias must be f32, but got {values.dtype}")
    require(values.size in (1, channels), f"bias must have {channels} entries, but got {values.size}")
    return np.ascontiguousarray(np.broadcast_to(values.ravel(), (channels,)))


# Convolutions and matrix products that are not quantized: float32, one term added after another.
#
# PyTorch adds the terms in an order of its own, so results agree but for what float32 loses in a sum.


@dataclass(frozen=True, eq=False)
class F32Contraction(F32Tensor):
    """`contract` of the operands' values, channels last, plus a bias; `finish` brings it to the model's shape."""

    operands: tuple[F32Tensor, ...]
    bias: Array | None
    contract: Callable[[Emitter, tuple[Value, ...]], ir.Value]
    finish: Callable[[Emitter, ir.Value], Emitted]

    def _f32(self, plan: Plan, name: str) -> Value:
        values = tuple(operand.f32(plan, name) for operand in self.operands)

        def emit(emitter: Emitter) -> Emitted:
            f32 = self.contract(emitter, values)
            if self.bias is not None:
                f32 = emitter.f32("addf", f32, emitter.constant(self.bias))
            return self.finish(emitter, f32)

        return plan.compute(name, self.shape, "f32", emit)


def is_integer(call: Call, data: str, weight: str, channels: int) -> bool:
    """Whether both operands are quantized values of 8 bits, those of the weight constant, and sums are integers.

    Results lie along the axis `channels` of the weight.
    """
    left, right = call.tensor(data), call.tensor(weight)
    if not isinstance(left, Quantized) or not isinstance(right, Quantized):
        return False
    holds = left.is_eight_bit and right.values.data is not None and right.values.element in EIGHT_BIT
    return holds and contraction.sums_fit(right, [axis for axis in range(len(right.shape)) if axis != channels])


def f32_weight(call: Call, name: str) -> Array | None:
    """The numbers of a constant weight, None where it is computed."""
    tensor = call.tensor(name)
    if isinstance(tensor, Constant):
        require(tensor.array.dtype == np.float32, f"argument '{name}' must be f32, but got {tensor.array.dtype}")
    return known_array(tensor)


# linear, addmm, mm, bmm and matmul: in integers where the right matrix is constant and quantized, else in float32.


_PRODUCTS = {
    "linear": ("input", "weight", "bias"),
    "addmm": ("mat1", "mat2", "self"),
    "mm": ("self", "mat2", None),
    "bmm": ("self", "mat2", None),
    "matmul": ("self", "other", None),
}
"""By the operator: its arguments for the left matrix, the right one, and a bias."""


@imports(*(f"{name}.default" for name in _PRODUCTS))
def _product(call: Call) -> Result:
    """The right matrix of linear has a row for each output channel."""
    kind = call.node.kind.split(".")[1]
    for name in ("alpha", "beta") if kind == "addmm" else ():
        factor = call.argument(name)
        require(factor == 1, f"{name} must be 1, but got {factor}")
    return _matrix_product(call, *_PRODUCTS[kind], is_transposed=kind == "linear")


def _matrix_product(call: Call, left: str, right: str, bias: str | None, *, is_transposed: bool) -> Result:
    """`left` times `right`, which has a row for each output channel where it `is_transposed`."""
    order, axis = ((0, 1), 0) if is_transposed else ((1, 0), 1)
    at_run_time = is_dynamic(call, left, right, axis)
    if len(call.tensor(right).shape) != 2 or not (at_run_time or is_integer(call, left, right, axis)):
        return _f32_product(call, left, right, bias, is_transposed=is_transposed)
    weight = weight_of(call, right, order, axis)
    channels, depth = weight.values.shape
    values, extents = None if bias is None else bias_of(call, bias, channels), call.tensor(left).shape
    require(len(extents) >= 1, "input must have at least 1 dimension, but got 0")
    require(extents[-1] == depth, f"input must have a last extent of {depth}, but got {extents[-1]}")
    if at_run_time:
        return _dynamic_dense(call.name, dynamic_data_of(call, left), weight, values)
    return dense(call.name, data_of(call, left), weight, values)


def _f32_product(call: Call, left: str, right: str, bias: str | None, *, is_transposed: bool) -> Result:
    data, packed = call.f32(left), packed_matrix(call.tensor(right), is_transposed=is_transposed)
    matrices = [] if packed else [_f32_matrix(call, right, is_transposed=is_transposed)]
    rows = _quantized_rows(data, packed)
    shape = (packed.depth, len(packed.weight)) if packed else matrices[0].shape
    found = f"{list(data.shape)} and {list(shape)}"
    fits = min(len(data.shape), len(shape)) >= 2 and shape[:-2] in ((), data.shape[:-2])
    require(fits, f"operands must be matrices, the right one alone or one for each of the left, but got {found}")
    require(data.shape[-1] == shape[-2], f"operands must have a common extent, but got {found}")

    def contract(emitter: Emitter, values: tuple[Value, ...]) -> ir.Value:
        if rows is not None and packed is not None:
            parts = emitter.to_channels_first(rows.values), emitter.to_channels_first(rows.parameters.scale)
            return block_weights.dynamic_block_product(emitter, *parts, rows.parameters.narrow_point(emitter), packed)
        held = [emitter.to_channels_first(value) for value in values]
        return (
            block_product(emitter, held[0], packed) if packed else emitter.build(qnn.F32MatmulOp, *held, element="f32")
        )

    values = None if bias is None else bias_of(call, bias, shape[-1])
    return F32Contraction(
        (*data.shape[:-1], shape[-1]),
        () if rows else (data, *matrices),
        values,
        contract,
        _finished_product,
        name=call.name,
    )


def _quantized_rows(data: F32Tensor, weights: PackedWeights | None) -> RunTimeQuantized | None:
    """Data that are quantized to i8 by row, or as a whole, where packed weights multiply them so."""
    if not isinstance(data, RunTimeQuantized) or weights is None or not takes_quantized_rows(weights):
        return None
    return data if data.parameters.element == "i8" and not data.parameters.in_float64 else None


def _f32_matrix(call: Call, name: str, *, is_transposed: bool) -> F32Tensor:
    weight = f32_weight(call, name)
    if weight is not None:
        return as_f32(name, Constant(np.ascontiguousarray(weight.T if is_transposed else weight)))
    require(not is_transposed, f"argument '{name}' must be constant")
    return call.f32(name)


def _finished_product(_: Emitter, value: ir.Value) -> Emitted:
    return value, False


def dense(name: str, data: Quantized, weight: Weight, bias: Array | None) -> Contraction:
    """``data W^T + bias`` of quantized data [..., K] and weights [N, K]."""

    def accumulate(emitter: Emitter, whole: Array | None) -> ir.Value:
        operands = emitter.to_channels_first(data.values), emitter.constant(weight.values)
        start = None if whole is None else emitter.constant(whole)
        return emitter.build(qnn.DenseOp, *operands, start, element="i32", **accumulator_attributes(data, weight))

    shape = (*data.shape[:-1], weight.values.shape[0])
    return Contraction(shape, data, weight.scales, bias, accumulate, _finished_product, name=name)


def _dynamic_dense(name: str, data: RunTimeQuantized, weight: Weight, bias: Array | None) -> DynamicContraction:
    return DynamicContraction(
        (*data.shape[:-1], weight.values.shape[0]),
        qnn.DynamicDenseOp,
        data,
        False,
        weight,
        weight.values,
        bias,
        {},
        lambda emitter, values: emitter.to_channels_first(values),
        _finished_product,
        name=name,
    )


# _int_mm: the i32 product of two matrices of 8-bit integers that stand for themselves.


@imports("_int_mm.default")
def _integer_product(call: Call) -> Result:
    left, right = (_whole_numbers(call, name) for name in ("self", "mat2"))
    if right.values.data is not None:
        return dense(call.name, left, ordered_weight(right, (1, 0), 1), None).accumulators(call.plan, call.name)

    def emit(emitter: Emitter) -> Emitted:
        operands = (emitter.to_channels_first(operand.values) for operand in (left, right))
        return emitter.build(qnn.MatMulOp, *operands, element="i32", **accumulator_attributes(left, right)), False

    return call.plan.compute(call.name, (left.shape[0], right.shape[1]), "i32", emit)


def _whole_numbers(call: Call, name: str) -> Quantized:
    """A matrix whose quantized values count units of 1."""
    value = value_of_tensor(call, call.tensor(name))
    require(value.element in ("i8", "ui8"), f"argument '{name}' must be i8 or ui8, but got {value.element}")
    require(len(value.shape) == 2, f"argument '{name}' must have 2 dimensions, but got {len(value.shape)}")
    return Quantized(value.shape, value, (1.0,), (0,))


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
    if not is_integer(call, "input", "weight", 0):
        return _f32_convolution(call, rank)
    data, weight = data_of(call, "input"), weight_of(call, "weight", (0, *range(2, rank), 1), 0)
    window, groups = _window(call, data.shape, weight.values.shape, rank)
    channels = len(weight.values)
    layer = Layer(qnn.Conv2DOp, data, weight, convolution.attributes_of(window, groups)).over_volumes(
        call.plan, call.name, window
    )
    bias = bias_of(call, "bias", channels)
    return layer.contraction((data.shape[0], channels, *window.output), bias, call.name)


def _dynamic_convolution(call: Call, rank: int) -> Result:
    data, weight = dynamic_data_of(call, "input"), weight_of(call, "weight", (0, *range(2, rank), 1), 0)
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
        qnn.DynamicConv2DOp,
        data,
        is_padded,
        weight,
        convolution.kernels(weight.values),
        bias_of(call, "bias", channels),
        attributes,
        lambda emitter, value: framed(emitter, convolution.image(emitter, value), *flat.border),
        convolution.from_image(shape),
        name=call.name,
    )


def _f32_convolution(call: Call, rank: int) -> Result:
    data = call.f32("input")
    weight = required(f32_weight(call, "weight"), "argument 'weight' must be constant")
    require(weight.ndim == rank, f"weight must have {rank} dimensions, but got {weight.ndim}")
    last = np.ascontiguousarray(np.moveaxis(weight, 1, -1))
    window, groups = _window(call, data.shape, last.shape, rank)
    shape = (data.shape[0], len(last), *window.output)
    sums = convolution.f32_convolution(call.plan.budget, data.shape, last, window, groups)
    bias = bias_of(call, "bias", len(last))
    return F32Contraction(
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
    if of_outputs and is_integer(call, "input", "weight", 1):
        return _of_integers(call, weight_of(call, "weight", tuple(range(len(weight.shape))), 1))
    return _of_floats(call, required(f32_weight(call, "weight"), "argument 'weight' must be constant"))


def _of_integers(call: Call, weight: Weight) -> Result:
    data, (window, taps) = data_of(call, "input"), _transposed(call, weight.values)
    scales, zero_points = _of_groups(weight.scales, window.groups), _of_groups(weight.zero_points, window.groups)
    bias = bias_of(call, "bias", len(taps))
    return window.contraction(call.plan, data, Weight(taps, scales, zero_points), bias, call.name)


def _of_groups(entries: Any, groups: int) -> Any:
    """Every group has the scales of the channels of one."""
    return entries * groups if len(entries) > 1 else entries


def _of_floats(call: Call, weight: Array) -> Result:
    source, (window, taps) = call.f32("input"), _transposed(call, weight)
    sums = convolution.f32_transposed_convolution(call.plan.budget, source.shape, weight, window)
    output = call.node.outputs[0].shape
    bias, finish = bias_of(call, "bias", len(taps)), convolution.from_image(output)
    return F32Contraction(
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
