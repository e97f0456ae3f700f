"""The implementation of `qdialect.compile`: a model of any kind becomes an executable."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qdialect.cache import model_files
from qdialect.cache.executable import CachedExecutable
from qdialect.cache.store import Store, open_store
from qdialect.driver.fallback import FallbackWarning, compile_file, compile_tuned, summary
from qdialect.driver.padding.lengths import lengths_of
from qdialect.frontends.model_files import condition_of, open_shapes, path_or_module, read_model
from qdialect.ir._mlir import ir
from qdialect.passes.observers import progress_of
from qdialect.runtime import Executable, compile_module
from qdialect.runtime.branched import BranchedExecutable
from qdialect.runtime.shaped import Lengths, ShapedExecutable
from qdialect.runtime.states import StatefulExecutable, with_states
from qdialect.support.diagnostics import NOT_COMPILED, InputError
from qdialect.support.files import recorded_reads
from qdialect.support.late_imports import LATE_IMPORTS
from qdialect.support.limits import active_jobs, using_jobs
from qdialect.support.log import LOG, tell_float32
from qdialect.support.options import DYNAMIC, CompileOptions, ImportOptions

if TYPE_CHECKING:
    from qdialect.driver.batching.network import BatchNetwork
    from qdialect.frontends.onnx.inlining import RunTimeCondition


def compile_model(model: Path | ir.Module, options: CompileOptions) -> Executable:
    """A model file or a module as an executable.

    What is compiled later, for other extents, is compiled with as many jobs.
    """
    externals = options.externals
    if options.tune and (options.is_dynamic or externals):
        other = f"batch='{DYNAMIC}'" if options.is_dynamic else "externals"
        raise InputError(f"tune must be given without {other}: kernels of one shape are measured, all of them compiled")
    if not isinstance(model, Path):
        return _of_module(model, options)
    executable = _of_file(model, options)
    told = summary(executable)
    if told and options.fallback is None:
        # At the line that calls `qdialect.compile`.
        warnings.warn(told, FallbackWarning, stacklevel=3)
    return executable


def _of_file(path: Path, options: CompileOptions) -> Executable:
    """A model file as an executable, which has one for each value of a condition that it leaves to run time."""
    # The object itself: the file of a model that was given in memory is removed with it.
    externals, importing, jobs = options.externals, options.importing, active_jobs()
    condition = condition_of(path, importing)
    # Entries of a batch of any size may have conditions of their own.
    branched = None if condition is None or options.is_dynamic else _with_branches(path, options, condition)
    if branched is not None:
        return branched
    if externals and not options.is_dynamic:
        return _whole(read_model(path, importing), options)
    store = open_store() if options.cache else None

    def compiled(one: ImportOptions) -> Executable:
        with using_jobs(jobs):
            return compile_shape(path, replace(options, batch=one.batch, dims=one.dims), store)

    compile_ = compiled
    if options.is_dynamic:
        any_size = partial(_batched, options=options)
        compile_ = _compiler_of_batches(path, any_size, None if externals else compiled)
    declared = open_shapes(path, importing)
    lengths = Lengths() if options.is_dynamic or externals else lengths_of(path, options, declared, store)
    executable = lengths.prepare() or compile_(importing)
    if executable.is_float32:
        tell_float32(path)
    told = summary(executable)
    if told:
        LOG.info("%s", told)

    def compiled_for(dims: Mapping[str, int]) -> Executable:
        log_extents(path, dims)
        with using_jobs(jobs):
            # The extents of the batch are among them.
            return compile_(replace(importing, batch=1, dims=dims))

    # `shapes` with -1 for extents that `executable` takes as they come.
    taken = {port.name: port.shape for port in executable.inputs}
    shapes = {
        name: [-1 if own == -1 else extent for own, extent in zip(taken[name], shape, strict=True)]
        for name, shape in declared.items()
    }
    shaped = ShapedExecutable(executable, shapes, compiled_for, options.ranges, lengths)
    is_open = any(isinstance(extent, str) for shape in shapes.values() for extent in shape)
    return _prepared(shaped, lengths) if is_open else executable


def _with_branches(path: Path, options: CompileOptions, condition: RunTimeCondition) -> Executable | None:
    """The networks of both values of a condition, each compiled as a model of its own, and what computes it.

    None where the condition has several elements, and where an output has not one rank for both.
    """
    known: str | Executable = condition.name
    if condition.model is not None:
        # That it has taken branches of its own is part of it.
        source = path_or_module(condition.model)
        assert isinstance(source, Path)
        known = _of_file(source, replace(options, branches={}))
        (port,) = known.outputs
        if math.prod(port.shape) != 1:
            return None
    networks = [
        _of_file(path, replace(options, branches={**options.branches, condition.name: value}))
        for value in (False, True)
    ]
    ranks = [[len(port.shape) for port in network.outputs] for network in networks]
    return BranchedExecutable(known, networks) if ranks[0] == ranks[1] else None


def _prepared(executable: ShapedExecutable, lengths: Lengths) -> Executable:
    """`executable`, compiled also for a first call without earlier entries, if the model and its ranges allow one."""
    missing = lengths.missing()
    if missing is not None:
        with contextlib.suppress(*NOT_COMPILED):
            executable.for_shape(missing)
    return executable


def log_extents(path: Path, dims: Mapping[str, int]) -> None:
    """Log the extents that a model is compiled for, other than the first."""
    LOG.info("'%s' is compiled for other extents: %s", path.name, ", ".join(f"{k}={v}" for k, v in dims.items()))


def _of_module(module: ir.Module, options: CompileOptions) -> Executable:
    options.check_module()
    if options.is_dynamic:
        with LATE_IMPORTS:
            from qdialect.driver.batching.network import fixed_batch
        return _batched(fixed_batch(module), options)
    if options.externals:
        return _whole(module, options)
    return compile_tuned(module, options, open_store() if options.cache else None)


def _whole(module: ir.Module, options: CompileOptions) -> Executable:
    with progress_of("compiling"):
        found = compile_module(
            module,
            target=options.target,
            threads=options.threads,
            externals=options.externals,
            workspaces=options.workspaces,
        )
    return with_states(found)


def _batched(network: BatchNetwork, options: CompileOptions) -> Executable:
    with LATE_IMPORTS:
        from qdialect.driver.batching.network import compile_batched

    with progress_of("compiling"):
        return compile_batched(network, options)


def _compiler_of_batches(
    path: Path, any_size: Callable[[BatchNetwork], Executable], one_size: Callable[[ImportOptions], Executable] | None
) -> Callable[[ImportOptions], Executable]:
    """Compiles a model for any batch; without `one_size` it must be one network for all of them."""
    with LATE_IMPORTS:
        from qdialect.driver.batching.network import BatchCompiler, read_batched

    if one_size is None:
        return lambda options: any_size(read_batched(path, options))
    return BatchCompiler(path, any_size, one_size).executable


def compile_shape(path: Path, options: CompileOptions, store: Store | None) -> Executable:
    """A model file for one shape of its inputs; the network goes into `store`, and which one the file gives."""
    key = model_files.model_key(path, options) if store else None
    with recorded_reads() as read:
        executable = compile_file(path, options, store)
    code = executable.code if isinstance(executable, StatefulExecutable) else executable
    if store and key and isinstance(code, CachedExecutable):
        model_files.keep(store, key, code, open_shapes(path, options.importing), read)
    return executable
