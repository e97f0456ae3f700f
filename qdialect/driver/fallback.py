"""Fallback: the model's framework runs the parts of a model that cannot be compiled, and nothing more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qdialect.cache.networks import compile_kept
from qdialect.cache.store import Store
from qdialect.frontends.model_files import format_of, is_float32
from qdialect.ir._mlir import ir
from qdialect.passes.observers import progress_of
from qdialect.runtime.base import NATIVE, Executable, Region
from qdialect.runtime.compiler import check_machine
from qdialect.support import diagnostics
from qdialect.support.diagnostics import Diagnostic, ImportModelError, QDialectError, Severity
from qdialect.support.files import is_regular
from qdialect.support.interface import Port
from qdialect.support.late_imports import LATE_IMPORTS
from qdialect.support.log import tell
from qdialect.support.options import CompileOptions, Fallback, ImportOptions

if TYPE_CHECKING:
    from qdialect.frontends.planning.partition import Division, OpenInterface, Part, Partition
    from qdialect.runtime.partitioned import PartitionedExecutable, RegionCall


_SHOWN_NODES = 5


class FallbackWarning(UserWarning):
    """The framework of a model runs a part of it."""


def compile_file(path: Path, options: CompileOptions, store: Store | None = None) -> Executable:
    """A model file compiled as a whole or, where that is impossible, in parts.

    ``options.fallback`` sets what runs the rest; by default the framework if it is installed.  `store` is where
    compiled networks are kept.  Raises `ImportModelError` and `CompileError` for a model that cannot be compiled then,
    and `ImportModelError` for a part that the framework does not take either.
    """
    kind = format_of(path)
    # An invalid request is invalid for every part of the model.
    check_machine(options.target, options.threads)
    try:
        module = kind.read(path, options.importing)
        found = compile_tuned(module, options, store, is_verified=True)
        found.is_float32 = is_float32(module)
        return found
    except diagnostics.NOT_COMPILED as error:
        return compile_refused(path, options, error, store)


def compile_refused(
    path: Path, options: CompileOptions, error: QDialectError, store: Store | None = None
) -> PartitionedExecutable:
    """A model file that `error` refuses, compiled in parts; raises `error` again where `compile_file` raises."""
    division = division_of(path, options.importing, error, options.fallback)
    try:
        found = compile_parts(division, options, store)
        found.metadata = format_of(path).about(path)
        return found
    except ImportModelError as other:
        raise with_note(error, other.message) from other


def compile_parts(
    division: Division, options: CompileOptions | None = None, store: Store | None = None
) -> PartitionedExecutable:
    """A divided model; raises `ImportModelError` for a part that the framework does not take."""
    with LATE_IMPORTS:
        from qdialect.frontends.planning.partition import divide
        from qdialect.runtime.memory import States
        from qdialect.runtime.partitioned import PartitionedExecutable, RegionCall

    wanted = options or CompileOptions()
    found, compiled = divide(division, lambda module: compile_tuned(module, wanted, store, is_verified=True))
    calls: list[RegionCall] = []
    for part, executable in zip(found.parts, compiled, strict=True):
        runner = None if executable is not None else division.runner(part, wanted.threads)
        calls.append(RegionCall(region_of(division, found, part), executable, runner))
    inputs, outputs = (tuple(map(_port, tensors)) for tensors in (division.inputs, division.outputs))
    known, states = division.constants, States.of(division.states)
    return PartitionedExecutable(
        calls, inputs, outputs, known, wanted.threads, states, hides_state=division.hides_state
    )


def region_of(division: Division, found: Partition, part: Part) -> Region:
    """The message about a part."""
    nodes = [division.nodes[index] for index in part.nodes]
    reasons = {division.nodes[index].title: found.reasons[index] for index in part.nodes if index in found.reasons}
    runner = NATIVE if part.is_compiled else division.framework
    products = sum(node.products for node in nodes)
    titles = tuple(node.title for node in nodes)
    return Region(runner, titles, products, part.inputs, part.outputs, {} if part.is_compiled else reasons)


def division_of(path: Path, options: ImportOptions, error: QDialectError, fallback: Fallback | None) -> Division:
    """The parts of a file that its framework may run.

    Raises `error` where nothing may, and with what to install where the framework is not there.
    """
    kind = format_of(path)
    # Only a regular file can be read again.
    is_allowed = fallback != "none" and is_regular(path) and is_unsupported(error)
    if not is_allowed or kind.framework is None or kind.divide is None:
        raise error
    if kind.framework.is_installed():
        return kind.divide(path, options)
    raise with_note(error, kind.framework.hint) from error


def summary(executable: Executable) -> str:
    """Which nodes a framework runs, in one line, and how much of the products; empty where it runs nothing."""
    left = [region for region in executable.regions if not region.is_compiled]
    if not left:
        return ""
    names = [name for region in left for name in region.reasons]
    nodes = len({name for region in executable.regions for name in region.nodes})
    counts = [sum(region.products for region in regions) for regions in (left, executable.regions)]
    return _summary_of(left[0].runner, names, nodes, *counts)


def captured_summary(division: Division, left: Collection[int]) -> str:
    """The same of a graph in whose place compiled regions were put; `left` are the nodes that are not in them."""
    names = [division.nodes[index].title for index in sorted(left)]
    products = sum(division.nodes[index].products for index in left)
    return _summary_of(
        division.framework, names, len(division.nodes), products, sum(node.products for node in division.nodes)
    )


def _summary_of(runner: str, names: Sequence[str], nodes: int, products: int, total: int) -> str:
    shown = ", ".join(names[:_SHOWN_NODES]) + (f" and {len(names) - _SHOWN_NODES} more" if names[_SHOWN_NODES:] else "")
    share = f" and {100 * products / total:.3g} % of the multiply-accumulates" if total else ""
    return f"{runner} runs {len(names)} of {nodes} nodes{share}: {shown}"


def is_unsupported(error: QDialectError) -> bool:
    """Whether an error is about what is not supported, and not about a damaged file."""
    return not isinstance(error, ImportModelError) or any(diagnostic.notes for diagnostic in error.diagnostics)


def with_note(error: QDialectError, text: str) -> QDialectError:
    """`error` with a note more."""
    first, *others = error.diagnostics
    notes = (*first.notes, Diagnostic(Severity.NOTE, text))
    return type(error)(error.message, (replace(first, notes=notes), *others))


def _port(tensor: OpenInterface) -> Port:
    return Port(tensor.name, tensor.shape, np.dtype(tensor.dtype), tensor.scale, tensor.zero_point)


# A network compiled and kept, with the fastest variants of its kernels where that is asked for.


def compile_tuned(
    module: ir.Module, options: CompileOptions, store: Store | None, *, is_verified: bool = False
) -> Executable:
    """`module` as `compile_kept` compiles it; with the option `tune` its kernels are measured before.

    Raises as `compile_kept` and `tuned` do.
    """
    if not options.tune:
        with progress_of("compiling"):
            return compile_kept(module, options, store, is_verified=is_verified)
    with LATE_IMPORTS:
        from qdialect.driver.tuning import tuned

    with progress_of("tuning"):
        faster, report = tuned(module, options.target, store=store, progress=tell)
        executable = compile_kept(faster, options, store)
    executable.tuning = report
    return executable
