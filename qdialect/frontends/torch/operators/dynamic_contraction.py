"""Products of constant quantized weights and data that are quantized when the network runs: one op, with f32 results.

Padding is zeros around the f32 values: every range holds 0, so these become zero points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qdialect._mlir import ir
from qdialect.dialect import DynamicConv2DOp, DynamicDenseOp
from qdialect.frontends.common import Array
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, Quantized
from qdialect.frontends.planning.weight import Weight
from qdialect.frontends.torch.operators.registry import Call
from qdialect.frontends.torch.run_time import RunTimeQuantized


@dataclass(frozen=True, eq=False)
class DynamicContraction(F32Tensor):
    """``accumulator * (scale * s_w) + bias`` in float32; `finish` brings what has channels last to the model's shape.

    `read` gives the data as quantized values, of a tensor that is one of them or, where `is_padded`, of f32 values.
    """

    op_class: type[DynamicDenseOp | DynamicConv2DOp]
    data: RunTimeQuantized
    is_padded: bool
    weight: Weight
    taps: Array
    bias: Array | None
    attributes: dict[str, Any]
    read: Callable[[Emitter, Value], ir.Value]
    finish: Callable[[Emitter, ir.Value], Emitted]

    def _f32(self, plan: Plan, name: str) -> Value:
        parameters, source = self.data.parameters, self.data.values
        if self.is_padded and self.data.source is not None:
            source = self.data.source.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            data = self.read(emitter, source)
            product = emitter.build(
                self.op_class,
                parameters.quantize(emitter, data) if self.is_padded else data,
                emitter.constant(self.taps),
                emitter.to_channels_first(parameters.scale),
                parameters.narrow_point(emitter),
                None if self.bias is None else emitter.constant(self.bias),
                element="f32",
                weight_scales=self.weight.scales,
                weight_zero_points=self.weight.zero_points,
                **self.attributes,
            )
            return self.finish(emitter, product)

        return plan.compute(name, self.shape, "f32", emit)


def is_dynamic(call: Call, data: str, weight: str) -> bool:
    """Whether data are quantized when the network runs, and the weights are constant quantized values of 8 bits."""
    right = call.tensor(weight)
    if not isinstance(call.tensor(data), RunTimeQuantized) or not isinstance(right, Quantized):
        return False
    return right.values.data is not None and right.values.element in EIGHT_BIT


def dynamic_data_of(call: Call, name: str) -> RunTimeQuantized:
    """The argument that `is_dynamic` has seen."""
    data = call.tensor(name)
    assert isinstance(data, RunTimeQuantized)
    return data
