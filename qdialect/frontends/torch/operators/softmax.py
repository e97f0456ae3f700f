"""Softmax of quantized numbers."""

from __future__ import annotations

from dataclasses import dataclass

from qdialect.dialect import SoftmaxOp
from qdialect.dialect.enums import SoftmaxArithmetic
from qdialect.frontends.common import UnsupportedError, require
from qdialect.frontends.onnx.emitter import Emitter, Placed, Value
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.tensors import (
    EIGHT_BIT,
    Parameters,
    Plan,
    Quantized,
    Real,
    Result,
    limit,
    place_of,
)


@dataclass(frozen=True, eq=False)
class Shares(Real):
    """Exponentials over their sum along `axis`, in float32."""

    source: Quantized
    axis: int

    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        require(to.element in EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")

        def emit(emitter: Emitter) -> Placed:
            codes, is_last = emitter.either(self.source.codes)
            attributes = {
                "axis": place_of(self.axis, len(self.shape), is_last),
                "input_scale": self.source.parameters.scale,
                "output_scale": to.scale,
                "output_zero_point": to.zero_point,
                "arithmetic": SoftmaxArithmetic.FLOAT,
            }
            return emitter.build(SoftmaxOp, codes, element=to.element, **attributes), is_last

        return limit(plan, name, plan.compute(name, self.shape, to.element, emit), to)

    def computed(self, plan: Plan, name: str) -> Value:
        raise UnsupportedError("a softmax must be quantized")


@imports("softmax.int", "_softmax.default")
def _softmax(call: Call) -> Result:
    source = call.quantized("self")
    require(source.is_whole, f"input must be i8 or ui8 with one scale, but got {source.codes.element}")
    rank, axis = len(source.shape), call.integers("dim", 1)[0]
    require(-rank <= axis < rank, f"dim must be in [-{rank}, {rank}), but got {axis}")
    return Shares(source.shape, source, axis % rank)
