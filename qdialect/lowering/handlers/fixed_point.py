"""Functions of 16-bit fixed-point numbers: a table of every argument, read by gathers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.dialect.fixed_point_ops import FixedPointFunctionOp
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.maps import map_values
from qdialect.lowering.kernels.elementwise import Emit
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.lanes import TILE_LANES
from qdialect.quant_math.fixed_point_functions import fixed_point_table

_BIAS = 2**15


@lowers(FixedPointFunctionOp)
def _fixed_point_function(lowering: GraphLowering, op: FixedPointFunctionOp) -> None:
    # Gathers read words of 32 bits.
    table = fixed_point_table(op.function, op.integer_bits).astype(np.int32)

    def declare(kernel: Kernel) -> Emit:
        entries = kernel.flat_tensor(kernel.data("table", table))

        def emit(body: Body, values: Sequence[Value]) -> Value:
            argument = body.cast("arith.extsi", values[0], "i32")
            index = body.cast("arith.index_cast", body.add(argument, body.constant(_BIAS, "i32")), "index")
            return body.cast("arith.trunci", body.extract(entries, index), "i16")

        return emit

    map_values(lowering, op.output, [op.input], declare, op.operation.name, TILE_LANES)
