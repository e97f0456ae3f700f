"""What the verifier accepts has a meaning: extreme parameters run through the reference without a warning."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.dialect import (
    OPS,
    ConstantOp,
    DynamicLstmOp,
    F32GruOp,
    F32LstmOp,
    F32RnnOp,
    FusedMatMulOp,
    FusedOp,
    MatMulOp,
    QnnOp,
    build,
)
from qdialect.dialect import fields as kinds
from qdialect.dialect.constants import constant
from qdialect.dialect.epilogue import EPILOGUE
from qdialect.dialect.fields import AttributeField, OptionalOperandField, VariadicOperandField
from qdialect.dialect.stages.stage_base import STAGES, QuantizedStage, Stage, attributes_of
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.ir._mlir import func, ir
from qdialect.ir.context import make_context, verify
from qdialect.reference.interpreter import run
from qdialect.support.diagnostics import VerificationError

CONTEXT = make_context()
SCALES = (kinds.SMALLEST_SCALE, 1e-9, 1 / 256, 0.5, 1.0, kinds.LARGEST_SCALE)
CHANNEL_SCALES = (*SCALES, 5e-324)
F32_VALUES = (0.0, -1.0, 0.01, 2.0**30, 1e308)
SHAPES = {"weight": (4, 1, 1, 4), "bias": (4,), "matrix": (4, 3), "indices": (3,), "updates": (3, 4, 2, 4)}
GEOMETRY = {
    "axes": (1, 2),
    "begin": (0, 0, 0, 0),
    "dilation": (1, 1),
    "high": (1, 0, 0, 0),
    "indices": (3, 0, 3),
    "kernel": (1, 1),
    "low": (0, 0, 0, 0),
    "output_padding": (0, 0),
    "padding": (0, 0, 0, 0),
    "permutation": (0, 2, 1, 3),
    "shape": (2, 8, 4, 1),
    "size": (2, 4, 2, 4),
    "strides": (1, 1),
}
OWN_GEOMETRY = {
    "qnn.broadcast": {"shape": (3, 2, 4, 2, 4)},
    "qnn.resize_bilinear": {"size": (3, 5)},
    "qnn.resize_nearest": {"size": (3, 5)},
    "qnn.slice": {"strides": (1, 1, 1, 1)},
}
# T = B = 2, H = 4.
OWN_SHAPES = {
    op_class.OPERATION_NAME: {
        "gates": (2, 2, op_class.gate_count * 4),
        "recurrence": (4, op_class.gate_count * 4),
        "initial": (2, op_class.state_count * 4),
        "scales": (op_class.gate_count * 4,),
    }
    for op_class in (DynamicLstmOp, F32GruOp, F32LstmOp, F32RnnOp)
} | {"qnn.i16_matmul": {"weight": (4, 3)}, "qnn.i16_layer_norm": {"weight": (4,)}}
OPS_WITH_PARAMETERS = [op_class for op_class in OPS if op_class is not ConstantOp]


class Case:
    """Draws of one op: its attributes and operands for tensors of one signedness."""

    def __init__(self, draw: st.DataObject, op_class: type[QnnOp], element: str) -> None:
        self.draw = draw
        self.op_class = op_class
        self.element = element
        self.geometry = GEOMETRY | OWN_GEOMETRY.get(op_class.OPERATION_NAME, {})
        self.low, self.high = (-128, 127) if element == "i8" else (0, 255)

    def one_of(self, values: Sequence[Any]) -> Any:
        # A draw takes as long as a verification.
        return values[0] if len(values) == 1 else self.draw.draw(st.sampled_from(values))

    def attributes(self) -> dict[str, Any]:
        return {name: self.value(name, field) for name, field in self.op_class.attribute_fields.items()}

    def value(self, name: str, field: AttributeField[Any]) -> Any:
        kind = field.kind
        per_input = 2 if name in ("input_scales", "input_zero_points") and self.is_variadic else 1
        choices: dict[int, Sequence[Any]] = {
            id(kinds.SCALE): SCALES,
            id(kinds.F64): F32_VALUES,
            id(kinds.SCALES): [(scale,) * per_input for scale in CHANNEL_SCALES],
            id(kinds.BOOL): (False, True),
            id(kinds.TABLE): (np.arange(256, dtype=np.uint8),),
            id(kinds.ELEMENT_TYPE): ("i8", "ui8"),
            id(EPILOGUE): (None,),
            id(kinds.I64): self.integers(name),
            id(kinds.INTEGERS): (self.geometry.get(name, (self.low,) * per_input),),
        }
        texts: Sequence[Any] = re.findall(r'"(\w+)"', kind.description)
        return self.one_of(choices.get(id(kind), texts))

    def epilogue(self, with_residual: bool) -> tuple[Stage, ...]:
        """Stages with drawn attributes, in an order that the verifier may accept."""
        by_f32 = self.one_of((False, True))
        early = by_f32 and with_residual and self.one_of((False, True))
        rounded = ["dequantize", *["sum"] * early, "activation", "quantize"] if by_f32 else ["requantize"]
        after = [] if early or not with_residual else ["add"]
        stages = [self.stage(name) for name in [*rounded, "clamp", *after, *self.one_of(([], ["lut"]))]]
        # What the last of them leaves is the result.
        last = max(index for index, stage in enumerate(stages) if isinstance(stage, QuantizedStage))
        stages[last] = replace(stages[last], scale=None, zero_point=None, element=None)
        return tuple(stages)

    def stage(self, name: str) -> Stage:
        declared = attributes_of(STAGES[name])
        return STAGES[name](**{key: self.value(key, AttributeField(one.kind, None)) for key, one in declared.items()})

    @property
    def is_variadic(self) -> bool:
        return isinstance(self.op_class.operand_fields[0], VariadicOperandField)

    def integers(self, name: str) -> Sequence[int]:
        if name in ("axis", "groups"):
            return (1,)
        if name == "count":
            return (1, 4)
        if name.endswith(("min", "max")):
            return (self.low,) if name.endswith("min") else (self.high,)
        return (self.low, self.high)

    def operands(self, with_residual: bool) -> list[ir.Value]:
        values: list[ir.Value] = []
        shapes = SHAPES | OWN_SHAPES.get(self.op_class.OPERATION_NAME, {})
        for field in self.op_class.operand_fields:
            if isinstance(field, OptionalOperandField) and not with_residual:
                continue
            elements = field.constraint.elements
            element = self.element if self.element in elements else self.one_of(elements)
            shape = shapes.get(field.name, (2, 4, 2, 4))
            if field.name == "weight" and issubclass(self.op_class, MatMulOp | FusedMatMulOp):
                shape = (4, 4, 4)
            shape = shape if field.constraint.rank != 2 else (shape[0], shape[-1])
            count = 2 if self.is_variadic else 1
            values += [constant(extreme_array(shape, element)) for _ in range(count)]
        return values


def extreme_array(shape: tuple[int, ...], element: str) -> NDArray[Any]:
    dtype = NUMPY_DTYPES[element]
    if dtype.kind == "f":
        values = [0.0, 1e38, -1e38, np.nan, np.inf, -np.inf, 1e-45, 0.5]
    elif dtype.kind == "b":
        values = [False, True]
    else:
        limits = np.iinfo(dtype.name)
        values = [limits.min, limits.max, 0, 1]
    return np.resize(np.array(values, dtype), shape)


def module_of(case: Case) -> ir.Module:
    values = case.attributes()
    with_residual = case.one_of((False, True))
    if issubclass(case.op_class, FusedOp):
        values["epilogue"] = case.epilogue(with_residual)
    elements = case.op_class.result_fields[0].constraint.elements
    element = case.element if case.element in elements else case.one_of(elements)
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ir.FunctionType.get([], []))
        with ir.InsertionPoint(main.add_entry_block()):
            op = build(case.op_class, *case.operands(with_residual), element=element, **values)
            func.ReturnOp([op.operation.results[0]])
        function_type = ir.FunctionType.get([], [op.operation.results[0].type])
        main.attributes["function_type"] = ir.TypeAttr.get(function_type)
    return module


def failure(module: ir.Module) -> str | None:
    """What the verifier says; it never fails itself."""
    try:
        verify(module)
    except VerificationError as error:
        message = str(error)
    else:
        return None
    assert "cannot be verified" not in message
    return message


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("op_class", OPS_WITH_PARAMETERS, ids=lambda op_class: op_class.OPERATION_NAME)
@given(draw=st.data(), element=st.sampled_from(["i8", "ui8"]))
def test_what_is_accepted_runs(op_class: type[QnnOp], draw: st.DataObject, element: str) -> None:
    module = module_of(Case(draw, op_class, element))
    if failure(module) is None:
        run(module, [])
