"""A network of the cache as a file of its own: compiled once more, for every CPU of its target."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qdialect import target as targets
from qdialect._mlir import ir
from qdialect.aot.artifact import artifact_of
from qdialect.aot.linking import c_compiler
from qdialect.aot.network import name_of_file
from qdialect.context import make_context
from qdialect.lowering.lowered import CONSTANTS, Lowered, target_name_of
from qdialect.lowering.pipeline import lower, threads_of


def kept(lowered: Lowered) -> bytes:
    """The module of `lowered` without its constants, in the form that takes the least memory; it is used up."""
    attributes = lowered.module.operation.attributes
    if CONSTANTS in attributes:
        del attributes[CONSTANTS]
    content = BytesIO()
    lowered.module.operation.write_bytecode(content)
    return content.getvalue()


def library(content: bytes, constants: NDArray[np.uint8], name: str) -> bytes:
    """The network of a module that was `kept`, and its constants, as a shared library for a file of this name."""
    # Minutes of compilation are not to end in this error.
    c_compiler()
    module = ir.Module.parse(content, make_context())
    if constants.size:
        with module.context:
            module.operation.attributes[CONSTANTS] = ir.DenseElementsAttr.get(constants.view(np.int8))
    target = targets.resolve(target_name_of(module) or targets.GENERIC)
    lowered = lower(module, target, threads=threads_of(module, 1))
    return artifact_of(name_of_file(Path(name)), [target], [lowered]).library(name)
