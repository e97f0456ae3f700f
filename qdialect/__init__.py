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
from qdialect.late_imports import LATE_IMPORTS
from qdialect.model_files import ImportOptions, open_shapes, read_model
from qdialect.passes.pass_base import CompositePass, Pass
from qdialect.passes.pattern import MatchFailure, Pattern, PatternPass, Rewriter, explain_matches
from qdialect.passes.registry import register as register_pass
from qdialect.pipeline import PassManager

if TYPE_CHECKING:
    from qdialect.fallback import Fallback, FallbackWarning
    from qdialect.runtime import Executable

    __version__: str


def compile(
    model: str | Path | ir.Module,
    *,
    target: str = "host",
    threads: int = 1,
    batch: int = 1,
    dims: Mapping[str, int] = MappingProxyType({}),
    profile: str = "",
    trust: bool = False,
    signature: str = "",
    fallback: Fallback | None = None,
) -> Executable:
    """Compile a model for a CPU::

        executable = qdialect.compile("model.tflite", threads=2)
        scores = executable(image)  # image and scores have the shapes and dtypes of executable.inputs and outputs

    Args:
      model: the path of a ``.tflite``, ``.onnx``, ``.pt2``, ``.mlir`` or ``.mlirbc`` file, or a module, which is not
        changed.
      target: ``host``, or the name of a CPU in `qdialect.target.TARGETS`.
      threads: the number of threads that a call is divided among, from 1 to 256. The results are the same for every
        number. More than one need an OpenMP runtime.
      batch: the first extent of inputs of a model file that leave it open.
      dims: other open extents, by their name or as ``INPUT:AXIS``.
      profile: whose arithmetic the model has, such as ``tflite-xnnpack``; by default that of its format.
      trust: whether PyTorch may load a ``.pt2`` file, which can run any code of the file. Without it nothing in the
        file is executed.
      signature: which of the signatures of a ``.tflite`` file; by default its first subgraph.
      fallback: what is done with what cannot be compiled of a model file. By default the model's own framework runs it,
        where that is installed, and a `FallbackWarning` names the nodes and their share of the products;
        ``"framework"`` does so without a warning, and ``"none"`` refuses such a model.

    Where inputs leave extents open, the result compiles itself for other extents when it is called with them, and
    `for_shape` does so before.

    Raises:
      ParseError: a ``.mlir`` or ``.mlirbc`` file cannot be read or is not a valid module.
      ImportModelError: the model file cannot be read, is damaged, or has unsupported operators; each is a note.
      CompileError: the module cannot be lowered, or this machine cannot execute `target` or so many threads.
    """
    with LATE_IMPORTS:
        from qdialect.fallback import FallbackWarning, compile_file, summary
        from qdialect.runtime import compile_module
        from qdialect.shaped import ShapedExecutable

    if isinstance(model, ir.Module):
        return compile_module(model, target=target, threads=threads)

    def compiled(options: ImportOptions) -> Executable:
        return compile_file(path, options, target=target, threads=threads, fallback=fallback)

    path, options = Path(model), ImportOptions(batch, dims, profile, trust, signature)
    executable = compiled(options)
    told = summary(executable) if fallback is None else ""
    if told:
        warnings.warn(told, FallbackWarning, stacklevel=2)
    shapes = open_shapes(path, options)
    return (
        ShapedExecutable(executable, shapes, lambda dims: compiled(replace(options, dims=dims)))
        if shapes
        else executable
    )


def __getattr__(name: str) -> object:
    # What compiles and runs is loaded when it is used: passes and tools start faster without.
    if name == "__version__":
        return _version()
    if name not in _LOADED_LATE:
        raise AttributeError(f"module 'qdialect' has no attribute '{name}'")
    with LATE_IMPORTS:
        return getattr(import_module(_LOADED_LATE[name]), name)


def _version() -> str:
    """The version of the installed package."""
    # It reads files, and few ask for it.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("qdialect")
    except PackageNotFoundError:
        # A checkout on the path that was never installed.
        return "unknown"


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
