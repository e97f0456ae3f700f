"""The operands of convolutions and matrix products of quantized numbers."""

from __future__ import annotations

import numpy as np

from qdialect.frontends.common import Array, check_scale, require
from qdialect.frontends.onnx.operators.registry import Call
from qdialect.frontends.onnx.tensors import AccumulatorBias, Quantized
from qdialect.frontends.planning import tensors as planning
from qdialect.frontends.planning.contraction import accumulator_scales
from qdialect.frontends.planning.tensors import EIGHT_BIT, Constant
from qdialect.frontends.planning.weight import LARGEST_BIAS

# How much scales differ that are the same product, rounded in another order.
_SAME = 1e-6


def data_of(data: Quantized) -> Quantized:
    """Data that a contraction can read."""
    parameters = data.parameters
    require(parameters.element in EIGHT_BIT, f"input must be i8 or ui8, but got {parameters.element}")
    check_scale(parameters.scale, "input scale")
    return data


def bias_of(
    call: Call,
    index: int,
    data: planning.Quantized,
    scales: tuple[float, ...],
    channels: int,
    factor: float | None = None,
) -> Array | None:
    """Input `index`: i32 in units of the accumulators, or f32 values.

    It is i32 where an integer kernel of ONNX Runtime reads it so, or where its scale is the accumulators' and leaves
    space for the sums; else it is f32 values, which count `factor` times.
    """
    tensor = call.optional(index)
    if tensor is None:
        return None
    if isinstance(tensor, Constant):
        values = tensor.array
    else:
        source = call.quantized(index)
        require(source.values.data is not None, "bias must be constant")
        assert source.values.data is not None
        is_whole = factor is None and _counts_accumulators(source, accumulator_scales(data, scales))
        values = source.values.data if is_whole else np.asarray(source.f32_values())
    fits = values.size == 1 or (values.size == channels == values.shape[-1])
    require(fits, f"bias must have {channels} entries along its last dimension, but got {list(values.shape)}")
    flat = np.broadcast_to(values.ravel(), (channels,))
    if values.dtype == np.int32:
        return flat
    require(values.dtype == np.float32, f"bias must be i32 or f32, but got {values.dtype}")
    return flat if factor is None else np.float32(factor) * flat


def _counts_accumulators(bias: planning.Quantized, wanted: Array) -> bool:
    """Whether quantized values are units of the accumulators, whose scales are `wanted`."""
    if isinstance(bias, AccumulatorBias):
        return True
    values = bias.values.data
    if bias.values.element != "i32" or values is None or any(bias.zero_points):
        return False
    own = np.array(bias.scales)
    fits = own.size == 1 or wanted.size in (1, own.size)
    has_space = bool(np.all(np.abs(values.astype(np.int64)) <= LARGEST_BIAS // 2))
    return fits and has_space and np.allclose(own, wanted, _SAME, 0)
