"""The operands of convolutions and matrix products of quantized numbers."""

from __future__ import annotations

import numpy as np

from qdialect.frontends.common import Array, check_scale, require
from qdialect.frontends.onnx.operators.registry import Call
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning import tensors as planning
from qdialect.frontends.planning.contraction import accumulator_scales
from qdialect.frontends.planning.tensors import EIGHT_BIT, Constant
from qdialect.frontends.planning.weight import LARGEST_BIAS


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
    """Input `index` as i32 quantized values.

    Quantized values are taken as they are, as ONNX Runtime does: their scale has to be s_x * s_w.  f32 values are
    divided by that product and rounded to even.  With a `factor` the bias counts so often, and quantized values are f32
    values too.
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
        is_whole = factor is None and source.values.element == "i32"
        values = source.values.data if is_whole else np.asarray(source.f32_values())
        require(not any(source.zero_points) or values.dtype != np.int32, "zero point of an i32 bias must be 0")
    fits = values.size == 1 or (values.size == channels == values.shape[-1])
    require(fits, f"bias must have {channels} entries along its last dimension, but got {list(values.shape)}")
    flat = np.broadcast_to(values.ravel(), (channels,))
    if values.dtype == np.int32:
        return flat
    require(values.dtype == np.float32, f"bias must be i32 or f32, but got {values.dtype}")
    f32_values = (1.0 if factor is None else factor) * flat.astype(np.float64)
    rounded = np.rint(f32_values / accumulator_scales(data, scales).astype(np.float64))
    require(bool(np.all(np.abs(rounded) <= LARGEST_BIAS)), "bias must fit into i32 at the scale of the accumulators")
    return rounded.astype(np.int32)
