"""What several planners ask of a node's tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray

from qdialect.dialect.attribute_kinds import LARGEST_SCALE
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends import common
from qdialect.frontends.common import require
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.reader import read_options
from qdialect.quant_math import Multiplier, real_multiplier

EIGHT_BIT = ("i8", "ui8")
# Axes, extents and amounts are a few for each dimension.
_MAX_ENTRIES = 1024
# A larger factor would need a left shift of more bits than an accumulator has.
_LARGEST_FACTOR = 2.0**30


def operands(operator: Operator, minimum: int, maximum: int | None = None) -> tuple[Tensor, ...]:
    """The inputs of a node with one output and `minimum` to `maximum` inputs, omitted trailing ones left out."""
    present = operands_of_many(operator, minimum, maximum)
    require(len(operator.outputs) == 1, f"must have 1 output, but got {len(operator.outputs)}")
    return present


def operands_of_many(operator: Operator, minimum: int, maximum: int | None = None) -> tuple[Tensor, ...]:
    """As `operands`, of a node with at least one output."""
    present = [tensor for tensor in operator.inputs if tensor is not None]
    maximum = maximum or minimum
    in_front = all(tensor is not None for tensor in operator.inputs[: len(present)])
    count = str(minimum) if minimum == maximum else f"{minimum} to {maximum}"
    require(
        in_front and minimum <= len(present) <= maximum, f"must have {count} inputs, but got {len(operator.inputs)}"
    )
    require(len(operator.outputs) >= 1, "must have at least 1 output, but got 0")
    return tuple(present)


def dense_options(operator: Operator) -> tuple[int, bool]:
    """The fused activation of FULLY_CONNECTED, and whether floats are quantized around a zero point.

    The output must have the shape that the options and the other tensors give it.
    """

    def read(options: tflite.FullyConnectedOptions) -> tuple[int, int, bool, bool]:
        is_asymmetric, keeps = bool(options.AsymmetricQuantizeInputs()), bool(options.KeepNumDims())
        return options.FusedActivationFunction(), options.WeightsFormat(), is_asymmetric, keeps

    activation, weights_format, is_asymmetric, keeps = read_options(operator, tflite.FullyConnectedOptions, read)
    default = tflite.FullyConnectedOptionsWeightsFormat.DEFAULT
    require(weights_format == default, f"weights format {weights_format} is not supported")
    data, weight, *_ = operands(operator, 2, 3)
    require(len(weight.shape) == 2, f"weight must have 2 dimensions, but got {len(weight.shape)}")
    channels, depth = weight.shape
    elements = math.prod(data.shape)
    require(depth >= 1 and elements % depth == 0, f"input must have a multiple of {depth} elements, but got {elements}")
    wanted, found = (*(data.shape[:-1] if keeps else (elements // depth,)), channels), operator.outputs[0].shape
    require(found == wanted, f"output must have the shape {list(wanted)}, but got {list(found)}")
    return activation, is_asymmetric


def eight_bit(tensor: Tensor, what: str) -> Tensor:
    """`tensor`, which has to be 8-bit with one scale and zero point."""
    require(tensor.element in EIGHT_BIT, f"{what} must be i8 or ui8, but got {tensor.element}")
    require(len(tensor.scales) == 1, f"{what} must have one scale, but got {len(tensor.scales)}")
    check_scales(tensor, what)
    low, high = quantized_range(tensor)
    holds = low <= tensor.zero_point <= high
    require(holds, f"{what} zero point must be in [{low}, {high}], but got {tensor.zero_point}")
    return tensor


def constant(tensor: Tensor, what: str) -> NDArray[Any]:
    """The data of a tensor that has to be constant."""
    require(tensor.data is not None, f"{what} must be constant")
    assert tensor.data is not None
    return tensor.data


def integers(tensor: Tensor, what: str, maximum: int = _MAX_ENTRIES) -> tuple[int, ...]:
    """The entries of a constant i32 or i64 tensor, which are at most `maximum`: any number of nodes may share it."""
    require(tensor.element in ("i32", "i64"), f"{what} must be i32 or i64, but got {tensor.element}")
    entries = constant(tensor, what)
    require(entries.size <= maximum, f"{what} must have at most {maximum} entries, but got {entries.size}")
    return tuple(entries.ravel().tolist())


def bounded(tensor: Tensor) -> Tensor:
    """`tensor`, a scale that is too large for the dialect as the largest one, where that makes no difference."""
    is_wide = len(tensor.scales) == 1 and LARGEST_SCALE < tensor.scale < np.inf
    return replace(tensor, scales=(LARGEST_SCALE,)) if is_wide else tensor


def same_type(operator: Operator, *tensors: Tensor) -> None:
    """All tensors have the element type of the node's output."""
    output = operator.outputs[0].element
    for tensor in tensors:
        require(
            tensor.element == output, f"inputs and output must have one type, but got {tensor.element} and {output}"
        )


def same_quantization(operator: Operator, tensor: Tensor) -> None:
    """`tensor` has the type, scale and zero point of the node's 8-bit output."""
    same_content(tensor, eight_bit(operator.outputs[0], "output"))


def same_content(tensor: Tensor, output: Tensor) -> None:
    """`tensor` and `output` have the same element type and, if they are quantized, the same scale and zero point."""
    found, wanted = tensor.element, output.element
    require(wanted in NUMPY_DTYPES, f"output must be {', '.join(NUMPY_DTYPES)}, but got {wanted}")
    require(found == wanted, f"inputs and output must have one type, but got {found} and {wanted}")
    if wanted in EIGHT_BIT:
        eight_bit(bounded(tensor), "input")
        eight_bit(bounded(output), "output")
        pairs = [(each.scale, each.zero_point) for each in (tensor, output)]
        message = f"input must have the output's scale and zero point {pairs[1]}, but got {pairs[0]}"
        require(pairs[0] == pairs[1], message)


def check_scales(tensor: Tensor, what: str) -> None:
    """`tensor` is quantized, by scales that the dialect can hold."""
    require(len(tensor.scales) >= 1, f"{what} must be quantized")
    common.check_scales(tensor.scales, f"{what} scale")


def check_rescale(
    input_scale: float, weight_scales: Sequence[float], output_scale: float, multiplier: Multiplier
) -> None:
    """The factors of a rescale fit the fixed-point arithmetic."""
    with np.errstate(all="ignore"):
        factors = real_multiplier(input_scale, weight_scales, output_scale, multiplier)
        wrong = factors[~((factors >= 0) & (factors < _LARGEST_FACTOR))].tolist()
    require(not wrong, f"rescale factor must be in [0, 2^30), but got {next(iter(wrong), None)}")


def quantized_range(tensor: Tensor) -> tuple[int, int]:
    """Smallest and largest value of an integer tensor."""
    return ELEMENT_RANGES[tensor.element]
