"""What is ONNX Runtime's own among the tensors of a plan."""

from __future__ import annotations

from qdialect.dialect.type_constraints import ELEMENT_RANGES
from qdialect.frontends.planning import tensors as planning
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.tensors import Plan, clip
from qdialect.profiles import ORT


class Quantized(planning.Quantized):
    """What a DequantizeLinear gives."""

    profile = ORT


class AccumulatorBias(Quantized):
    """An i32 bias that an integer kernel adds to its accumulators as it is."""


def clamp_integers(plan: Plan, name: str, source: Value, minimum: float, maximum: float) -> Value:
    """8-bit integers between two bounds."""
    low, high = ELEMENT_RANGES[source.element]
    return clip(plan, name, source, *(int(min(max(bound, low), high)) for bound in (minimum, maximum)))
