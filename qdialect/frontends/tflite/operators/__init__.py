"""How each operator of the schema becomes `qnn` ops, one family a file."""

# Imported for the planners they register.
from qdialect.frontends.tflite.operators import (
    arg,
    cast,
    concatenation,
    contraction,
    data_movement,
    elementwise,
    f32,
    gathering,
    packing,
    pool,
    product,
    quantization,
    reduction,
    resize,
    slicing,
    softmax,
    space_batch,
    unary,
)
from qdialect.frontends.tflite.operators.registry import Emission, plan, supported_operators

FAMILIES = (
    arg,
    cast,
    concatenation,
    contraction,
    data_movement,
    elementwise,
    gathering,
    packing,
    pool,
    product,
    quantization,
    f32,
    reduction,
    resize,
    slicing,
    softmax,
    space_batch,
    unary,
)

__all__ = ["FAMILIES", "Emission", "plan", "supported_operators"]
