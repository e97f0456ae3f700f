"""Builds the function's ops: values by tensor, locations, constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.diagnostics import ImportModelError
from qdialect.dialect import ClipOp, RequantizeOp
from qdialect.dialect.type_constraints import element_of, range_of, shape_of
from qdialect.frontends.budget import Budget
from qdialect.frontends.op_builder import OpBuilder
from qdialect.frontends.tflite.model import Shape, Tensor
from qdialect.profiles import TFLITE
from qdialect.quant_math import Multiplier, Rounding


class Emitter(OpBuilder):
    """The values emitted so far, and the location of the tensor being emitted."""

    def __init__(self, file_name: str, budget: Budget, *, is_delegated: bool = False) -> None:
        """`is_delegated`: products of float32 data have the arithmetic of XNNPACK's delegate."""
        super().__init__(file_name, budget)
        self.is_delegated = is_delegated
        self._values: dict[int, ir.Value] = {}

    def define(self, tensor: Tensor, value: ir.Value) -> None:
        """`value` is what `tensor` holds.

        Raises `ImportModelError` where the tensor is constant, has a value already or another shape or type.
        """
        if tensor.data is not None or tensor.index in self._values:
            raise ImportModelError(f"tensor '{tensor.name}' must be produced once, but got two producers")
        found, wanted = (shape_of(value.type), element_of(value.type)), (tensor.shape, tensor.element)
        if found != wanted:
            types = f"must be {_type_text(*wanted)}, but got {_type_text(*found)}"
            raise ImportModelError(f"tensor '{tensor.name}' {types}")
        self._values[tensor.index] = value

    def value(self, tensor: Tensor) -> ir.Value:
        """The value of a tensor; a constant is built where it is used first.

        Raises `ImportModelError` where nothing has produced the tensor.
        """
        if tensor.index not in self._values:
            if tensor.data is None:
                raise ImportModelError(f"tensor '{tensor.name}' must be produced before it is used")
            # In a file, elements may lie at any address.
            data = np.require(tensor.data, requirements="A")
            self._values[tensor.index] = self.constant(data, self.location_of(tensor.name))
        return self._values[tensor.index]

    def requantize(
        self,
        value: ir.Value,
        output: Tensor,
        input_scale: float,
        multiplier: Multiplier,
        rounding: Rounding = TFLITE.rounding,
        **parameters: Any,
    ) -> ir.Value:
        """`value` with the parameters of `output`; most of the reference kernels round twice."""
        return self.build(
            RequantizeOp,
            value,
            element=output.element,
            input_scale=input_scale,
            output_scale=output.scale,
            output_zero_point=output.zero_point,
            rounding=rounding,
            multiplier=multiplier,
            **parameters,
        )

    def clip(self, value: ir.Value, bounds: tuple[int, int]) -> ir.Value:
        """`value` clamped to `bounds`; itself where its type has no more."""
        if bounds == range_of(value.type):
            return value
        return self.build(ClipOp, value, element=element_of(value.type), min=bounds[0], max=bounds[1])


def _type_text(shape: Shape, element: str) -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"
