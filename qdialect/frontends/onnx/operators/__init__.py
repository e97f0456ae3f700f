"""How each operator becomes tensors of the plan, one family a file."""

# Imported for the planners they register.
from qdialect.frontends.onnx.operators import (
    average_pool,
    cast,
    concatenation,
    convolution,
    data_movement,
    dynamic,
    elementwise,
    f32,
    f32_pool,
    formula,
    gathering,
    layer_normalization,
    matmul,
    max_pool,
    normalization,
    quantization,
    recurrent,
    reduction,
    resize,
    selection,
    slicing,
    softmax,
    transposed_convolution,
    unary,
)
from qdialect.frontends.onnx.operators.registry import Call, planner_of, supported_operators

FAMILIES = (
    average_pool,
    cast,
    concatenation,
    convolution,
    data_movement,
    dynamic,
    elementwise,
    formula,
    gathering,
    layer_normalization,
    matmul,
    max_pool,
    normalization,
    quantization,
    f32,
    f32_pool,
    recurrent,
    reduction,
    resize,
    selection,
    slicing,
    softmax,
    transposed_convolution,
    unary,
)

__all__ = ["FAMILIES", "Call", "planner_of", "supported_operators"]
