"""How each operator becomes tensors of the plan, one family a file."""

# Imported for the planners they register.
from qdialect.frontends.torch.operators import (
    averages,
    concatenation,
    convolution,
    functions,
    matmul,
    movement,
    pool,
    quantization,
    softmax,
)
from qdialect.frontends.torch.operators.registry import Call, planner_of, supported_operators

FAMILIES = (averages, concatenation, convolution, functions, matmul, movement, pool, quantization, softmax)

__all__ = ["FAMILIES", "Call", "planner_of", "supported_operators"]
