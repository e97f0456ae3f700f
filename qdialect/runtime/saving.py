"""A compiled network as a file, made from what an executable keeps of it."""

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
from qdialect.files import write_files
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


def save(content: bytes, constants: NDArray[np.uint8], path: Path) -> None:
    """Write the network of a module that was `kept`, and its constants, into the shared library at `path`."""
    # Minutes of compilation are not to end in this error.
    c_compiler()
    module = ir.Module.parse(content, make_context())
    if constants.size:
        with module.context:
            module.operation.attributes[CONSTANTS] = ir.DenseElementsAttr.get(constants.view(np.int8))
    target = targets.resolve(target_name_of(module) or targets.GENERIC)
    artifact = artifact_of(name_of_file(path), [target], [lower(module, target, threads=threads_of(module, 1))])
    write_files({path: artifact.library(path.name)})
