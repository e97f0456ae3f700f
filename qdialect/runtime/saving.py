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
from qdialect.files import write_files
from qdialect.lowering import lowered


def kept(module: ir.Module) -> bytes:
    """A module of the LLVM dialect in the form that takes the least memory."""
    content = BytesIO()
    module.operation.write_bytecode(content)
    return content.getvalue()


def save(content: bytes, path: Path) -> None:
    """Write the network of a module that was `kept` into the shared library at `path`."""
    # Minutes of compilation are not to end in this error.
    c_compiler()
    module = ir.Module.parse(content, make_context())
    target = targets.resolve(lowered.target_name_of(module) or targets.GENERIC)
    artifact = artifact_of(name_of_file(path), [target], [lowered.read(module)])
    write_files({path: artifact.library(path.name)})
