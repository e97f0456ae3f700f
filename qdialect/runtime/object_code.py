"""Machine code of a module as an object file, for another CPU than this machine's too."""

from __future__ import annotations

from qdialect import context
from qdialect._mlir import ir
from qdialect.aot.object_file import object_file
from qdialect.lowering.code_attributes import name_target
from qdialect.target import Target

_ENTRY = "main"


def object_code(module: ir.Module, target: Target) -> bytes:
    """An ELF object of a module of the LLVM dialect for `target`, position-independent; nothing of it is executed.

    Raises `CompileError` where LLVM refuses the module.
    """
    copy = context.copy(module)
    name_target(copy, target)
    return object_file(copy, _ENTRY)
