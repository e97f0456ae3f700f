"""Tables as data of a kernel: between stored values, and with straight lines between their entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import Table
from qdialect.dialect import InterpolatedLutOp
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Tensor
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

# Tables between stored values, as data of a kernel.


def stored_table(table: Table, input_shift: int, output_shift: int) -> Table:
    """A table between bit patterns as one between stored quantized values; shifts are 128 for signed, else 0."""
    index = (np.arange(256) - input_shift) % 256
    return ((table[index].astype(np.int64) + output_shift) % 256).astype(np.uint8)


def declare_table(kernel: Kernel, table: Table) -> Tensor:
    """The tensor of a table parameter of `kernel`."""
    buffer = kernel.data("table", np.asarray(table, dtype=np.uint8).view(np.int8))
    return kernel.flat_tensor(buffer)


# Tables with straight lines between their entries, as data of a kernel.

EmitLookup = Callable[[Body, Value], Value]
"""(body, i32) -> i32."""


@dataclass(frozen=True)
class InterpolatedTable:
    """``(bases[i] << fraction) + r * slopes[i]`` for an i32 of index i and rest r."""

    bases: NDArray[np.int32]
    slopes: NDArray[np.int32]
    fraction: int

    @classmethod
    def of(cls, op: InterpolatedLutOp) -> Self:
        """That of `op`."""
        return cls(np.array(op.bases, np.int32), np.array(op.slopes, np.int32), op.fraction)

    def declare(self, kernel: Kernel, name: str) -> EmitLookup:
        """Declare both tables as parameters of `kernel`."""
        bases = kernel.flat_tensor(kernel.data(f"{name}_bases", self.bases))
        slopes = kernel.flat_tensor(kernel.data(f"{name}_slopes", self.slopes))
        last = (len(self.bases) << self.fraction) - 1

        def emit(body: Body, value: Value) -> Value:
            fraction_bits = body.constant(self.fraction, "i32")
            inside = body.clamp(value, body.constant(0, "i32"), body.constant(last, "i32"))
            index = body.cast("arith.index_cast", body.binary("arith.shrui", inside, fraction_bits), "index")
            rest = body.binary("arith.andi", inside, body.constant((1 << self.fraction) - 1, "i32"))
            base = body.binary("arith.shli", body.extract(bases, index), fraction_bits)
            return body.add(base, body.multiply(rest, body.extract(slopes, index)))

        return emit
