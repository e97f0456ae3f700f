"""A compiled network as a file."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from qdialect import target as targets
from qdialect._mlir import ir
from qdialect.aot.artifact import artifact_of
from qdialect.aot.linking import c_compiler
from qdialect.aot.network import name_of_file
from qdialect.context import make_context
from qdialect.lowering import lowered


def kept(module: ir.Module) -> bytes:
    """A module of the LLVM dialect in the form that takes the least memory."""
    content = BytesIO()
    module.operation.write_bytecode(content)
    return content.getvalue()


def library(content: bytes, name: str) -> bytes:
    """The network of a module that was `kept` as a shared library for a file of this name."""
    # Minutes of compilation are not to end in this error.
    c_compiler()
    module = ir.Module.parse(content, make_context())
    target = targets.resolve(lowered.target_name_of(module) or targets.GENERIC)
    return artifact_of(name_of_file(Path(name)), [target], [lowered.read(module)]).library(name)
