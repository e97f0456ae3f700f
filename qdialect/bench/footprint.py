"""Time and memory of compiling a network, and of the compiled network: measured in a fresh process.

``python -m qdialect.bench.footprint MODEL BATCH`` prints one JSON object.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from qdialect import targets
from qdialect.bench.cases import Case
from qdialect.bench.process import Fields, measured_apart, print_measured
from qdialect.dialect import BlockDenseOp, BlockDynamicDenseOp, BlockGatherOp
from qdialect.dialect.constants import constant_value, constants_of
from qdialect.frontends.model_files import read_model
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.runtime.compiler import CompiledExecutable
from qdialect.support.options import ImportOptions


@dataclass(frozen=True)
class Footprint:
    """Of one network; sizes are bytes."""

    name: str
    seconds: float
    """From the model file to machine code, the first compilation of the process."""
    process: int
    """The maximum of memory that the process had."""
    kernels: int
    calls: int
    arena: int
    """Where all intermediate values of a call are placed."""
    live: int
    """The intermediate values that live at once, at their maximum."""
    constants: int
    """Packed weights, biases, multipliers and tables."""
    weights: int
    """Weights and biases in the model."""
    packed: int
    """Packed weights."""
    eight_bit: int
    """8-bit constants in the model, and the scales of weights in blocks."""


def footprint(case: Case) -> Footprint:
    """Compile the network in a process of its own; raises `EngineError` where that fails."""
    return Footprint(name=case.name, weights=case.weight_bytes, **measured_apart(__name__, case))


def _compiled(model: str, batch: int) -> Fields:
    start = time.perf_counter()
    module = read_model(model, ImportOptions(batch))
    lowered = lower(module, targets.host(), Phase.LLVM)
    executable = CompiledExecutable(lowered)
    seconds = time.perf_counter() - start
    # The maximum of bytes that this process had as this program; `getrusage` also knows what it was forked from.
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return {
        "seconds": seconds,
        "process": int(line.split()[1]) * 1024,
        "kernels": executable.kernels,
        "calls": len(executable.calls),
        "arena": executable.working_memory,
        "live": lowered.live_bytes,
        "constants": executable.constants_bytes,
        "packed": lowered.weights_bytes,
        "eight_bit": sum(array.nbytes for array in constants_of(module) if array.itemsize == 1) + _scale_bytes(module),
    }


def _scale_bytes(module: ir.Module) -> int:
    operations = (op for function in module.body.operations for op in function.regions[0].blocks[0].operations)
    scales = {op.scales for op in operations if isinstance(op, BlockDenseOp | BlockDynamicDenseOp | BlockGatherOp)}
    return sum(array.nbytes for array in map(constant_value, scales) if array is not None)


if __name__ == "__main__":
    sys.exit(print_measured(_compiled, sys.argv[1:]))
