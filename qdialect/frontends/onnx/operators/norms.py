"""Reductions of floats with functions around them: ReduceL1, ReduceL2, ReduceLogSum, ReduceProd and others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32MaxOp, F32ProdOp, F32ReduceOp, F32SumOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.onnx.operators.f32 import computed
from qdialect.frontends.onnx.operators.reduction import axes_of
from qdialect.frontends.onnx.operators.registry import Call, imports_f32
from qdialect.frontends.planning.emitter import Emitter
from qdialect.frontends.planning.f32_builder import F32Builder, reduced
from qdialect.frontends.planning.plain import Arithmetic
from qdialect.frontends.planning.reduction import reduced_shape
from qdialect.frontends.planning.tensors import Computed

_LARGEST = float(np.finfo(np.float32).max)

_Function = Callable[[Arithmetic, ir.Value], ir.Value]


def _same(_: Arithmetic, x: ir.Value) -> ir.Value:
    return x


def _magnitude(s: Arithmetic, x: ir.Value) -> ir.Value:
    return s.op("math.absf", x)


def _square(s: Arithmetic, x: ir.Value) -> ir.Value:
    return s.op("arith.mulf", x, x)


@dataclass(frozen=True)
class _Norm:
    """``after(reduction of before(x))``."""

    before: _Function
    op_class: type[F32ReduceOp]
    after: _Function


_NORMS = {
    "ReduceL1": _Norm(_magnitude, F32SumOp, _same),
    "ReduceL2": _Norm(_square, F32SumOp, lambda s, x: s.op("math.sqrt", x)),
    "ReduceLogSum": _Norm(_same, F32SumOp, lambda s, x: s.op("math.log", x)),
    "ReduceProd": _Norm(_same, F32ProdOp, _same),
    "ReduceSumSquare": _Norm(_square, F32SumOp, _same),
}


@imports_f32(*_NORMS)
def _norm(call: Call) -> Computed:
    shape, norm = call.f32(0).shape, _NORMS[call.node.kind]
    axes, keep_dims = axes_of(call, len(shape)), call.flag("keepdims", 1)

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        s = Arithmetic(emitter)
        terms = norm.before(s, values[0])
        if axes:
            terms = emitter.build(norm.op_class, terms, element="f32", axes=axes, keep_dims=keep_dims)
        return norm.after(s, terms)

    return computed(call, reduced_shape(shape, axes, keep_dims), (0,), build)


@imports_f32("ReduceLogSumExp")
def _log_sum_exp(call: Call) -> Computed:
    """``m + log(sum(e^(x - m)))`` with the largest number m, where it is finite."""
    shape = call.f32(0).shape
    axes, keep_dims = axes_of(call, len(shape)), call.flag("keepdims", 1)
    after = reduced_shape(shape, axes, keep_dims)

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        s, (x,) = F32Builder(emitter, shape), values
        if not axes:
            return x
        largest = reduced(emitter, F32MaxOp, x, axes)
        kept = F32Builder(emitter, shape_of(largest.type))
        bounded = kept("minimumf", kept("maximumf", largest, -_LARGEST), _LARGEST)
        terms = s("exp", s("subf", x, bounded))
        return F32Builder(emitter, after)(
            "addf",
            emitter.float_op("math.log", reduced(emitter, F32SumOp, terms, axes, keep_dims)),
            emitter.reshape(bounded, after),
        )

    return computed(call, after, (0,), build)
