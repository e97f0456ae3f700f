"""What `qdialect.compile` asks first: whether a model file was compiled before.

Neither MLIR nor the framework of the model is imported to find it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from qdialect.cache import model_files
from qdialect.cache.keys import Request
from qdialect.cache.store import open_store
from qdialect.late_imports import LATE_IMPORTS
from qdialect.runtime.base import Executable
from qdialect.runtime.workspace_pool import checked
from qdialect.shaped import Extent, ShapedExecutable, fixed_extents, ranges_of


def compiled_before(path: Path, request: Request, dims: Mapping[str, Extent], limit: int | None) -> Executable | None:
    """The executable of a model file from the cache, with so many workspaces; None where it is not there.

    `dims` are extents or ranges of them, by name. Raises `InputError` for an invalid range, and `CompileError`
    where there is no memory, or no OpenMP runtime.
    """
    checked(limit)
    ranges = ranges_of(dims)
    found = _found(path, replace(request, dims=fixed_extents(dims)), limit)
    if found is None or not found.open_shapes:
        return found.executable if found else None

    def compiled(extents: Mapping[str, int]) -> Executable:
        return _compiled(path, replace(request, dims=extents), limit)

    return ShapedExecutable(found.executable, found.open_shapes, compiled, ranges)


def _found(path: Path, request: Request, limit: int | None) -> model_files.FoundNetwork | None:
    store = open_store(create=False)
    model = model_files.model_key(path, request) if store else None
    return model_files.find(store, model, limit) if store and model else None


def _compiled(path: Path, request: Request, limit: int | None) -> Executable:
    """The network of another shape, which may have been compiled before too."""
    found = _found(path, request, limit)
    if found:
        return found.executable
    with LATE_IMPORTS:
        from qdialect.compilation import compile_shape

    return compile_shape(path, request, open_store(), limit)
