"""The operands of convolutions and matrix products of quantized numbers."""

from __future__ import annotations

import numpy as np

from qdialect.frontends.common import Array, check_scale, require
from qdialect.frontends.planning.tensors import Constant
from qdialect.frontends.planning.weight import Weight, ordered_weight
from qdialect.frontends.torch.operators.registry import Call
from qdialect.frontends.torch.tensors import Quantized


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
    values = tensor.f32_values() if isinstance(tensor, Quantized) else None
    if isinstance(tensor, Constant):
        values = tensor.array
    require(values is not None, f"argument '{name}' must be constant")
    assert values is not None
    require(values.dtype == np.float32, f"bias must be f32, but got {values.dtype}")
    require(values.size in (1, channels), f"bias must have {channels} entries, but got {values.size}")
    return np.ascontiguousarray(np.broadcast_to(values.ravel(), (channels,)))
