"""Networks whose fused ops go to a target, and what computes them in the place of a library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphs import graph
from numpy.typing import NDArray
from quantized_layers import add, bias_of, conv, requantize

from qdialect.dialect import MaxPool2DOp, build
from qdialect.dialect.constants import constant
from qdialect.externals.function import ExternalFunction
from qdialect.ir import context
from qdialect.ir._mlir import ir
from qdialect.passes.outline_fused import OutlineFusedPass
from qdialect.passes.outlined import EXTERNAL
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter

Array = NDArray[Any]
Compute = Callable[..., Array]


def branched() -> ir.Module:
    """Four convolutions of i8 with padding, one of whose results is read by two ops, and a pool between."""

    def layer(value: ir.Value, seed: int) -> ir.Value:
        shape = (5, 3, 3, ir.RankedTensorType(value.type).shape[3])
        weight = constant(np.random.default_rng(seed).integers(-127, 127, shape, dtype=np.int8))
        return requantize(conv(value, weight=weight, bias=bias_of(seed)), "i8")

    def body(value: ir.Value) -> list[ir.Value]:
        first = layer(value, 1)
        second, third = layer(first, 2), layer(first, 3)
        joined = add(second, third, "i8")
        pooled = build(
            MaxPool2DOp, joined, element="i8", kernel=(2, 2), strides=(2, 2), output_min=-128, output_max=127
        ).output
        return [layer(pooled, 4), first]

    return graph(["tensor<1x7x6x3xi8>"], body)


def with_externs(module: ir.Module, **options: Any) -> ir.Module:
    """A copy of `module`, fused, with what fits in `options` handed to the target ``npu``."""
    copy = context.copy(module)
    PassManager.parse("fuse-qnn").run(copy)
    PassManager(OutlineFusedPass(target="npu", **options)).run(copy)
    return copy


def interpreted(module: ir.Module) -> Compute:
    """What computes the functions of `module` that go to a target, by the reference."""
    modules = {name: _alone(module, name) for name in _names(module)}

    def compute(function: ExternalFunction, *arrays: Array) -> Array:
        return interpreter.run(modules[function.name], arrays)[0]

    return compute


def _names(module: ir.Module) -> list[str]:
    functions = [op.operation for op in module.body.operations]
    return [ir.StringAttr(f.attributes["sym_name"]).value for f in functions if EXTERNAL in f.attributes]


def _alone(module: ir.Module, name: str) -> ir.Module:
    """The function of that name as the one of a module."""
    copy = context.copy(module)
    with copy.context:
        for op in [op.operation for op in copy.body.operations]:
            if ir.StringAttr(op.attributes["sym_name"]).value != name:
                op.erase()
        (function,) = copy.body.operations
        function.operation.attributes["sym_name"] = ir.StringAttr.get("main")
        del function.operation.attributes["sym_visibility"]
        return ir.Module.parse(str(copy))
