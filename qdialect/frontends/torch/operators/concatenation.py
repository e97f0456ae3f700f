"""cat: real numbers side by side; every part gets the result's parameters by a table of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qdialect.dialect import ConcatOp
from qdialect.frontends.common import UnsupportedError, require
from qdialect.frontends.onnx.emitter import Emitter, Placed, Value
from qdialect.frontends.torch.operators.registry import Call, as_real, imports
from qdialect.frontends.torch.tensors import EIGHT_BIT, Parameters, Plan, Quantized, Real, Result, place_of
from qdialect.profiles import PYTORCH

_MOST_PARTS = 16


@dataclass(frozen=True, eq=False)
class Joined(Real):
    """Real numbers side by side along `axis`."""

    parts: tuple[Real, ...]
    axis: int

    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        require(to.element in EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")
        return self.joined(plan, name, [part.quantized(plan, name, to) for part in self.parts], to)

    def joined(self, plan: Plan, name: str, codes: list[Value], to: Parameters) -> Value:
        """Codes side by side."""
        parameters: dict[str, Any] = {
            "input_scales": (to.scale,) * len(codes),
            "input_zero_points": (to.zero_point,) * len(codes),
            "output_scale": to.scale,
            "output_zero_point": to.zero_point,
            **PYTORCH.rescale,
        }

        def emit(emitter: Emitter) -> Placed:
            operands, is_last = emitter.alike(codes)
            axis = place_of(self.axis, len(self.shape), is_last)
            return emitter.build(ConcatOp, *operands, element=to.element, axis=axis, **parameters), is_last

        return plan.compute(name, self.shape, to.element, emit)

    def computed(self, plan: Plan, name: str) -> Value:
        raise UnsupportedError("joined floats must be quantized")


@imports("cat.default", "concat.default")
def _cat(call: Call) -> Result:
    """Codes of the same parameters keep them."""
    parts = [as_real("tensors", tensor) for tensor in call.tensors("tensors")]
    require(len(parts) <= _MOST_PARTS, f"must have 1 to {_MOST_PARTS} parts, but got {len(parts)}")
    rank, axis = len(parts[0].shape), call.integers("dim", 1)[0]
    require(-rank <= axis < rank, f"dim must be in [-{rank}, {rank}), but got {axis}")
    joined = Joined(call.node.outputs[0].shape, tuple(parts), axis % rank)
    sources = [part for part in parts if isinstance(part, Quantized) and part.is_whole]
    if len(sources) < len(parts) or len({source.parameters for source in sources}) > 1:
        return joined
    codes = joined.joined(call.plan, call.name, [source.codes for source in sources], sources[0].parameters)
    return sources[0].with_codes(codes)
