"""A compiled network as a file, made from what an executable keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qdialect import target as targets
from qdialect._mlir import ir
from qdialect.aot.network import Batch, name_of_file
from qdialect.context import make_context
from qdialect.late_imports import LATE_IMPORTS
from qdialect.lowering.lowered import CONSTANTS, target_name_of
from qdialect.lowering.pipeline import lower, threads_of


def kept(module: ir.Module) -> bytes:
    """A module from phase `vector` on without its constants, in the form that takes the least memory."""
    attributes, content = module.operation.attributes, BytesIO()
    if CONSTANTS not in attributes:
        module.operation.write_bytecode(content)
        return content.getvalue()
    constants = attributes[CONSTANTS]
    del attributes[CONSTANTS]
    module.operation.write_bytecode(content)
    attributes[CONSTANTS] = constants
    return content.getvalue()


def library(parts: Sequence[tuple[bytes, NDArray[np.uint8]]], name: str, batch: Batch | None = None) -> bytes:
    """The network of modules that were `kept`, each with its constants, as a shared library for a file of this name.

    There is one module or, with `batch`, one for each of its sizes.
    """
    with LATE_IMPORTS:
        from qdialect.aot.artifact import artifact_of
        from qdialect.aot.linking import c_compiler

    # Minutes of compilation are not to end in this error.
    c_compiler()
    # The library is made of one context.
    context = make_context()
    modules = [_with_constants(ir.Module.parse(content, context), constants) for content, constants in parts]
    target = targets.resolve(target_name_of(modules[0]) or targets.GENERIC)
    versions = [lower(module, target, threads=threads_of(module, 1)) for module in modules]
    return artifact_of(name_of_file(Path(name)), [target], versions, batch).library(name)


def _with_constants(module: ir.Module, constants: NDArray[np.uint8]) -> ir.Module:
    if constants.size:
        with module.context:
            module.operation.attributes[CONSTANTS] = ir.DenseElementsAttr.get(constants.view(np.int8))
    return module
