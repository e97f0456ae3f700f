"""Element-wise functions of one 8-bit tensor, and the table that each of them is."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from qdialect.arithmetic import Entries, NanPolicy, QuantizedDtype, Table, activations, tables
from qdialect.arithmetic.choices import HardswishMode, LeakyMode
from qdialect.arithmetic.expressions import Alpha, Expression, has_parameter
from qdialect.dialect.fields import F64, I64, SCALE, TABLE, attribute, choice, operand, params, result
from qdialect.dialect.op_base import QnnOp, check_zero_points, require
from qdialect.dialect.type_constraints import EIGHT_BIT, dtype_of


class EightBitFunction(QnnOp):
    """A function between two 8-bit quantizations.

    Constraints:
      C1: zero points must lie in the range of their tensor
    """

    input = operand(EIGHT_BIT)
    input_scale = attribute(SCALE)
    input_zero_point = attribute(I64)
    output_scale = attribute(SCALE)
    output_zero_point = attribute(I64)
    output = result(EIGHT_BIT)

    def check(self) -> None:
        check_zero_points("C1", "input_zero_point", (self.input_zero_point,), self.input.type)
        check_zero_points("C1", "output_zero_point", (self.output_zero_point,), self.output.type)

    input_params = params()
    output_params = params()


class LutOp(EightBitFunction, name="lut"):
    """Table look-up: ``output = table[unsigned bit pattern of input]``.

    Entry 255 belongs to the value 255 of a `ui8` tensor and to the value -1 of an `i8` one; entries are bit patterns of
    the result's element type, which may differ from the input's.  The scales and zero points do not enter the look-up:
    they state which f32 values the quantized values represent.
    """

    table = attribute(TABLE)


class UnaryOp(EightBitFunction):
    """A function of f32 values between two 8-bit quantizations.

    ``output = sat(round(f((input - z_i) * s_i) / s_o) + z_o)`` in float32; `entries` states how the quotient is formed
    and rounded, `nan` which quantized value a NaN becomes.
    """

    entries = attribute(choice(Entries), Entries.HALF_AWAY_DIVIDE)
    nan = attribute(choice(NanPolicy), NanPolicy.MAX)

    function: ClassVar[Expression]
    """f; where it has a parameter, that is the attribute `alpha`."""

    @classmethod
    def __init_subclass__(cls, *, name: str, function: Expression, **kwargs: Any) -> None:
        if has_parameter(function) != ("alpha" in vars(cls)):
            raise TypeError(f"{cls.__name__} must have the attribute alpha if and only if its function has a parameter")
        super().__init_subclass__(name=name, **kwargs)
        cls.function = function

    def to_table(self) -> Table:
        """``table[bits(input)] = bits(output)``, uint8[256]: what the op computes, in its own arithmetic.

        Raises `ValueError` where that arithmetic refuses the parameters (see `qdialect.arithmetic`).
        """
        alpha: float = self.attribute_values().get("alpha", 0.0)
        return tables.build_table(lambda x: self.function(x, alpha=alpha), *self._ends(), self.entries, self.nan)

    def _ends(self) -> tuple[QuantizedDtype, QuantizedDtype]:
        """The types of the quantized values of input and result."""
        source = QuantizedDtype(self.input_scale, self.input_zero_point, dtype_of(self.input.type))
        return source, QuantizedDtype(self.output_scale, self.output_zero_point, dtype_of(self.output.type))


class ReluOp(UnaryOp, name="relu", function=activations.relu):
    """``max(x, 0)``."""


class Relu6Op(UnaryOp, name="relu6", function=activations.relu6):
    """``min(max(x, 0), 6)``."""


class SiluOp(UnaryOp, name="silu", function=activations.silu):
    """``x * sigmoid(x)``, also called swish."""


class SigmoidOp(UnaryOp, name="sigmoid", function=activations.sigmoid):
    """``1 / (1 + exp(-x))``."""


class TanhOp(UnaryOp, name="tanh", function=activations.tanh):
    """``tanh(x)``."""


class GeluOp(UnaryOp, name="gelu", function=activations.gelu):
    """``x / 2 * (1 + erf(x / sqrt(2)))``."""


class ExpOp(UnaryOp, name="exp", function=activations.exp):
    """``exp(x)``."""


class ErfOp(UnaryOp, name="erf", function=activations.erf):
    """``erf(x)``."""


class LogOp(UnaryOp, name="log", function=activations.log):
    """``log(x)``."""


class SqrtOp(UnaryOp, name="sqrt", function=activations.sqrt):
    """``sqrt(x)``."""


class RsqrtOp(UnaryOp, name="rsqrt", function=activations.rsqrt):
    """``1 / sqrt(x)``."""


class AbsOp(UnaryOp, name="abs", function=activations.absolute):
    """``|x|``."""


class EluOp(UnaryOp, name="elu", function=activations.elu(Alpha())):
    """``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere."""

    alpha = attribute(F64, 1.0)


class LeakyReluOp(UnaryOp, name="leaky_relu", function=activations.leaky_relu(Alpha())):
    """``x`` where positive, ``alpha * x`` elsewhere; `mode` chooses the arithmetic.

    `entries` applies to the mode ``lut`` only: ``fixed`` and ``tflite`` are integer arithmetics.

    Constraints:
      C2: alpha must lie in [0, 1] in mode ``fixed`` and in [0, 2^30] in mode ``tflite``
    """

    alpha = attribute(F64, 0.01)
    mode = attribute(choice(LeakyMode), LeakyMode.LUT)

    def check(self) -> None:
        super().check()
        maximum = {LeakyMode.LUT: math.inf, LeakyMode.FIXED: 1, LeakyMode.TFLITE: 2**30}[self.mode]
        holds = self.mode is LeakyMode.LUT or 0 <= self.alpha <= maximum
        require(holds, "C2", f'alpha must be in [0, {maximum}] in mode "{self.mode}", but got {self.alpha}')

    def to_table(self) -> Table:
        if self.mode is LeakyMode.LUT:
            return super().to_table()
        build = tables.tvm_leaky_relu_table if self.mode is LeakyMode.FIXED else tables.tflite_leaky_relu_table
        return build(self.alpha, *self._ends())


class HardswishOp(UnaryOp, name="hardswish", function=activations.hardswish):
    """``x * min(max(x + 3, 0), 6) / 6``; `mode` chooses the arithmetic.

    `entries` applies to the mode ``lut`` only: ``tflite`` is a fixed-point arithmetic.

    Constraints:
      C2: output_scale must exceed input_scale / 128 in mode ``tflite``, which only ever shifts right
    """

    mode = attribute(choice(HardswishMode), HardswishMode.LUT)

    def check(self) -> None:
        super().check()
        minimum = tables.hard_swish_bound(self.input_scale)
        holds = self.mode is HardswishMode.LUT or float(np.float32(self.output_scale)) > minimum
        require(holds, "C2", f"output_scale must be greater than {minimum}, but got {self.output_scale}")

    def to_table(self) -> Table:
        if self.mode is HardswishMode.LUT:
            return super().to_table()
        return tables.tflite_hard_swish_table(*self._ends())
