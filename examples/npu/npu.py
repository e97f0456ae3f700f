"""Which fused ops npu.c takes: `qnn-outline-fused{target=npu predicate=npu:takes}`."""

from qdialect.dialect import FusedOp
from qdialect.dialect.stages.builtin_stages import ClampStage, RequantizeStage

ROUNDINGS = ("fixed32_double", "fixed64_up")
MULTIPLIERS = ("f64", "f32_product")


def takes(op: FusedOp) -> bool | str:
    """True for a convolution that the library computes, else the reason why it stays."""
    if op.operation.name != "qnn.fused_conv2d":
        return "must be a convolution for the npu"
    if len(op.operation.operands) > 3:
        return "must not add a residual for the npu"
    first, *others = (placed.stage for placed in op.stages())
    if not isinstance(first, RequantizeStage) or first.rounding not in ROUNDINGS or first.multiplier not in MULTIPLIERS:
        return f"must be requantized with one of {', '.join(ROUNDINGS)} for the npu"
    if [type(stage) for stage in others] not in ([], [ClampStage]):
        return "must end with a clamp for the npu"
    return True
