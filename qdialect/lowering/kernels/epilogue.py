"""What happens to an accumulator before it is stored: bias, requantization or real stage, residual sum, table.

A requantization in a `CodeForm` leaves codes outside their bounds.  Before a residual sum they are clamped as they are;
else they are clamped to a byte, which packing does by itself, and the byte to the bounds where these are narrower, or
not at all where a table follows, whose entries outside the bounds are those at them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.arithmetic import Requantization
from qdialect.lowering.code_forms import CodeForm
from qdialect.lowering.kernel_text import Body
from qdialect.lowering.kernels.addition import Addition
from qdialect.lowering.kernels.elementwise import byte_literal
from qdialect.lowering.kernels.real_stage import EmitReal, RealStage
from qdialect.lowering.kernels.rescaling import declare_code
from qdialect.lowering.program import Kernel, Place
from qdialect.quant_math import Table

_BYTE = (0, 255)


@dataclass(frozen=True)
class Residual:
    """A stored tensor to add to codes, and how; without `addition` the real stage adds it."""

    place: Place
    addition: Addition | None


@dataclass(frozen=True)
class Epilogue:
    """The stages of a fused op; without `form`, `requantization` and `real` the accumulators are the result.

    `shift` is added to a requantized code, whose zero point and bounds are its own.
    """

    form: CodeForm | None = None
    requantization: Requantization | None = None
    """Where no form is exact."""
    zero_point: int = 0
    bounds: tuple[int, int] = (0, 0)
    shift: int = 0
    residual: Residual | None = None
    table: Table | None = None
    real: RealStage | None = None

    @property
    def addition(self) -> Addition | None:
        """How codes and residual are added, if they are."""
        return self.residual.addition if self.residual else None

    @property
    def stored_bounds(self) -> tuple[int, int]:
        """Bounds of a requantized code with its shift."""
        return self.bounds[0] + self.shift, self.bounds[1] + self.shift

    def start(self, bias: NDArray[np.int32]) -> NDArray[np.int32]:
        """What accumulators start at, modulo 2^32, where they would start at `bias`."""
        return bias if self.form is None else bias + self.form.offset

    def channel_parameters(self) -> list[tuple[str, NDArray[Any]]]:
        """Per-channel arrays beside the bias: name and values."""
        if self.real is not None:
            return self.real.channel_parameters()
        how = self.form or self.requantization
        return [] if how is None else [(p.name, p.values) for p in how.parameters]


@dataclass(frozen=True)
class Stages:
    """An epilogue whose scalars are declared as parameters of one kernel."""

    epilogue: Epilogue
    emit_code: EmitReal | None
    emit_sum: Callable[[Body, str, str], str] | None
    limit_byte: Callable[[Body, str], str] | None
    table: str | None

    @property
    def element(self) -> str:
        """Element type of what is stored."""
        return "i32" if self.emit_code is None else "i8"

    def emit(self, body: Body, acc: str, parameters: Sequence[str], residual: str | None) -> str:
        """From the biased accumulator (i32) to the stored element."""
        if self.emit_code is None:
            return acc
        code = self.emit_code(body, acc, parameters, residual)
        if self.emit_sum is not None and residual is not None:
            code = self.emit_sum(body, code, residual)
        if self.table is not None:
            index = body.cast("arith.index_cast", code, "i32", "index")
            return body.op(f"tensor.extract {self.table}[{index}] : tensor<256xi8>")
        byte = body.narrow(code, "i32")
        return byte if self.limit_byte is None else self.limit_byte(body, byte)


def declare_stages(kernel: Kernel, epilogue: Epilogue) -> Stages:
    """Declare the scalars and the table of `epilogue` as parameters of `kernel`."""
    emit_code, limit_byte, table = None, None, epilogue.table
    if epilogue.real is not None:
        emit_code = epilogue.real.declare(kernel)
    elif epilogue.form is not None:
        emit_code = _declare_form(kernel, epilogue, epilogue.form)
        bounds = epilogue.stored_bounds
        if epilogue.addition is None and table is not None:
            table = np.asarray(table)[np.clip(np.arange(256), *bounds)]
        elif epilogue.addition is None and bounds != _BYTE:
            limit_byte = _declare_limits(kernel, bounds)
    elif epilogue.requantization is not None:
        emit_code = _declare_rounding(kernel, epilogue, epilogue.requantization)
    if emit_code is None:
        return Stages(epilogue, None, None, None, None)
    add = epilogue.addition.declare(kernel) if epilogue.addition else None
    return Stages(epilogue, emit_code, add, limit_byte, declare_table(kernel, table))


def _declare_form(kernel: Kernel, epilogue: Epilogue, form: CodeForm) -> EmitReal:
    """Emit the code in `form`, limited to its bounds where it is added to another one, and to a byte elsewhere."""
    rescale = form.declare(kernel)
    limits = None
    if epilogue.addition is not None:
        named = zip(("low", "high"), epilogue.stored_bounds, strict=True)
        limits = tuple(kernel.number(name, bound, "i32") for name, bound in named)

    def emit(body: Body, acc: str, parameters: Sequence[str], _: str | None) -> str:
        low, high = limits or (body.constant(bound, "i32") for bound in _BYTE)
        return body.clamp(rescale(body, acc, parameters), low, high, "i32")

    return emit


def _declare_limits(kernel: Kernel, bounds: tuple[int, int]) -> Callable[[Body, str], str]:
    """Emit what limits a byte to `bounds`."""
    low, high = (kernel.number(n, byte_literal(b), "i8") for n, b in zip(("low", "high"), bounds, strict=True))
    return lambda body, byte: body.binary("arith.minui", body.binary("arith.maxui", byte, low, "i8"), high, "i8")


def _declare_rounding(kernel: Kernel, epilogue: Epilogue, how: Requantization) -> EmitReal:
    """Emit the code of an accumulator in the arithmetic of its flavour."""
    rescale = declare_code(kernel, how, epilogue.zero_point, epilogue.bounds, epilogue.shift)
    return lambda body, acc, parameters, _: rescale(body, acc, "i32", parameters)


def declare_table(kernel: Kernel, table: Table | None) -> str | None:
    """The tensor of a table parameter; None without table."""
    if table is None:
        return None
    buffer = kernel.data("table", np.asarray(table, dtype=np.uint8).view(np.int8))
    return kernel.whole(buffer).name
