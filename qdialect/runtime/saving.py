"""A compiled network as a file."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from qdialect import target as targets
from qdialect._mlir import ir
from qdialect.aot.artifact import artifact_of
from qdialect.aot.linking import c_compiler
from qdialect.aot.network import Batch, name_of_file
from qdialect.context import make_context
from qdialect.lowering import lowered


def kept(module: ir.Module) -> bytes:
    """A module of the LLVM dialect in the form that takes the least memory."""
    content = BytesIO()
    module.operation.write_bytecode(content)
    return content.getvalue()


def library(contents: Sequence[bytes], name: str, batch: Batch | None = None) -> bytes:
    """The network of modules that were `kept` as a shared library for a file of this name.

    There is one module or, with `batch`, one for each of its sizes.
    """
    # Minutes of compilation are not to end in this error.
    c_compiler()
    # The library is made of one context.
    context = make_context()
    modules = [ir.Module.parse(content, context) for content in contents]
    target = targets.resolve(lowered.target_name_of(modules[0]) or targets.GENERIC)
    versions = [lowered.read(module) for module in modules]
    return artifact_of(name_of_file(Path(name)), [target], versions, batch).library(name)
