"""A network in a fresh process: time and memory of compiling it, and the share of a core's peak that it reaches.

``python -m qdialect.bench.footprint MODEL BATCH`` prints one JSON object.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdialect import targets
from qdialect.bench.cases import Case, EngineError
from qdialect.bench.core_model.profile import profile_ops
from qdialect.dialect import BlockDenseOp, BlockDynamicDenseOp, BlockGatherOp
from qdialect.dialect.constants import constant_value, constants_of
from qdialect.frontends.model_files import read_model
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.lowered import ports
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.to_linalg import main_function
from qdialect.runtime.comparison import random_inputs
from qdialect.runtime.compiler import CompiledExecutable
from qdialect.support.diagnostics import QDialectError
from qdialect.support.options import ImportOptions

Fields = dict[str, Any]
_FORMS = ("qdq", "onnx", "tflite")
_LAST_CHARACTERS = 300


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


@dataclass(frozen=True)
class CoreShare:
    """Of one network on one core; unknown figures are 0."""

    name: str
    seconds: float
    """All kernel calls together."""
    of_peak: float
    """Their rate of products as a share of the bare dot products'."""
    of_bound: float
    """The least time of their instructions on the busiest port, or of their bytes, as a share of their time."""
    median_error: float
    """Of the predictions of the cost model, as a share of the time of a call."""
    weighted_error: float
    """The mean of these errors, each call weighted by its time."""


def measured_apart(case: Case) -> tuple[Footprint, CoreShare]:
    """Both, of the network in a process of its own; raises `EngineError` where that fails."""
    form = next(case.forms[name] for name in _FORMS if name in case.forms)
    first = form.inputs()[0]
    batch = first.shape[0] if first.ndim else 1
    done = subprocess.run(
        [sys.executable, "-m", __name__, form.model, str(batch)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip()[-_LAST_CHARACTERS:]
        raise EngineError(f"footprint of '{case.name}' ended with status {done.returncode}: {said}")
    compiled, profiled = json.loads(done.stdout)
    return Footprint(name=case.name, weights=case.weight_bytes, **compiled), CoreShare(name=case.name, **profiled)


def _compiled(model: str, batch: int) -> tuple[ir.Module, Fields]:
    start = time.perf_counter()
    module = read_model(model, ImportOptions(batch))
    lowered = lower(module, targets.host(), Phase.LLVM)
    executable = CompiledExecutable(lowered)
    seconds = time.perf_counter() - start
    # The maximum of bytes that this process had as this program; `getrusage` also knows what it was forked from.
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return module, {
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


def _profiled(module: ir.Module) -> Fields:
    """On the last core that this process may use."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    found = profile_ops(module, random_inputs(ports(main_function(module), "arg"), 0))
    error = found.model_error
    return {
        "seconds": found.seconds,
        "of_peak": found.macs / found.seconds / found.peak if found.peak else 0.0,
        "of_bound": found.bound / found.seconds if found.bound else 0.0,
        "median_error": error.median if error else 0.0,
        "weighted_error": error.weighted if error else 0.0,
    }


def main(model: str, batch: str) -> int:
    """Print both as JSON; the exit status."""
    try:
        module, compiled = _compiled(model, int(batch))
        print(json.dumps([compiled, _profiled(module)]))
    except QDialectError as error:
        print(error.render(), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
