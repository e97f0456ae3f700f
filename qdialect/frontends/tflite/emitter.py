"""Builds the function's ops: values by tensor, locations, constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.diagnostics import ImportModelError
from qdialect.dialect import ClipOp, QnnOp, RequantizeOp, ReshapeOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import element_of, range_of, shape_of
from qdialect.frontends.tflite.model import Shape, Tensor
from qdialect.profiles import TFLITE
from qdialect.quant_math import Multiplier, Rounding

Op = TypeVar("Op", bound=QnnOp)


class Emitter:
    """The values emitted so far, and the location of the tensor being emitted."""

    def __init__(self, file_name: str) -> None:
        self._file = ir.Location.file(file_name, 0, 0)
        self._location: ir.Location = self._file
        self._values: dict[int, ir.Value] = {}

    def location_of(self, tensor: Tensor) -> ir.Location:
        """The tensor's name over the file's."""
        return ir.Location.name(tensor.name, self._file)

    def enter(self, tensor: Tensor) -> None:
        """Emit the following ops for `tensor`."""
        self._location = self.location_of(tensor)

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
            self._values[tensor.index] = self.constant(tensor.data, self.location_of(tensor))
        return self._values[tensor.index]

    def constant(self, array: NDArray[Any], location: ir.Location | None = None) -> ir.Value:
        """A constant of the tensor being emitted."""
        return constant(np.ascontiguousarray(array).reshape(array.shape), loc=location or self._location)

    def build(self, op_class: type[Op], *operands: ir.Value | None, element: str, **attributes: Any) -> ir.Value:
        """An op of the tensor being emitted; its result."""
        op = build(op_class, *operands, element=element, loc=self._location, **attributes)
        return op.operation.results[0]

    def float_op(self, name: str, *operands: ir.Value) -> ir.Value:
        """An element-wise upstream op of the node being emitted, on f32 tensors of one shape; its result."""
        created = ir.Operation.create(name, results=[operands[0].type], operands=list(operands), loc=self._location)
        return created.results[0]

    def concatenate(self, values: Sequence[ir.Value], axis: int) -> ir.Value:
        """Values of one element type side by side along `axis`."""
        shape = list(shape_of(values[0].type))
        shape[axis] = sum(shape_of(value.type)[axis] for value in values)
        type_ = ir.RankedTensorType.get(shape, ir.RankedTensorType(values[0].type).element_type)
        dim = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)
        created = ir.Operation.create(
            "tensor.concat", results=[type_], operands=list(values), attributes={"dim": dim}, loc=self._location
        )
        return created.results[0]

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

    def reshape(self, value: ir.Value, shape: Shape) -> ir.Value:
        """`value` in another shape; itself where it has that shape."""
        if shape_of(value.type) == shape:
            return value
        return self.build(ReshapeOp, value, element=element_of(value.type), shape=shape)


def _type_text(shape: Shape, element: str) -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"
