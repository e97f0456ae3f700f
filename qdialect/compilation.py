"""What `qdialect.compile` does: a model of any kind becomes an executable."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from qdialect._mlir import ir
from qdialect.batching.network import fixed_batch
from qdialect.batching.reading import read_batched
from qdialect.diagnostics import InputError
from qdialect.fallback import Fallback, FallbackWarning, compile_file, summary
from qdialect.model_files import ImportOptions, OpenShapes, open_shapes, read_model
from qdialect.runtime import Executable, compile_module
from qdialect.runtime.batched_compiled import compile_batched
from qdialect.runtime.external_bindings import External
from qdialect.shaped import Ranges, ShapedExecutable

DYNAMIC = "dynamic"
"""A batch of any size."""

Extent = int | tuple[int, int]
"""An extent, or the least and the largest that it may be."""


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
) -> Executable:
    """A model file or a module as an executable; the arguments are those of `qdialect.compile`."""
    is_dynamic = _is_dynamic(batch)
    if is_dynamic and externals:
        raise InputError(f"batch must be an integer where externals compute functions, but got '{DYNAMIC}'")
    if isinstance(model, ir.Module) and is_dynamic:
        return compile_batched(fixed_batch(model), target=target, threads=threads, workspaces=workspaces)
    ranges = _ranges(dims)
    fixed = {name: extent if isinstance(extent, int) else extent[1] for name, extent in dims.items()}
    options = ImportOptions(1 if isinstance(batch, str) else batch, fixed, profile, trust, signature)
    if isinstance(model, ir.Module) or externals:
        module = model if isinstance(model, ir.Module) else read_model(model, options)
        return compile_module(module, target=target, threads=threads, externals=externals, workspaces=workspaces)

    def compiled(options: ImportOptions) -> Executable:
        if is_dynamic:
            network = read_batched(path, options)
            return compile_batched(network, target=target, threads=threads, workspaces=workspaces)
        return compile_file(path, options, target=target, threads=threads, fallback=fallback, workspaces=workspaces)

    path = Path(model)
    executable = compiled(options)
    told = summary(executable) if fallback is None else ""
    if told:
        # At the line that calls `qdialect.compile`.
        warnings.warn(told, FallbackWarning, stacklevel=3)
    shapes = _without_batch(open_shapes(path, options), executable)
    is_open = any(isinstance(extent, str) for shape in shapes.values() for extent in shape)
    return (
        ShapedExecutable(executable, shapes, lambda dims: compiled(replace(options, dims=dims)), ranges)
        if is_open
        else executable
    )


def _is_dynamic(batch: object) -> bool:
    """Whether a batch of any size is asked for; raises `InputError` for what is no batch."""
    if batch != DYNAMIC and (not isinstance(batch, int) or isinstance(batch, bool)):
        raise InputError(f"batch must be an integer or '{DYNAMIC}', but got {batch!r}")
    return batch == DYNAMIC


def _without_batch(shapes: OpenShapes, executable: Executable) -> OpenShapes:
    """`shapes` with -1 for first extents that `executable` takes as they come."""
    taken = {port.name for port in executable.inputs if port.shape[:1] == (-1,)}
    return {name: (-1, *shape[1:]) if name in taken else shape for name, shape in shapes.items()}


def _ranges(dims: Mapping[str, Extent]) -> Ranges:
    """Those of `dims` that are ranges; raises `InputError` for one that is empty or of other values."""
    ranges = {name: extent for name, extent in dims.items() if not isinstance(extent, int)}
    for name, found in ranges.items():
        is_pair = isinstance(cast("object", found), tuple) and len(found) == 2
        if not is_pair or not all(type(extent) is int for extent in found) or not 1 <= found[0] <= found[1]:
            wanted = "an integer or a range (least, largest) of extents from 1 on"
            raise InputError(f"dims['{name}'] must be {wanted}, but got {found!r}")
    return ranges
