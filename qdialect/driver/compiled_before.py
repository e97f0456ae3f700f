"""Looks a model file up in the cache, which `qdialect.compile` does first.

Neither MLIR nor the framework of the model is imported to find it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from qdialect.cache import model_files
from qdialect.cache.store import open_store
from qdialect.driver.padding.lengths import lengths_of
from qdialect.runtime.base import Executable
from qdialect.runtime.memory import checked
from qdialect.runtime.shaped import ShapedExecutable
from qdialect.support.late_imports import LATE_IMPORTS
from qdialect.support.log import tell_float32
from qdialect.support.options import CompileOptions


def compiled_before(path: Path, options: CompileOptions) -> Executable | None:
    """The executable of a model file from the cache; None where it is not there.

    Raises `CompileError` where there is no memory, or no OpenMP runtime.
    """
    checked(options.workspaces)
    found = _found(path, replace(options, dims=options.importing.dims))
    if found is None:
        return None
    if found.executable.is_float32:
        tell_float32(path)
    if not found.open_shapes:
        return found.executable

    def compiled(extents: Mapping[str, int]) -> Executable:
        # The extents of the batch are among them.
        return _compiled(path, replace(options, batch=1, dims=extents))

    lengths = lengths_of(path, options, found.open_shapes, open_store())
    return ShapedExecutable(found.executable, found.open_shapes, compiled, options.ranges, lengths)


def _found(path: Path, options: CompileOptions) -> model_files.FoundNetwork | None:
    store = open_store(create=False)
    model = model_files.model_key(path, options) if store else None
    return model_files.find(store, model, options.workspaces) if store and model else None


def _compiled(path: Path, options: CompileOptions) -> Executable:
    """The network of another shape, which may have been compiled before too."""
    found = _found(path, options)
    if found:
        return found.executable
    with LATE_IMPORTS:
        from qdialect.driver.compile_model import compile_shape, log_extents

    log_extents(path, options.importing.dims)
    return compile_shape(path, options, open_store())
