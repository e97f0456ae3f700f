"""The one door to the MLIR Python bindings.

Every other module imports ``ir`` and friends from here, so a move of the pinned wheel (or to upstream's own ``mlir``
package, which has the same modules under another name) touches this file alone.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from qdialect.support.diagnostics import QDialectError
from qdialect.support.late_imports import UNINTERRUPTED
from qdialect.support.limits import check_stack

# Loading the libraries needs a larger stack than a thread may have.
check_stack()
try:
    with UNINTERRUPTED:
        from torch_mlir import ir, passmanager, rewrite
        from torch_mlir._mlir_libs._mlir import register_dialect, register_op_adaptor, register_operation
        from torch_mlir.dialects import arith, ext, irdl
except ImportError as error:
    # Its libraries may be there, and not the memory for them.
    raise QDialectError(f"MLIR's Python bindings cannot be loaded: {error}") from error

if TYPE_CHECKING:
    from torch_mlir.dialects import func, llvm, math, memref, quant, scf, transform, vector
    from torch_mlir.dialects.transform import interpreter as transform_interpreter
    from torch_mlir.dialects.transform import loop as loop_transform
    from torch_mlir.dialects.transform import memref as memref_transform
    from torch_mlir.dialects.transform import structured as structured_transform
    from torch_mlir.dialects.transform import tensor as tensor_transform
    from torch_mlir.dialects.transform import vector as vector_transform
    from torch_mlir.execution_engine import ExecutionEngine

# Needed only for lowering and running: thousands of generated op classes, which every command would wait for.
_LATE = {
    **{name: f"dialects.{name}" for name in ("func", "math", "memref", "quant", "scf", "transform", "vector")},
    # Its types and its translation without the classes of its ops, which nothing here uses.
    "llvm": "_mlir_libs._mlirDialectsLLVM",
    "transform_interpreter": "dialects.transform.interpreter",
    "loop_transform": "dialects.transform.loop",
    "memref_transform": "dialects.transform.memref",
    "structured_transform": "dialects.transform.structured",
    "tensor_transform": "dialects.transform.tensor",
    "vector_transform": "dialects.transform.vector",
}
_PACKAGE = ir.__name__.rpartition(".")[0]
# The bindings import it at the first op or attribute: not then, when another thread may fork.
with UNINTERRUPTED:
    import_module(f"{_PACKAGE}.dialects.builtin")


def __getattr__(name: str) -> object:
    with UNINTERRUPTED:
        if name in _LATE:
            found: object = import_module(f"{_PACKAGE}.{_LATE[name]}")
        elif name == "ExecutionEngine":
            found = import_module(f"{_PACKAGE}.execution_engine").ExecutionEngine
        else:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = found
    return found


def walk(
    op: ir.Operation | ir.OpView,
    visit: Callable[[ir.Operation], ir.WalkResult],
    order: ir.WalkOrder = ir.WalkOrder.PRE_ORDER,
) -> None:
    """Call `visit` for `op` and all ops in it.

    Ctrl-C waits: an exception that MLIR passes on is another one then, and in a rewrite it ends the process.
    """
    with UNINTERRUPTED:
        op.walk(visit, order)


def ops_in(op: ir.Operation, order: ir.WalkOrder = ir.WalkOrder.PRE_ORDER) -> list[ir.Operation]:
    """`op` and all ops in it; MLIR's walk is many times as fast as walking regions and blocks."""
    found: list[ir.Operation] = []

    def visit(one: ir.Operation) -> ir.WalkResult:
        found.append(one)
        return ir.WalkResult.ADVANCE

    walk(op, visit, order)
    return found


def announce_dialect(namespace: str, module: ModuleType) -> None:
    """Register the module that defines a dialect: else the bindings search the disk for it at each of its ops."""
    package = ext.__name__.rpartition(".")[0]
    sys.modules.setdefault(f"{package}.{namespace}", module)


def load_few_classes(context: ir.Context) -> None:
    """Let the bindings take the generated op classes alone for ops of linalg, and none for those of llvm.

    At the first op of a dialect they import its module. That of linalg also has the named ops as Python functions, and
    that of llvm a class for each intrinsic: the two take longer than all others. Who imports them later gets all of it.
    """
    generated = import_module(f"{_PACKAGE}.dialects._linalg_ops_gen")
    _stand_in("linalg", generated, "linalg.yield", context)
    _stand_in("llvm", ModuleType("llvm"), "llvm.unreachable", context)


def _stand_in(namespace: str, module: ModuleType, op: str, context: ir.Context) -> None:
    """Let the bindings take `module` for that of a dialect, at its op `op`; nothing where it is imported already."""
    name = f"{_PACKAGE}.dialects.{namespace}"
    if name in sys.modules:
        return
    sys.modules[name] = module
    try:
        with context, ir.Location.unknown():
            _ = ir.Operation.create(op).opview
    finally:
        del sys.modules[name]


def dialect_module(namespace: str) -> ModuleType | None:
    """The module with the op classes of a dialect; None where the dialect defines none."""
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
    "irdl",
    "llvm",
    "load_few_classes",
    "loop_transform",
    "math",
    "memref",
    "memref_transform",
    "passmanager",
    "quant",
    "register_dialect",
    "register_op_adaptor",
    "register_operation",
    "rewrite",
    "scf",
    "structured_transform",
    "tensor_transform",
    "transform",
    "transform_interpreter",
    "vector",
    "vector_transform",
    "ops_in",
    "walk",
]
