"""What `qdialect.compile` does: a model of any kind becomes an executable."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qdialect._mlir import ir
from qdialect.cache import model_files
from qdialect.cache.executable import CachedExecutable
from qdialect.cache.keys import Request
from qdialect.cache.store import Store, open_store
from qdialect.diagnostics import InputError
from qdialect.fallback import Fallback, FallbackWarning, compile_file, summary
from qdialect.files import noted_files
from qdialect.jobs import active, using
from qdialect.late_imports import LATE_IMPORTS
from qdialect.model_files import ImportOptions, OpenShapes, open_shapes, read_model
from qdialect.runtime import Executable, compile_module
from qdialect.runtime.external_bindings import External
from qdialect.shaped import Extent, ShapedExecutable, fixed_extents, ranges_of
from qdialect.tuning.compilation import compile_tuned

if TYPE_CHECKING:
    from qdialect.batching.network import BatchNetwork

DYNAMIC = "dynamic"
"""A batch of any size."""


def compile_model(
    model: str | Path | ir.Module,
    *,
    target: str,
    threads: int,
    batch: int | str,
    dims: Mapping[str, Extent],
    profile: str,
    trust: bool,
    signature: str,
    fallback: Fallback | None,
    externals: Mapping[str, External],
    workspaces: int | None,
    cache: bool,
    tune: bool,
) -> Executable:
    """A model file or a module as an executable; the arguments are those of `qdialect.compile`.

    What is compiled later, for other extents, is compiled with as many jobs.
    """
    is_dynamic = _is_dynamic(batch)
    if tune and (is_dynamic or externals):
        other = f"batch='{DYNAMIC}'" if is_dynamic else "externals"
        raise InputError(f"tune must be given without {other}: kernels of one shape are measured, all of them compiled")
    if isinstance(model, ir.Module) and is_dynamic:
        return _batched(_fixed_batch(model), target=target, threads=threads, workspaces=workspaces, externals=externals)
    ranges, fixed = ranges_of(dims), fixed_extents(dims)
    options = ImportOptions(1 if isinstance(batch, str) else batch, fixed, profile, trust, signature)
    if externals and not is_dynamic:
        module = model if isinstance(model, ir.Module) else read_model(model, options)
        return compile_module(module, target=target, threads=threads, externals=externals, workspaces=workspaces)
    store = open_store() if cache else None
    if isinstance(model, ir.Module):
        return compile_tuned(model, target=target, threads=threads, store=store, workspaces=workspaces, tune=tune)

    path, jobs = Path(model), active()

    def compiled(options: ImportOptions) -> Executable:
        request = Request(target, threads, options.batch, options.dims, profile, signature, trust, fallback, tune)
        with using(jobs):
            return compile_shape(path, request, store, workspaces)

    compile_ = compiled
    if is_dynamic:
        any_size = partial(_batched, target=target, threads=threads, workspaces=workspaces, externals=externals)
        compile_ = _compiler_of_batches(path, any_size, None if externals else compiled)
    executable = compile_(options)
    told = summary(executable) if fallback is None else ""
    if told:
        # At the line that calls `qdialect.compile`.
        warnings.warn(told, FallbackWarning, stacklevel=3)

    def compiled_for(dims: Mapping[str, int]) -> Executable:
        with using(jobs):
            return compile_(replace(options, dims=dims))

    shapes = _without_batch(open_shapes(path, options), executable)
    is_open = any(isinstance(extent, str) for shape in shapes.values() for extent in shape)
    return ShapedExecutable(executable, shapes, compiled_for, ranges) if is_open else executable


def _fixed_batch(module: ir.Module) -> BatchNetwork:
    with LATE_IMPORTS:
        from qdialect.batching.network import fixed_batch

    return fixed_batch(module)


def _batched(
    network: BatchNetwork, *, target: str, threads: int, workspaces: int | None, externals: Mapping[str, External]
) -> Executable:
    with LATE_IMPORTS:
        from qdialect.runtime.batched_compiled import compile_batched

    return compile_batched(network, target=target, threads=threads, workspaces=workspaces, externals=externals)


def _compiler_of_batches(
    path: Path,
    any_size: Callable[[BatchNetwork], Executable],
    one_size: Callable[[ImportOptions], Executable] | None,
) -> Callable[[ImportOptions], Executable]:
    """Compiles a model for any batch; without `one_size` it must be one network for all of them."""
    with LATE_IMPORTS:
        from qdialect.batch_compiler import BatchCompiler
        from qdialect.batching.reading import read_batched

    if one_size is None:
        return lambda options: any_size(read_batched(path, options))
    return BatchCompiler(path, any_size, one_size).executable


def _is_dynamic(batch: object) -> bool:
    """Whether a batch of any size is asked for; raises `InputError` for what is no batch."""
    if batch != DYNAMIC and (not isinstance(batch, int) or isinstance(batch, bool)):
        raise InputError(f"batch must be an integer or '{DYNAMIC}', but got {batch!r}")
    return batch == DYNAMIC


def _without_batch(shapes: OpenShapes, executable: Executable) -> OpenShapes:
    """`shapes` with -1 for extents that `executable` takes as they come."""
    taken = {port.name: port.shape for port in executable.inputs}
    return {
        name: [-1 if own == -1 else extent for own, extent in zip(taken[name], shape, strict=True)]
        for name, shape in shapes.items()
    }


def compile_shape(path: Path, request: Request, store: Store | None, workspaces: int | None = None) -> Executable:
    """A model file for one shape of its inputs; the network goes into `store`, and which one the file gives."""
    options = ImportOptions(request.batch, request.dims, request.profile, request.trust, request.signature)
    key = model_files.model_key(path, request) if store else None
    with noted_files() as read:
        executable = compile_file(
            path,
            options,
            target=request.target,
            threads=request.threads,
            fallback=request.fallback,
            workspaces=workspaces,
            store=store,
            tune=request.tune,
        )
    if store and key and isinstance(executable, CachedExecutable):
        model_files.keep(store, key, executable.key, open_shapes(path, options), read)
    return executable
