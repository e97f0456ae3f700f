"""What `qdialect.compile` does: a model of any kind becomes an executable."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from qdialect._mlir import ir
from qdialect.cache import model_files
from qdialect.cache.executable import CachedExecutable
from qdialect.cache.keys import Request
from qdialect.cache.networks import compile_kept
from qdialect.cache.store import Store, open_store
from qdialect.fallback import Fallback, FallbackWarning, compile_file, summary
from qdialect.files import noted_files
from qdialect.model_files import ImportOptions, open_shapes
from qdialect.runtime import Executable
from qdialect.shaped import ShapedExecutable


def compile_model(
    model: str | Path | ir.Module,
    *,
    target: str,
    threads: int,
    batch: int,
    dims: Mapping[str, int],
    profile: str,
    trust: bool,
    signature: str,
    fallback: Fallback | None,
    cache: bool,
) -> Executable:
    """A model file or a module as an executable; the arguments are those of `qdialect.compile`."""
    store = open_store() if cache else None
    if isinstance(model, ir.Module):
        return compile_kept(model, target=target, threads=threads, store=store)

    def compiled(options: ImportOptions) -> Executable:
        request = Request(target, threads, batch, options.dims, profile, signature, trust, fallback)
        return compile_shape(path, request, store)

    path, options = Path(model), ImportOptions(batch, dims, profile, trust, signature)
    executable = compiled(options)
    told = summary(executable) if fallback is None else ""
    if told:
        # At the line that calls `qdialect.compile`.
        warnings.warn(told, FallbackWarning, stacklevel=3)
    shapes = open_shapes(path, options)
    return (
        ShapedExecutable(executable, shapes, lambda dims: compiled(replace(options, dims=dims)))
        if shapes
        else executable
    )


def compile_shape(path: Path, request: Request, store: Store | None) -> Executable:
    """A model file for one shape of its inputs; the network goes into `store`, and which one the file gives."""
    options = ImportOptions(request.batch, request.dims, request.profile, request.trust, request.signature)
    key = model_files.model_key(path, request) if store else None
    with noted_files() as read:
        executable = compile_file(
            path, options, target=request.target, threads=request.threads, fallback=request.fallback, store=store
        )
    if store and key and isinstance(executable, CachedExecutable):
        model_files.keep(store, key, executable.key, open_shapes(path, options), read)
    return executable
