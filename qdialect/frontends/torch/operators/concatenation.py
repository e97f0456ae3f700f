"""cat: f32 values side by side, and integers."""

from __future__ import annotations

from qdialect.frontends.common import require
from qdialect.frontends.planning.emitter import Emitted, Emitter
from qdialect.frontends.planning.joined import concatenation, joined, joined_shape
from qdialect.frontends.planning.plain import tensor_of, value_of_tensor
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.torch.operators.indexing import axis_of
from qdialect.frontends.torch.operators.plain import as_element, element_of_result
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports, imports_plain


@imports("cat.default", "concat.default")
def _cat(call: Call) -> Result:
    parts = [as_f32("tensors", tensor) for tensor in call.tensors("tensors")]
    require(len(parts) >= 1, "must have at least 1 part")
    axis = axis_of(call, len(parts[0].shape))
    return concatenation(call.plan, call.name, joined(parts, axis, call.name))


@imports_plain("cat.default", "concat.default")
def _cat_of_integers(call: Call) -> Result:
    """Each part in the type of the result."""
    element = element_of_result(call)
    values = [value_of_tensor(call, as_element(call, tensor, element)) for tensor in call.tensors("tensors")]
    axis = axis_of(call, len(values[0].shape))

    def emit(emitter: Emitter) -> Emitted:
        return emitter.concatenate([emitter.to_channels_first(value) for value in values], axis), False

    shape = joined_shape([value.shape for value in values], axis)
    return tensor_of(call.plan.compute(call.name, shape, element, emit))
