"""qdialect: quantized networks through MLIR to machine code, bit for bit.

module = qdialect.parse("model.mlir")
qdialect.PassManager.parse("fuse-qnn").run(module)
executable = qdialect.compile(module)
result = executable(image)
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from qdialect._mlir import ir
from qdialect.context import make_context, parse, verify
from qdialect.diagnostics import (
    CompileError,
    Diagnostic,
    ImportModelError,
    InputError,
    ParseError,
    PassError,
    PipelineError,
    QDialectError,
    Severity,
    VerificationError,
)
from qdialect.dialect import build
from qdialect.model_files import ImportOptions, open_shapes, read_model
from qdialect.passes.pass_base import CompositePass, Pass
from qdialect.passes.pattern import MatchFailure, Pattern, PatternPass, Rewriter, explain_matches
from qdialect.passes.registry import register as register_pass
from qdialect.pipeline import PassManager

if TYPE_CHECKING:
    from qdialect.fallback import Fallback, FallbackWarning
    from qdialect.runtime import Executable

try:
    __version__ = version("qdialect")
except PackageNotFoundError:
    # A checkout on the path that was never installed.
    __version__ = "unknown"


def compile(
    model: str | Path | ir.Module,
    *,
    target: str = "host",
    threads: int = 1,
    batch: int = 1,
    dims: Mapping[str, int] = MappingProxyType({}),
    profile: str = "",
    trust: bool = False,
    fallback: Fallback | None = None,
) -> Executable:
    """Compile a model for a CPU.

    `model` is the path of a model file, of a kind in `qdialect.model_files.FORMATS`, or of a ``.mlir`` file, or a
    module, which stays as it is. `target` is ``host`` or the name of a CPU. A call is divided among `threads`
    threads, which needs an OpenMP runtime where they are more than one; results do not depend on their number. Of a
    model file `batch` is the first extent of inputs that leave it open, `dims` has other open extents by their
    name, and `profile` says whose arithmetic it has, the format's own by default. A ``.pt2`` file is read without
    running anything in it; with `trust` PyTorch loads it, and it can run any code.

    What cannot be compiled of a model file is run by the model's own framework, where that is installed, and a
    `FallbackWarning` says which nodes and how much that is; ``fallback="framework"`` is the same without a warning, and
    with ``"none"`` such a model is refused.

    Where inputs leave extents open, the result compiles itself for other extents when it is called with them, and
    `for_shape` does so before.

    Raises `ParseError` or `ImportModelError` for a bad model and `CompileError` for one that cannot be lowered.
    """
    from qdialect.fallback import FallbackWarning, compile_file, summary
    from qdialect.runtime import compile_module
    from qdialect.shaped import ShapedExecutable

    if isinstance(model, ir.Module):
        return compile_module(model, target=target, threads=threads)

    def compiled(options: ImportOptions) -> Executable:
        return compile_file(path, options, target=target, threads=threads, fallback=fallback)

    path, options = Path(model), ImportOptions(batch, dims, profile, trust)
    executable = compiled(options)
    told = summary(executable) if fallback is None else ""
    if told:
        warnings.warn(told, FallbackWarning, stacklevel=2)
    shapes = open_shapes(path)
    return (
        ShapedExecutable(executable, shapes, lambda dims: compiled(replace(options, dims=dims)))
        if shapes
        else executable
    )


def __getattr__(name: str) -> object:
    # What compiles and runs is loaded when it is used: passes and tools start faster without.
    if name not in _LOADED_LATE:
        raise AttributeError(f"module 'qdialect' has no attribute '{name}'")
    return getattr(import_module(_LOADED_LATE[name]), name)


_LOADED_LATE = {"Executable": "qdialect.runtime", "FallbackWarning": "qdialect.fallback"}


__all__ = [
    "CompileError",
    "CompositePass",
    "Diagnostic",
    "Executable",
    "FallbackWarning",
    "ImportModelError",
    "InputError",
    "ParseError",
    "Pass",
    "PassError",
    "PassManager",
    "Pattern",
    "PatternPass",
    "PipelineError",
    "QDialectError",
    "MatchFailure",
    "Rewriter",
    "Severity",
    "VerificationError",
    "__version__",
    "build",
    "compile",
    "explain_matches",
    "make_context",
    "parse",
    "read_model",
    "register_pass",
    "verify",
]
