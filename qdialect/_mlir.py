"""The one door to the MLIR Python bindings.

Every other module imports ``ir`` and friends from here, so a move of the pinned wheel (or to upstream's own ``mlir``
package, which has the same modules under another name) touches this file alone.
"""

import sys
from types import ModuleType

from torch_mlir import ir, passmanager, rewrite
from torch_mlir.dialects import arith, ext, func, llvm, math, memref, quant, scf, vector
from torch_mlir.dialects.transform import interpreter as transform_interpreter
from torch_mlir.execution_engine import ExecutionEngine


def announce_dialect(namespace: str, module: ModuleType) -> None:
    """Say which module a dialect is defined in: without one, the bindings search the disk for it at each of its ops."""
    package = ext.__name__.rpartition(".")[0]
    sys.modules.setdefault(f"{package}.{namespace}", module)


__all__ = [
    "ExecutionEngine",
    "announce_dialect",
    "arith",
    "ext",
    "func",
    "ir",
    "llvm",
    "math",
    "memref",
    "passmanager",
    "quant",
    "rewrite",
    "scf",
    "transform_interpreter",
    "vector",
]
