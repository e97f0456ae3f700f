"""`qnn-tabulate-unary`: every function of one 8-bit tensor becomes the table that it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from qdialect.arithmetic.choices import LeakyMode
from qdialect.dialect import LeakyReluOp, RequantizeOp, UnaryOp
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.pattern import GraphPass, Pattern, Replacement, rebuilt, require
from qdialect.passes.registry import register
from qdialect.passes.tabulate import LutMatch, LutPattern, is_eight_bit, tabulated, uniform_value
from qdialect.support.diagnostics import PipelineError

KEEP = "keep"
"""The value of `leaky-relu` that leaves each op its own mode."""


@dataclass(frozen=True)
class TabulateUnary(LutPattern):
    """A unary op is the table of its arithmetic; a leaky_relu only in the arithmetic `leaky_mode`, None for any."""

    roots = (UnaryOp,)
    leaky_mode: LeakyMode | None = None

    def check(self, op: UnaryOp) -> LutMatch | None:
        if isinstance(op, LeakyReluOp) and self.leaky_mode not in (None, op.mode):
            return None
        return tabulated(op, op.input, op.input_params, op.output_params)


class TabulateRequantize(LutPattern):
    """A requantize from 8 bits to 8 bits is a table."""

    roots = ("qnn.requantize",)

    def check(self, op: RequantizeOp) -> LutMatch | None:
        if not is_eight_bit(op.input) or not is_eight_bit(op.output):
            return None
        is_one = op.weight_scales == (1.0,) and len(op.input_zero_points) == 1
        require(is_one, "must have the weight scale 1 and one zero point for the tensor")
        return tabulated(op, op.input, op.input_params, op.output_params)


class TabulateConstantOperand(LutPattern):
    """A function of two tensors, one a constant that is the same everywhere, is a table of the other."""

    roots = (BinaryOp,)

    def check(self, op: BinaryOp) -> LutMatch | None:
        constants = [uniform_value(value) is not None for value in (op.lhs, op.rhs)]
        if not any(constants):
            return None
        source = op.rhs if constants[0] else op.lhs
        is_whole = shape_of(source.type) == shape_of(op.output.type)
        require(is_whole, "must not broadcast the operand that is not a constant")
        before = op.rhs_params if constants[0] else op.lhs_params
        return tabulated(op, source, before, op.output_params)


@dataclass(frozen=True)
class SetLeakyMode(Replacement[LeakyMode]):
    """A leaky_relu follows the arithmetic `mode` instead of its own."""

    roots = ("qnn.leaky_relu",)
    mode: LeakyMode

    def check(self, op: LeakyReluOp) -> LeakyMode | None:
        if op.mode is self.mode:
            return None
        most, text = (1, "1") if self.mode is LeakyMode.FIXED else (2**30, "2^30")
        holds = self.mode is LeakyMode.LUT or 0 <= op.alpha <= most
        require(holds, f"must have an alpha in [0, {text}] for {self.mode}, but got {op.alpha}")
        return self.mode

    def emit(self, op: LeakyReluOp, match: LeakyMode) -> ir.Value:
        return rebuilt(op, mode=match).output


def check_leaky_relu(pass_name: str, value: str) -> None:
    """Raise `PipelineError` unless `value` is one that the option `leaky-relu` of `pass_name` can have."""
    known = [KEEP, *map(str, LeakyMode)]
    if value not in known:
        wanted = f"must be one of {', '.join(known)}, but got '{value}'"
        raise PipelineError(f"option 'leaky-relu' of '{pass_name}' {wanted}")


@register
@dataclass(frozen=True)
class TabulateUnaryPass(GraphPass):
    """Turn every function of one 8-bit tensor into a table.

    These are unary ops, requantizations between 8-bit tensors, and functions of two tensors of which one is a uniform
    constant. `leaky-relu` overrides the arithmetic of leaky_relu: ``fixed`` (TVM), ``tflite``, or ``lut``, the rounded
    float function; by default, ``keep``, each op follows its own mode.
    """

    name: ClassVar[str] = "qnn-tabulate-unary"
    leaky_relu: str = KEEP

    def __post_init__(self) -> None:
        check_leaky_relu(self.name, self.leaky_relu)

    def patterns(self) -> Sequence[Pattern[Any]]:
        others = (TabulateRequantize(), TabulateConstantOperand())
        if self.leaky_relu == KEEP:
            return (TabulateUnary(), *others)
        mode = LeakyMode(self.leaky_relu)
        return (SetLeakyMode(mode), TabulateUnary(mode), *others)
