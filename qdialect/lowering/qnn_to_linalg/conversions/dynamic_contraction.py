"""Products whose scale and zero point are known at run time: the kernels of others with an epilogue of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.activations import ACTIVATIONS, Activation
from qdialect.dialect import AnyDynamic, DynamicConv2DOp, DynamicDenseOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.qnn_to_linalg.bodies.float_functions import emit_expression
from qdialect.lowering.qnn_to_linalg.contractions.contraction import convolution
from qdialect.lowering.qnn_to_linalg.contractions.emission import emit
from qdialect.lowering.qnn_to_linalg.contractions.epilogue import Epilogue
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import (
    CenteredWeights,
    ConstantWeights,
    center,
    folded_bias,
)
from qdialect.lowering.qnn_to_linalg.conversions.contraction import data_of, groups_of, taps_of, window_of
from qdialect.lowering.qnn_to_linalg.graph.fusion_groups import ResultEpilogue
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, lowers
from qdialect.lowering.qnn_to_linalg.program.operands import known_number, required_constant
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.lowering.qnn_to_linalg.program.storage import signed_shift
from qdialect.lowering.qnn_to_linalg.stages.stage_kernel import EmitStage, EpiloguePart, RowParameter
from qdialect.support.diagnostics import CompileError


@lowers(DynamicConv2DOp, DynamicDenseOp)
def _contraction(lowering: GraphLowering, op: AnyDynamic) -> None:
    weights, data = center(taps_of(op), op.weight_zero_points), data_of(lowering, op)
    known = known_number(op.zero_point)
    point = 0 if known is None else int(known) + signed_shift(op.data.type)
    further = lowering.epilogue(op)
    parts = (_RunTimeDequantize.of(lowering, op, weights), *([_Further(further)] if further else []))
    start = np.zeros(shape_of(op.weight.type)[0], np.int32)
    constant = ConstantWeights(weights, folded_bias(weights, start, point))
    window = window_of(op, data)
    contraction = convolution(data, lowering.product(op), Epilogue(parts), window, constant, groups_of(op))
    emit(lowering.program, contraction, op.operation.name)


@dataclass(frozen=True)
class _RunTimeDequantize(EpiloguePart):
    """``float32(acc - zero_point * sums) * (scale * scales) + bias`` and `activation` of it, constants folded.

    Where the scale is the last factor, it is ``float32(acc - zero_point * sums) * scales * scale``.
    """

    scales: NDArray[np.float32]
    sums: NDArray[np.int32] | None
    """Of the weights of each channel; None where the accumulators are free of the zero point."""
    bias: NDArray[np.float32] | None
    scale: RowParameter | float
    """Or a constant: 1 where it is folded."""
    is_last: bool
    zero_point: RowParameter | None
    activation: Activation
    alpha: float

    @classmethod
    def of(cls, lowering: GraphLowering, op: AnyDynamic, weights: CenteredWeights) -> _RunTimeDequantize:
        """That of `op`; raises `CompileError` where the bias is not constant and finite."""
        scales, known = np.array(op.weight_scales, dtype=np.float32), known_number(op.scale)
        bias = None if op.bias is None else required_constant("bias", op.bias)
        if bias is not None and not np.all(np.isfinite(bias)):
            raise CompileError("bias must be finite to be compiled, but got an infinity or NaN")
        scale = _row_parameter(lowering, "row_scale", op.scale) if known is None else float(known)
        if not op.scale_last and not isinstance(scale, RowParameter):
            scale, scales = 1.0, np.float32(scale) * scales
        factors, function = (scale, op.scale_last), (op.activation, op.alpha)
        if known_number(op.zero_point) is not None:
            return cls(scales, None, bias, *factors, None, *function)
        start = np.zeros(shape_of(op.weight.type)[0], np.int32)
        sums = folded_bias(weights, start, -1)
        return cls(scales, sums, bias, *factors, _row_parameter(lowering, "row_zero_point", op.zero_point), *function)

    def channel_parameters(self) -> list[tuple[str, NDArray[Any]]]:
        """Arrays by channel: name and values."""
        named = [("scale", self.scales), ("weight_sum", self.sums), ("f32_bias", self.bias)]
        return [(name, values) for name, values in named if values is not None]

    def row_parameters(self) -> Sequence[RowParameter]:
        """Stored tensors by row."""
        return [one for one in (self.scale, self.zero_point) if isinstance(one, RowParameter)]

    def declare(self, kernel: Kernel) -> EmitStage:
        """What emits the stage into a body."""

        def emit(body: Body, acc: Value, parameters: Sequence[Value], _: Value | None) -> Value:
            names = [*(name for name, _ in self.channel_parameters()), *(one.name for one in self.row_parameters())]
            held = dict(zip(names, parameters, strict=True))
            if self.zero_point is not None:
                point = body.cast("arith.extui", held["row_zero_point"], "i32")
                acc = body.subtract(acc, body.multiply(point, held["weight_sum"]))
            value = self._scaled(body, body.cast("arith.sitofp", acc, "f32"), held)
            biased = value if self.bias is None else body.add(value, held["f32_bias"])
            alpha = self.alpha if self.activation.has_alpha else None
            return emit_expression(body, ACTIVATIONS[self.activation], biased, alpha=alpha)

        return emit

    def _scaled(self, body: Body, value: Value, held: Mapping[str, Value]) -> Value:
        if not isinstance(self.scale, RowParameter):
            scaled = body.multiply(value, held["scale"])
            return scaled if self.scale == 1 else body.multiply(scaled, body.constant(self.scale, "f32"))
        if self.is_last:
            return body.multiply(body.multiply(value, held["scale"]), held["row_scale"])
        return body.multiply(value, body.multiply(held["row_scale"], held["scale"]))


@dataclass(frozen=True)
class _Further(EpiloguePart):
    """Element-wise ops on the f32 values."""

    epilogue: ResultEpilogue

    def channel_parameters(self) -> list[tuple[str, NDArray[Any]]]:
        """Arrays by channel: name and values."""
        return [(f"channels{i}", array) for i, array in enumerate(self.epilogue.arrays())]

    def declare(self, kernel: Kernel) -> EmitStage:
        """What emits the ops into a body."""
        return lambda body, value, parameters, _: self.epilogue.emit(body, value, parameters)


def _row_parameter(lowering: GraphLowering, name: str, value: ir.Value) -> RowParameter:
    slot = lowering.slot(value)
    is_single = prod(shape_of(value.type)) == 1
    image, row, column, _ = slot.storage.strides
    return RowParameter(name, slot, (0, 0, 0) if is_single else (image, row, column))
