"""Says how a node becomes `qnn` ops: a planner checks it, and gives the emission that builds it with an emitter."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from qdialect.arithmetic import Multiplier, Rounding
from qdialect.arithmetic.profiles import TFLITE
from qdialect.dialect import ClipOp, QnnOp, RequantizeOp
from qdialect.dialect.type_constraints import element_of, range_of, shape_of
from qdialect.frontends.building.checks import Budget, Shape, UnsupportedError, require
from qdialect.frontends.building.op_builder import OpBuilder
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import check_delegated
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import ImportModelError
from qdialect.support.registry import Registry


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
        scales = {"input_scale": input_scale, "output_scale": output.scale, "output_zero_point": output.zero_point}
        how = {"rounding": rounding, "multiplier": multiplier, **scales, **parameters}
        return self.build(RequantizeOp, value, element=output.element, **how)

    def clip(self, value: ir.Value, bounds: tuple[int, int]) -> ir.Value:
        """`value` clamped to `bounds`; itself where its type has no more."""
        if bounds == range_of(value.type):
            return value
        return self.build(ClipOp, value, element=element_of(value.type), min=bounds[0], max=bounds[1])


def _type_text(shape: Shape, element: str) -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


# How a node becomes `qnn` ops: a planner checks it, and gives the emission that builds it.

Emission = Callable[[Emitter], ir.Value | Sequence[ir.Value]]
"""Builds a node's ops and gives the value of its output, or a value for each of its outputs."""
Building = Generator[None, Emitter, ir.Value | Sequence[ir.Value]]
"""A planner with its emission: it checks the node, waits for an emitter at its ``yield``, and builds."""


def built(op_class: type[QnnOp], *tensors: Tensor, element: str, **attributes: Any) -> Emission:
    """The emission of one op of tensors."""
    return lambda emitter: emitter.build(op_class, *map(emitter.value, tensors), element=element, **attributes)


Planner = Callable[[Operator], Emission | Building]
"""Checks a node against what the front end can express; raises `UnsupportedError`."""


_DATA = {"CONV_3D_TRANSPOSE": 2, "TRANSPOSE_CONV": 2}
"""Which input is computed on, where it is not the first."""

_PLANNERS = Registry[Planner]("importer", "qdialect.frontends.tflite.operators")
_F32_PLANNERS = Registry[Planner]("float importer", "qdialect.frontends.tflite.operators")
_INTEGER_PLANNERS = Registry[Planner]("integer importer", "qdialect.frontends.tflite.operators")
_I16_PLANNERS = Registry[Planner]("16-bit importer", "qdialect.frontends.tflite.operators")
_HYBRID_PLANNERS = Registry[Planner]("hybrid importer", "qdialect.frontends.tflite.operators")


imports = _PLANNERS.register
"""Registers the decorated planner for operators by their schema names."""
imports_f32 = _F32_PLANNERS.register
"""As `imports`, for operators from float32 to float32."""
imports_integers = _INTEGER_PLANNERS.register
"""As `imports`, for operators whose first input is i32 or i64."""
imports_i16 = _I16_PLANNERS.register
"""As `imports`, for operators from or to 16-bit quantized values."""
imports_hybrid = _HYBRID_PLANNERS.register
"""As `imports`, for operators from float32 to float32 whose second input is i8."""

_WIDENING = {
    "CONV_2D": ("i8", "f32"),
    "DEPTHWISE_CONV_2D": ("i8",),
    "DEQUANTIZE": (),
    "EMBEDDING_LOOKUP": (),
    "FULLY_CONNECTED": ("i8", "f32"),
}
"""Operators whose reference kernels compute with constants of few bits as with the same integers of 8 bits.

Where that depends on the data, of which types; then faster kernels round otherwise, and XNNPACK takes some shapes.
Convolutions know 4 bits alone.
"""


def plan(operator: Operator, *, is_delegated: bool = False) -> Emission:
    """The emission of a node; `is_delegated` where its arithmetic is to be that of XNNPACK's delegate.

    Raises `UnsupportedError` where the node cannot be expressed and `ImportModelError` where its bytes are damaged.
    """
    planner = _planners_of(operator).get(operator.kind)
    if planner is None:
        raise UnsupportedError(f"operator is not supported{_reason(operator)}")
    narrow = next((tensor for tensor in operator.inputs if tensor is not None and tensor.bits), None)
    if narrow is not None:
        _check_narrow(operator, narrow, is_delegated=is_delegated)
    if _is_divided(operator):
        wanted = "must have a scale for each row but with profile 'tflite-xnnpack'"
        require(is_delegated, f"weight {wanted}: LiteRT's reference kernels take no notice of scales by block")
    if is_delegated:
        check_delegated(operator)
    planned = planner(operator)
    if callable(planned):
        return planned
    next(planned)
    return lambda emitter: _finished(planned, emitter)


def _finished(building: Building, emitter: Emitter) -> ir.Value | Sequence[ir.Value]:
    try:
        building.send(emitter)
    except StopIteration as stopped:
        return stopped.value
    raise AssertionError("a planner waits for one emitter")


def _check_narrow(operator: Operator, narrow: Tensor, *, is_delegated: bool) -> None:
    data, known = operator.inputs[0], _WIDENING.get(operator.kind)
    element = None if data is None else data.element
    holds = known is not None and (not known or element in known)
    require(holds, f"'{narrow.name}' must be of 8 bits with {element} data, but got {narrow.bits}")
    holds = narrow.bits == 4 or "CONV" not in operator.kind
    require(holds, f"'{narrow.name}' must be of 4 or 8 bits in a convolution, but got {narrow.bits}")
    holds = not known or not is_delegated
    require(holds, f"'{narrow.name}' must be of 8 bits with profile 'tflite-xnnpack', but got {narrow.bits}")


def _reason(operator: Operator) -> str:
    if operator.kind not in supported_operators():
        return f": {reason_of(operator.kind)}"
    first = next((tensor.element for tensor in operator.inputs if tensor is not None), "no input")
    return f" on {first}"


def _planners_of(operator: Operator) -> Registry[Planner]:
    if operator.kind in _HYBRID_PLANNERS and _is_f32(operator) and _is_hybrid(operator):
        return _HYBRID_PLANNERS
    if operator.kind in _I16_PLANNERS and _is_i16(operator):
        return _I16_PLANNERS
    if operator.kind in _INTEGER_PLANNERS and _is_integer(operator):
        return _INTEGER_PLANNERS
    return _F32_PLANNERS if operator.kind in _F32_PLANNERS and _is_f32(operator) else _PLANNERS


def _is_integer(operator: Operator) -> bool:
    first = operator.inputs[0] if operator.inputs else None
    return first is not None and first.element in ("i32", "i64")


def _is_i16(operator: Operator) -> bool:
    ends = (*operator.inputs[:1], *operator.outputs[:1])
    return any(tensor is not None and tensor.element == "i16" for tensor in ends)


def _is_hybrid(operator: Operator) -> bool:
    second = operator.inputs[1] if len(operator.inputs) > 1 else None
    return (second is not None and second.element == "i8") or _is_divided(operator)


def _is_divided(operator: Operator) -> bool:
    """Whether weights have scales by block that a planner reads."""
    second = operator.inputs[1] if operator.kind == "FULLY_CONNECTED" and len(operator.inputs) > 1 else None
    return second is not None and second.block_scales is not None and _is_f32(operator)


def _is_f32(operator: Operator) -> bool:
    data = _DATA.get(operator.kind, 0)
    ends = (*operator.inputs[data : data + 1], *operator.outputs[:1])
    return len(ends) == 2 and all(tensor is not None and tensor.element == "f32" for tensor in ends)


def supported_operators() -> tuple[str, ...]:
    """Schema names of all operators with a planner, sorted."""
    tables = (_PLANNERS, _F32_PLANNERS, _INTEGER_PLANNERS, _I16_PLANNERS, _HYBRID_PLANNERS)
    return tuple(sorted(set[str]().union(*(table.keys() for table in tables))))


# The operators that are left to LiteRT, each with the reason that its message gives.

UNNAMED = "the schema does not name it"
_REWRITTEN, _STATE = "converters write it as other operators", "it keeps a state between calls"
_REASONS: dict[str, tuple[str, ...]] = {
    _STATE: (
        *("ASSIGN_VARIABLE", "CALL_ONCE", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_LOOKUP"),
        *("HASHTABLE_SIZE", "READ_VARIABLE", "VAR_HANDLE"),
    ),
    "the shape of its result depends on the data": (
        "NON_MAX_SUPPRESSION_V4",
        "NON_MAX_SUPPRESSION_V5",
        "UNIQUE",
        "WHERE",
    ),
    "it draws random numbers": (
        *("MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "STABLEHLO_RNG_BIT_GENERATOR"),
    ),
    "it works on complex numbers": ("COMPLEX_ABS", "IMAG", "REAL", "RFFT2D"),
    "it works on text or on lists of features": (
        *("CONCAT_EMBEDDINGS", "EMBEDDING_LOOKUP_SPARSE", "LSH_PROJECTION", "SKIP_GRAM"),
    ),
    "it chooses a subgraph when the network runs": ("CALL", "IF", "STABLEHLO_WHILE", "WHILE"),
    "its composite has no decomposition that fits": ("STABLEHLO_COMPOSITE",),
    "its code is not part of the format": ("CUSTOM", "DELEGATE", "STABLEHLO_CUSTOM_CALL"),
    _REWRITTEN: (*("ATAN2", "BUCKETIZE", "DENSIFY", "FAKE_QUANT", "LSTM", "REDUCE_WINDOW"),),
    "its result must be known when the model is read": ("BROADCAST_ARGS", "RANK", "SHAPE"),
}
_REASON_OF = {kind: reason for reason, kinds in _REASONS.items() for kind in kinds}


def reason_of(kind: str) -> str:
    """Why an operator without a planner is refused."""
    name = kind.partition(":")[0]
    return _REASON_OF.get(name, _REWRITTEN if name.startswith("STABLEHLO_") else UNNAMED)


def keeps_state(kind: str) -> bool:
    """Whether an operator has to do with what lives on between calls."""
    return kind in _REASONS[_STATE]
