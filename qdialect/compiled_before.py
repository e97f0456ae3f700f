"""What `qdialect.compile` asks first: whether a model file was compiled before.

Neither MLIR nor the framework of the model is imported to find it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from qdialect.cache import model_files
from qdialect.cache.keys import Request
from qdialect.cache.store import open_store
from qdialect.late_imports import LATE_IMPORTS
from qdialect.runtime.base import Executable
from qdialect.shaped import ShapedExecutable


def compiled_before(path: Path, request: Request) -> Executable | None:
    """The executable of a model file from the cache; None where it is not there.

    Raises `CompileError` where there is no memory, or no OpenMP runtime.
    """
    found = _found(path, request)
    if found is None or not found.open_shapes:
        return found.executable if found else None
    return ShapedExecutable(
        found.executable, found.open_shapes, lambda dims: _compiled(path, replace(request, dims=dims))
    )


def _found(path: Path, request: Request) -> model_files.FoundNetwork | None:
    store = open_store(create=False)
    model = model_files.model_key(path, request) if store else None
    return model_files.find(store, model) if store and model else None


def _compiled(path: Path, request: Request) -> Executable:
    """The network of another shape, which may have been compiled before too."""
    found = _found(path, request)
    if found:
        return found.executable
    with LATE_IMPORTS:
        from qdialect.compilation import compile_shape

    return compile_shape(path, request, open_store())
