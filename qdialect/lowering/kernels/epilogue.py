"""What happens to an accumulator before it is stored: bias, requantization or real stage, residual sum, table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.arithmetic import Requantization
from qdialect.lowering.kernel_text import Body
from qdialect.lowering.kernels.addition import Addition
from qdialect.lowering.kernels.real_stage import EmitReal, RealStage
from qdialect.lowering.kernels.rescaling import declare_code
from qdialect.lowering.program import Kernel, Place
from qdialect.quant_math import Table


@dataclass(frozen=True)
class Residual:
    """A stored tensor to add to codes, and how; without `addition` the real stage adds it."""

    place: Place
    addition: Addition | None


@dataclass(frozen=True)
class Epilogue:
    """The stages of a fused op; without `requantization` and `real` the accumulators themselves are the result.

    `shift` is added to a requantized code, whose zero point and bounds are its own.
    """

    requantization: Requantization | None = None
    zero_point: int = 0
    bounds: tuple[int, int] = (0, 0)
    shift: int = 0
    residual: Residual | None = None
    table: Table | None = None
    real: RealStage | None = None

    def channel_parameters(self) -> list[tuple[str, NDArray[Any]]]:
        """Per-channel arrays beside the bias: name and values."""
        if self.real is not None:
            return self.real.channel_parameters()
        if self.requantization is None:
            return []
        return [(p.name, p.values) for p in self.requantization.parameters]


@dataclass(frozen=True)
class Stages:
    """An epilogue whose scalars are declared as parameters of one kernel."""

    epilogue: Epilogue
    emit_code: EmitReal | None
    emit_sum: Callable[[Body, str, str], str] | None
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
        if self.table is None:
            return body.cast("arith.trunci", code, "i32", "i8")
        index = body.cast("arith.index_cast", code, "i32", "index")
        return body.op(f"tensor.extract {self.table}[{index}] : tensor<256xi8>")


def declare_stages(kernel: Kernel, epilogue: Epilogue) -> Stages:
    """Declare the scalars and the table of `epilogue` as parameters of `kernel`."""
    code = epilogue.real.declare(kernel) if epilogue.real is not None else _declare_rounding(kernel, epilogue)
    if code is None:
        return Stages(epilogue, None, None, None)
    addition = epilogue.residual.addition if epilogue.residual else None
    add = addition.declare(kernel) if addition else None
    return Stages(epilogue, code, add, declare_table(kernel, epilogue.table))


def _declare_rounding(kernel: Kernel, epilogue: Epilogue) -> EmitReal | None:
    """Emit the code of an accumulator by one multiplier; None where accumulators are the result."""
    how = epilogue.requantization
    if how is None:
        return None
    rescale = declare_code(kernel, how, epilogue.zero_point, epilogue.bounds, epilogue.shift)
    return lambda body, acc, parameters, _: rescale(body, acc, "i32", parameters)


def declare_table(kernel: Kernel, table: Table | None) -> str | None:
    """The tensor of a table parameter; None without table."""
    if table is None:
        return None
    buffer = kernel.data("table", np.asarray(table, dtype=np.uint8).view(np.int8))
    return kernel.whole(buffer).name
