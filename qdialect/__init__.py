"""qdialect: quantized networks through MLIR to machine code, bit for bit.

module = qdialect.parse("model.mlir")
qdialect.PassManager.parse("fuse-qnn").run(module)
executable = qdialect.compile(module)
result = executable(image)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Never

from qdialect.ir import LOADERS
from qdialect.support.heap import paused_collector
from qdialect.support.late_imports import LATE_IMPORTS

if TYPE_CHECKING:
    from qdialect.dialect import build
    from qdialect.driver.fallback import FallbackWarning
    from qdialect.frontends.full_contexts import make_context, parse, read_model
    from qdialect.frontends.model_files import Model
    from qdialect.ir._mlir import ir
    from qdialect.ir.context import verify
    from qdialect.passes.pattern import MatchFailure, Pattern, PatternPass, Rewriter, explain_matches
    from qdialect.passes.pipeline import PassManager
    from qdialect.passes.registry import CompositePass, Pass
    from qdialect.passes.registry import register as register_pass
    from qdialect.runtime import Executable
    from qdialect.runtime.base import CallTime
    from qdialect.runtime.external_calls import External
    from qdialect.support.diagnostics import (
        CompileError,
        Diagnostic,
        ExternalCallError,
        ImportModelError,
        InputError,
        LoadError,
        ParseError,
        PassError,
        PipelineError,
        QDialectError,
        Severity,
        VerificationError,
    )
    from qdialect.support.externals import ExternalFunction
    from qdialect.support.options import CompileOptions, Fallback

    __version__: str


def compile(
    model: Model,
    options: CompileOptions | None = None,
    *,
    target: str = "host",
    threads: int = 1,
    batch: int | Literal["dynamic"] = 1,
    dims: Mapping[str, int | tuple[int, int]] = MappingProxyType({}),
    profile: str = "",
    trust: bool = False,
    signature: str = "",
    branches: Mapping[str, bool] = MappingProxyType({}),
    fallback: Fallback | None = None,
    externals: Mapping[str, External] = MappingProxyType({}),
    workspaces: int | None = None,
    cache: bool = True,
    tune: bool = False,
    jobs: int | None = None,
    progress: Callable[[str], None] | None = None,
    **unknown: Never,
) -> Executable:
    """Compile a model for a CPU::

        executable = qdialect.compile("model.tflite", threads=2)
        scores = executable(image)  # image and scores have the shapes and dtypes of executable.inputs and outputs

    Args:
      model: the path of a ``.tflite``, ``.onnx``, ``.pt2``, ``.mlir`` or ``.mlirbc`` file, or its content as bytes; an
        `onnx.ModelProto`, or a `torch.export.ExportedProgram`; or a module, which is not changed.
      options: all that follow as one object, in their place.
      target: ``host``, or a CPU by LLVM's name, as `qdialect.targets.resolve` takes it.
      threads: the number of threads that a call is divided among, from 1 to 256. The results are the same for every
        number. More than one need an OpenMP runtime.
      batch: the first extent of inputs of a model file that leave it open. With ``"dynamic"`` calls may have any, and
        nothing is compiled for them: of inputs whose first extent is open or, where all are known, of all inputs. A
        file with open extents that is not proven to compute each entry alone is compiled for each size that comes;
        other networks are refused then.
      dims: other open extents, by their name or as ``INPUT:AXIS``. A range, ``dims={"seq": (1, 512)}``, allows calls
        with any extent in it; the first shape has the largest.
      profile: whose arithmetic the model has, such as ``tflite-xnnpack``; by default that of its format.
      trust: whether PyTorch may load a ``.pt2`` file, which can run any code of the file. Without it nothing in the
        file is executed.
      signature: which of the signatures of a ``.tflite`` file; by default its first subgraph.
      branches: values of conditions of If nodes of an ``.onnx`` file, by name: of ``{"use_cache_branch": True}`` one
        branch is compiled. Where a condition is not here it is read at run time, and both branches are compiled.
      fallback: what is done with what cannot be compiled of a model file. By default the model's own framework runs it,
        where that is installed, and a `FallbackWarning` names the nodes and their share of the products;
        ``"framework"`` does so without a warning, and ``"none"`` refuses such a model.
      externals: who computes the functions that ``qnn-outline-fused`` has handed to a target, by the target's name: the
        path of a shared library with their symbols, or a function ``f(function, *arrays)`` that gets an
        `ExternalFunction` and read-only arrays and returns the result. A model that needs it is compiled as a whole.
      workspaces: how many calls may run at the same time, by default the number of CPUs of this process; more wait.
      cache: whether what was compiled before is taken from the user's cache folder, and what is compiled is kept there.
        The results are the same.
      tune: whether kernels are measured on this machine in the variants that the cost model finds best, and each gets
        the fastest. The results are the same. What was measured is kept in the cache folder, unless `cache` is false,
        and is not measured again; ``executable.tuning`` reports the variants tried, and the time saved. One thread is
        measured.
      jobs: how many threads compile, by default one for each CPU of this process. The code is the same for every
        number.
      progress: a function that is called with each step of this compilation as it begins: the name of a pass, or a text
        such as ``machine code of kernels``. An exception of it ends the compilation. It is not called for parts that
        the cache has.

    Where inputs leave extents open, the result compiles itself for other extents when it is called with them, and
    `for_shape` does so before. Lengths that grow from call to call, as those of a decoder's caches, are compiled once
    where that is proven to give the same.

    Raises:
      ParseError: a ``.mlir`` or ``.mlirbc`` file cannot be read or is not a valid module.
      ImportModelError: the model cannot be read, is damaged, is none of these, or has unsupported operators; each is a
        note.
      InputError: an option is unknown, or nothing would use it.
      CompileError: the module cannot be lowered, this machine cannot execute `target` or so many threads, or
        `externals` lacks a function.
      LoadError: a library of `externals` cannot be loaded.
    """
    with LATE_IMPORTS:
        from qdialect.support.options import CompileOptions

    if unknown:
        CompileOptions.of(unknown, list(vars(CompileOptions())), "qdialect.compile")
    given = CompileOptions(
        target=target,
        threads=threads,
        batch=batch,
        dims=dims,
        profile=profile,
        signature=signature,
        branches=branches,
        trust=trust,
        fallback=fallback,
        workspaces=workspaces,
        cache=cache,
        tune=tune,
        externals=externals,
        jobs=jobs,
        progress=progress,
    )
    options = given.replaced_by(options)
    if isinstance(model, str | PathLike):
        source = Path(model)
    else:
        with LATE_IMPORTS:
            from qdialect.frontends.model_files import path_or_module

        source = path_or_module(model)
    # The parser of models is not needed for what was compiled before.
    may_be_kept = options.cache and not options.tune and not options.is_dynamic and not options.externals
    if may_be_kept and isinstance(source, Path):
        with LATE_IMPORTS:
            from qdialect.driver.compiled_before import compiled_before

        found = compiled_before(source, options)
        if found is not None:
            return _profiled(found, model, options)
    # Not a decorator: a warning names the caller's line.
    with paused_collector():
        with LATE_IMPORTS:
            from qdialect.driver.compile_model import compile_model
            from qdialect.support.limits import using_jobs
            from qdialect.support.log import telling

        with using_jobs(options.jobs), telling(options.progress or (lambda step: None)):
            return _profiled(compile_model(source, options), model, options)


def _profiled(executable: Executable, model: Model, options: CompileOptions) -> Executable:
    """`executable`, which knows how its calls are timed, if it is of a file."""
    is_one = not options.is_dynamic and all(one.is_compiled for one in executable.regions)
    if not is_one or not isinstance(model, str | PathLike):
        return executable
    path = Path(model)

    def time_calls() -> tuple[CallTime, ...]:
        with LATE_IMPORTS:
            from qdialect.driver.tuning import call_times

        return call_times(path, options)

    executable.time_calls = time_calls
    return executable


def load(path: str | Path, *, workspaces: int | None = None) -> Executable:
    """A compiled network from the file that `Executable.save` or ``qdialect-compile`` wrote::

        executable = qdialect.load("model.so")
        scores = executable(image)

    The file is machine code: loading it runs what its author wrote, so load only files that you would run. Neither the
    compiler nor the bindings of MLIR are imported. Threads may share the result, as that of `compile`; `workspaces` is
    how many calls may run at the same time.

    Raises `LoadError` for a file that cannot be read or is not a compiled network, for one of another version of the
    interface, and where this CPU can execute none of its versions.
    """
    with LATE_IMPORTS:
        from qdialect.runtime import loaded
        from qdialect.support.files import path_of

    return loaded.load(path_of(path), workspaces)


def __getattr__(name: str) -> object:
    # Everything is loaded when it is used: a network that is loaded from a file needs a small part of it.
    if name == "__version__":
        return _version()
    if name not in _LOADED_LATE:
        raise AttributeError(f"module 'qdialect' has no attribute '{name}'")
    with LATE_IMPORTS:
        found = getattr(import_module(_LOADED_LATE[name]), _OTHER_NAMES.get(name, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__


def _load_dialect(context: ir.Context) -> None:
    """Load `qnn` into a new context; the dialect is imported with the first one."""
    with LATE_IMPORTS:
        from qdialect.dialect import load

    load(context)


def _version() -> str:
    """The version of the installed package."""
    # It reads files, and few ask for it.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("qdialect")
    except PackageNotFoundError:
        # A checkout on the path that was never installed.
        return "unknown"


_LOADED_LATE = {
    **dict.fromkeys(("make_context", "parse", "read_model"), "qdialect.frontends.full_contexts"),
    **dict.fromkeys(
        (
            *("CompileError", "Diagnostic", "ImportModelError", "InputError", "LoadError", "ParseError", "PassError"),
            *("ExternalCallError", "PipelineError", "QDialectError", "Severity", "VerificationError"),
        ),
        "qdialect.support.diagnostics",
    ),
    **dict.fromkeys(("CompositePass", "Pass"), "qdialect.passes.registry"),
    **dict.fromkeys(
        ("MatchFailure", "Pattern", "PatternPass", "Rewriter", "explain_matches"), "qdialect.passes.pattern"
    ),
    "build": "qdialect.dialect",
    "CompileOptions": "qdialect.support.options",
    "ExternalFunction": "qdialect.support.externals",
    "Executable": "qdialect.runtime",
    "FallbackWarning": "qdialect.driver.fallback",
    "PassManager": "qdialect.passes.pipeline",
    "register_pass": "qdialect.passes.registry",
    "verify": "qdialect.ir.context",
}
_OTHER_NAMES = {"register_pass": "register"}

# Whatever is imported of the package, this module is imported before it.
LOADERS.append(_load_dialect)


__all__ = [
    "CompileError",
    "CompileOptions",
    "CompositePass",
    "Diagnostic",
    "Executable",
    "ExternalCallError",
    "ExternalFunction",
    "FallbackWarning",
    "ImportModelError",
    "InputError",
    "LoadError",
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
    "load",
    "make_context",
    "parse",
    "read_model",
    "register_pass",
    "verify",
]
