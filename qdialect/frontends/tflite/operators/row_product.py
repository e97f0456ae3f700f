"""Products of float32 rows with constant matrices: of float32, or of i8 with rows quantized when the network runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DynamicDenseOp, F32MatmulOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Tensor
from qdialect.frontends.tflite.operators.checks import check_scales, constant
from qdialect.frontends.tflite.operators.f32 import F32Builder
from qdialect.frontends.tflite.operators.run_time_ranges import asymmetric, symmetric

_ELEMENTS = ("f32", "i8")


@dataclass(frozen=True)
class RowProduct:
    """``rows [N, K] x weights [C, K]`` of several weights side by side, each row quantized by itself."""

    weights: tuple[Tensor, ...]
    is_asymmetric: bool
    """Whether rows are quantized around a zero point."""

    def __post_init__(self) -> None:
        elements = {weight.element for weight in self.weights}
        one = len(elements) == 1 and elements < set(_ELEMENTS)
        require(one, f"weights must be all f32 or all i8, but got {', '.join(sorted(elements))}")
        for weight in self.weights:
            constant(weight, f"'{weight.name}'")
            if weight.element == "i8":
                check_scales(weight, f"'{weight.name}'")
                found = len(weight.scales)
                require(found == 1, f"'{weight.name}' must have one scale, but got {found}")
                require(weight.zero_point == 0, f"'{weight.name}' must have zero point 0, but got {weight.zero_point}")

    def emit(self, emitter: Emitter, rows: ir.Value, bias: Array | None = None) -> ir.Value:
        """f32 [N, C], with a bias [C] added where one is given."""
        matrix = np.concatenate([constant(weight, "weight") for weight in self.weights])
        if self.weights[0].element == "f32":
            total = emitter.build(F32MatmulOp, rows, emitter.constant(matrix.T), element="f32", rounded_products=True)
            s = F32Builder(emitter, shape_of(total.type))
            return total if bias is None else s("addf", total, emitter.constant(bias))
        scales = tuple(scale for weight in self.weights for scale in weight.scales * weight.shape[0])
        row = (asymmetric if self.is_asymmetric else symmetric)(emitter, rows, (1,))
        start = None if bias is None else emitter.constant(bias)
        parts = (row.values, emitter.constant(matrix), row.scale, row.zero_point, start)
        return emitter.build(DynamicDenseOp, *parts, element="f32", weight_scales=scales)


def f32_vector(tensor: Tensor | None, entries: int, what: str) -> Array | None:
    """The entries of a constant f32 vector, if it is given."""
    if tensor is None:
        return None
    require(tensor.element == "f32", f"{what} must be f32, but got {tensor.element}")
    require(tensor.shape == (entries,), f"{what} must have {entries} entries, but got {list(tensor.shape)}")
    return constant(tensor, what)
