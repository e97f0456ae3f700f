"""cat: f32 values side by side."""

from __future__ import annotations

from qdialect.frontends.common import require
from qdialect.frontends.planning.joined import concatenation, joined
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports


@imports("cat.default", "concat.default")
def _cat(call: Call) -> Result:
    parts = [as_f32("tensors", tensor) for tensor in call.tensors("tensors")]
    require(len(parts) >= 1, "must have at least 1 part")
    rank, axis = len(parts[0].shape), call.integers("dim", 1)[0]
    require(-rank <= axis < rank, f"dim must be in [-{rank}, {rank}), but got {axis}")
    return concatenation(call.plan, call.name, joined(parts, axis % rank, call.name))
