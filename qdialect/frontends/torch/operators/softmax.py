"""Softmax: of quantized numbers one op, of others float32 ops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp, F32MaxOp, F32SumOp, SoftmaxOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import require
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, limit, quantize, stored_axis
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.tensors import Quantized
from qdialect.quant_math.choices import SoftmaxArithmetic
from qdialect.quant_math.expressions import Input

_X, _Y = Input(0), Input(1)
_LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True, eq=False)
class Shares(F32Tensor):
    """Exponentials over their sum along `axis`, in float32, or the logarithms of that."""

    source: F32Tensor
    axis: int
    is_logarithm: bool
    is_safe: bool = False
    """Whether a row of minus infinities, for which masks leave nothing, gives zeros."""

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        source = self.source
        is_integer = isinstance(source, Quantized) and source.is_eight_bit and to.element in EIGHT_BIT
        if self.is_logarithm or not is_integer or not isinstance(source, Quantized):
            return quantize(plan, name, self.f32(plan, name), to)

        def emit(emitter: Emitter) -> Emitted:
            values, is_channels_last = emitter.either(source.values)
            attributes = {
                "axis": stored_axis(self.axis, len(self.shape), is_channels_last),
                "input_scale": source.parameters.scale,
                "output_scale": to.scale,
                "output_zero_point": to.zero_point,
                "arithmetic": SoftmaxArithmetic.FLOAT,
            }
            return emitter.build(SoftmaxOp, values, element=to.element, **attributes), is_channels_last

        return limit(plan, name, plan.compute(name, self.shape, to.element, emit), to)

    def _f32(self, plan: Plan, name: str) -> Value:
        """Exponentials of what is below the largest number, over their sum."""
        source = self.source.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            f32, is_channels_last = emitter.either(source)
            axes = (stored_axis(self.axis, len(self.shape), is_channels_last),)

            def along(op_class: type[F32MaxOp | F32SumOp], value: ir.Value) -> ir.Value:
                reduced = emitter.build(op_class, value, element="f32", axes=axes, keep_dims=True)
                return emitter.build(BroadcastOp, reduced, element="f32", shape=shape_of(f32.type))

            largest = along(F32MaxOp, f32)
            if self.is_safe:
                largest = emitter.expression(_X.at_least(_LOWEST), largest)
            below = emitter.expression(_X - _Y, f32, largest)
            powers = emitter.expression(_X.apply("math.exp"), below)
            total = along(F32SumOp, powers)
            if self.is_safe:
                # The largest power of any other row is 1.
                total = emitter.expression(_X.at_least(0.5), total)
            if self.is_logarithm:
                return emitter.expression(_X - _Y.apply("math.log"), below, total), is_channels_last
            return emitter.expression(_X / _Y, powers, total), is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


@imports("softmax.int", "_softmax.default", "log_softmax.int", "_log_softmax.default", "_safe_softmax.default")
def _softmax(call: Call) -> Result:
    source = call.f32("self")
    rank, axis = len(source.shape), call.integers("dim", 1)[0]
    require(-rank <= axis < rank, f"dim must be in [-{rank}, {rank}), but got {axis}")
    is_safe = "safe" in call.node.kind
    return Shares(source.shape, source, axis % rank, "log" in call.node.kind, is_safe, name=call.name)
