"""The one door to the MLIR Python bindings.

Every other module imports ``ir`` and friends from here, so a move of the pinned wheel (or to upstream's own ``mlir``
package, which has the same modules under another name) touches this file alone.
"""

import sys
from importlib import import_module
from types import ModuleType

from torch_mlir import ir, passmanager, rewrite
from torch_mlir.dialects import arith, ext, func, math, memref, quant, scf, vector
from torch_mlir.dialects.transform import interpreter as transform_interpreter
from torch_mlir.execution_engine import ExecutionEngine


def announce_dialect(namespace: str, module: ModuleType) -> None:
    """Say which module a dialect is defined in: without one, the bindings search the disk for it at each of its ops."""
    package = ext.__name__.rpartition(".")[0]
    sys.modules.setdefault(f"{package}.{namespace}", module)


def dialect_module(namespace: str) -> ModuleType | None:
    """The module with the op classes of a dialect; None where there is none."""
    try:
        return import_module(f"{ext.__name__.rpartition('.')[0]}.{namespace}")
    except ImportError:
        return None


__all__ = [
    "ExecutionEngine",
    "announce_dialect",
    "arith",
    "dialect_module",
    "ext",
    "func",
    "ir",
    "math",
    "memref",
    "passmanager",
    "quant",
    "rewrite",
    "scf",
    "transform_interpreter",
    "vector",
]
