"""Tables between stored values, as data of a kernel."""

from __future__ import annotations

import numpy as np

from qdialect.lowering.program import Kernel
from qdialect.lowering.text.kernel_text import Tensor
from qdialect.quant_math import Table


def stored_table(table: Table, input_shift: int, output_shift: int) -> Table:
    """A table between bit patterns as one between stored quantized values; shifts are 128 for signed, else 0."""
    index = (np.arange(256) - input_shift) % 256
    return ((table[index].astype(np.int64) + output_shift) % 256).astype(np.uint8)


def declare_table(kernel: Kernel, table: Table) -> Tensor:
    """The tensor of a table parameter of `kernel`."""
    buffer = kernel.data("table", np.asarray(table, dtype=np.uint8).view(np.int8))
    return kernel.flat_tensor(buffer)
