"""What `qdialect.compile` does: a model of any kind becomes an executable."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from qdialect._mlir import ir
from qdialect.diagnostics import InputError
from qdialect.fallback import Fallback, FallbackWarning, compile_file, summary
from qdialect.model_files import ImportOptions, open_shapes
from qdialect.runtime import Executable, compile_module
from qdialect.shaped import Ranges, ShapedExecutable

Extent = int | tuple[int, int]
"""An extent, or the least and the largest that it may be."""


def compile_model(
    model: str | Path | ir.Module,
    *,
    target: str,
    threads: int,
    batch: int,
    dims: Mapping[str, Extent],
    profile: str,
    trust: bool,
    signature: str,
    fallback: Fallback | None,
    workspaces: int | None,
) -> Executable:
    """A model file or a module as an executable; the arguments are those of `qdialect.compile`."""
    if isinstance(model, ir.Module):
        return compile_module(model, target=target, threads=threads, workspaces=workspaces)

    def compiled(options: ImportOptions) -> Executable:
        return compile_file(path, options, target=target, threads=threads, fallback=fallback, workspaces=workspaces)

    ranges = _ranges(dims)
    fixed = {name: extent if isinstance(extent, int) else extent[1] for name, extent in dims.items()}
    path, options = Path(model), ImportOptions(batch, fixed, profile, trust, signature)
    executable = compiled(options)
    told = summary(executable) if fallback is None else ""
    if told:
        # At the line that calls `qdialect.compile`.
        warnings.warn(told, FallbackWarning, stacklevel=3)
    shapes = open_shapes(path, options)
    return (
        ShapedExecutable(executable, shapes, lambda dims: compiled(replace(options, dims=dims)), ranges)
        if shapes
        else executable
    )


def _ranges(dims: Mapping[str, Extent]) -> Ranges:
    """Those of `dims` that are ranges; raises `InputError` for one that is empty or of other values."""
    ranges = {name: extent for name, extent in dims.items() if not isinstance(extent, int)}
    for name, found in ranges.items():
        is_pair = isinstance(cast("object", found), tuple) and len(found) == 2
        if not is_pair or not all(type(extent) is int for extent in found) or not 1 <= found[0] <= found[1]:
            wanted = "an integer or a range (least, largest) of extents from 1 on"
            raise InputError(f"dims['{name}'] must be {wanted}, but got {found!r}")
    return ranges
