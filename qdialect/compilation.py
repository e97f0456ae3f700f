"""What `qdialect.compile` does: a model of any kind becomes an executable."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from qdialect._mlir import ir
from qdialect.fallback import Fallback, FallbackWarning, compile_file, summary
from qdialect.model_files import ImportOptions, open_shapes, read_model
from qdialect.runtime import Executable, compile_module
from qdialect.runtime.external_bindings import External
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
    externals: Mapping[str, External],
) -> Executable:
    """A model file or a module as an executable; the arguments are those of `qdialect.compile`."""
    if isinstance(model, ir.Module):
        return compile_module(model, target=target, threads=threads, externals=externals)
    if externals:
        module = read_model(model, ImportOptions(batch, dims, profile, trust, signature))
        return compile_module(module, target=target, threads=threads, externals=externals)

    def compiled(options: ImportOptions) -> Executable:
        return compile_file(path, options, target=target, threads=threads, fallback=fallback)

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
