"""Upstream's passes and transform schedules as parts of lowering steps, with their failures as our errors."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace

from qdialect.ir._mlir import ir, passmanager, transform, transform_interpreter
from qdialect.ir.context import converted, load_dialects, location_of, several_threads
from qdialect.lowering.ir.functions import error_at
from qdialect.support import limits
from qdialect.support.diagnostics import CompileError, Diagnostic, Severity

# Functions per thread: starting a thread takes as long as lowering a small function.
FUNCTIONS_PER_THREAD = 4

Build = Callable[[ir.Value], None]
"""Writes a schedule, given the handle of the op that it is applied to."""

_KERNEL_DIALECTS = (
    *("affine", "bufferization", "cf", "index", "linalg", "llvm", "memref", "omp", "scf", "transform", "ub", "vector"),
    "x86",
)


def load_kernel_dialects(module: ir.Module) -> None:
    """Load what kernels are made of from phase `linalg` on; each lowering step does so before it builds anything."""
    load_dialects(module.context, _KERNEL_DIALECTS)


def run_passes(module: ir.Module, pipeline: str, name: str) -> None:
    """Run a pipeline of upstream's passes for the pass `name`; raises `CompileError` where one fails.

    Passes on functions work on several at the same time. What they leave is verified once: to verify it after each of
    them takes as long as some of the passes.
    """
    manager = passmanager.PassManager.parse(pipeline, module.context)
    manager.enable_verifier(False)
    try:
        with several_threads(
            module.context, min(limits.active_jobs(), len(module.body.operations) // FUNCTIONS_PER_THREAD)
        ):
            manager.run(module.operation)
        module.operation.verify()
    except ir.MLIRError as error:
        found = tuple(map(converted, error.error_diagnostics)) or (Diagnostic(Severity.ERROR, "failed silently"),)
        first = replace(found[0], message=f"{name}: {found[0].message}")
        if not first.line:
            file, line, column = location_of(module.operation.location)
            first = replace(first, file=file, line=line, column=column)
        raise CompileError(first.message, (first, *found[1:])) from error


def apply_schedule(payload: ir.Operation, build: Build, name: str) -> None:
    """Apply the schedule that `build` writes for the pass `name` to `payload`.

    Raises `CompileError` where it does not apply.
    """
    script = ir.Module.create()
    script.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
    with ir.InsertionPoint(script.body):
        sequence = transform.NamedSequenceOp("__transform_main", [transform.AnyOpType.get()], [])
    with ir.InsertionPoint(sequence.body):
        build(sequence.bodyTarget)
        transform.YieldOp()
    try:
        transform_interpreter.apply_named_sequence(payload, script.body.operations[0], script)
    except ValueError as error:
        raise error_at(payload.location, f"{name}: {' '.join(str(error).split())}") from error


@contextmanager
def grouped(module: ir.Module) -> Generator[ir.Operation]:
    """An op with the functions of `module` in it, for as long as the context lasts.

    In an op that is not isolated from above, patterns are applied in one iteration, from the last op to the first, and
    blocks are left as they are. In a module or function they are applied until an iteration changes nothing, and each
    iteration ends with a look at all blocks, which takes longer than most patterns.
    """
    with module.context, ir.Location.unknown(), ir.InsertionPoint(module.body):
        ops = list(module.body.operations)
        group = ir.Operation.create("scf.execute_region", regions=1)
        block = group.regions[0].blocks.append()
    for op in ops:
        block.append(op)
    try:
        yield group
    finally:
        for op in list(block.operations):
            module.body.append(op)
        group.erase()


def apply_patterns(target: ir.Value, *patterns: Callable[[], object]) -> None:
    """Write that the patterns that `patterns` name are applied to `target`."""
    with ir.InsertionPoint(transform.ApplyPatternsOp(target).patterns):
        for pattern in patterns:
            pattern()
