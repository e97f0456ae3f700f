"""linalg -> llvm without tiling, vectors or instructions: loops over scalars, as upstream's passes write them.

Nothing of the compiler's own steps after `linalg` takes part, so that their results can be compared with it.
"""

from __future__ import annotations

from qdialect._mlir import ir, passmanager
from qdialect.lowering.to_llvm import to_llvm

_PASSES = (
    *("one-shot-bufferize", "func.func(convert-linalg-to-loops)", "canonicalize", "cse"),
    # Memory that a kernel allocates is freed at its end.
    "buffer-deallocation-pipeline",
)
_LOOPS = f"builtin.module({','.join(_PASSES)})"


def linalg_to_plain_loops(module: ir.Module) -> None:
    """Lower the kernels of a module at phase `linalg` to the LLVM dialect in place, one element at a time."""
    with module.context, ir.Location.unknown():
        passmanager.PassManager.parse(_LOOPS).run(module.operation)
    to_llvm(module)
