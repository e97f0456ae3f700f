"""qdialect: quantized networks through MLIR to machine code, bit for bit.

module = qdialect.parse("model.mlir")
qdialect.PassManager.parse("fuse-qnn").run(module)
executable = qdialect.compile(module)
result = executable(image)
"""

from __future__ import annotations

from collections.abc import Mapping
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
from qdialect.model_files import ImportOptions, read_model
from qdialect.passes.pass_base import CompositePass, Pass
from qdialect.passes.pattern import MatchFailure, Pattern, PatternPass, Rewriter, explain_matches
from qdialect.passes.registry import register as register_pass
from qdialect.pipeline import PassManager

if TYPE_CHECKING:
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
) -> Executable:
    """Compile a model for a CPU.

    `model` is the path of a model file, of a kind in `qdialect.model_files.FORMATS`, or of a ``.mlir`` file, or a
    module, which stays as it is. `target` is ``host`` or the name of a CPU. A call is divided among `threads`
    threads, which needs an OpenMP runtime where they are more than one; results do not depend on their number. Of a
    model file `batch` is the first extent of inputs that leave it open, `dims` has other open extents by their
    name, and `profile` says whose arithmetic it has, the format's own by default. A ``.pt2`` file is read without
    running anything in it; with `trust` PyTorch loads it, and it can run any code.

    Raises `ParseError` or `ImportModelError` for a bad model and `CompileError` for one that cannot be lowered.
    """
    from qdialect.runtime import compile_module

    options = ImportOptions(batch, dims, profile, trust)
    return compile_module(read_model(model, options), target=target, threads=threads)


def __getattr__(name: str) -> object:
    # What compiles and runs is loaded when it is used: passes and tools start faster without.
    if name != "Executable":
        raise AttributeError(f"module 'qdialect' has no attribute '{name}'")
    from qdialect.runtime import Executable

    return Executable


__all__ = [
    "CompileError",
    "CompositePass",
    "Diagnostic",
    "Executable",
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
