"""Passes between phases: where each starts and ends, and what is legal after it.

A breach of the contract of a phase is one error with a note per unsupported op."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from qdialect.ir._mlir import ir, ops_in, passmanager, rewrite, transform, transform_interpreter
from qdialect.ir.context import converted, load_dialects, location_of, note_at, several_threads
from qdialect.lowering.ir.functions import CLOCK, error_at, ops_named
from qdialect.lowering.ir.lowered import PHASE, Phase, phase_of, set_phase
from qdialect.lowering.ir.views import ALLOCATIONS
from qdialect.passes.registry import Pass
from qdialect.support import limits
from qdialect.support.diagnostics import CompileError, Diagnostic, Severity

# Passes of the lowering: each has phases that it starts from, and a phase that it ends at.


@dataclass(frozen=True)
class PhasePass(Pass):
    """A pass from one of the phases `starts` to the phase `end`.

    A module without a phase attribute, such as one written by hand, is accepted where its ops may be of that phase.
    """

    # The steps load the dialects that they build themselves, because they are also called directly.
    dependent_dialects = ()
    starts: ClassVar[tuple[Phase, ...]]
    end: ClassVar[Phase]

    def run(self, module: ir.Module) -> None:
        found = _phases_of(module)
        if not set(found) & set(self.starts):
            before = [f"qnn-to-{phase}" for phase in found[0].up_to(self.starts[0]) if phase is not Phase.FUSED]
            way = f"run {', '.join(before)} before" if before else "no pass leads back"
            wanted, actual = " or ".join(self.starts), " or ".join(found)
            raise error_at(module.operation.location, f"module must be at phase {wanted}, but is at {actual}; {way}")
        self.lower(module)
        set_phase(module, self.end)

    @abstractmethod
    def lower(self, module: ir.Module) -> None:
        """Lower `module` in place, and check the contract of the phase it has reached."""


# Ops that only some phases have; the first that a module has tells, where it has no attribute.
_SIGNS: Mapping[str, tuple[Phase, ...]] = {
    "qnn.": (Phase.QNN, Phase.FUSED),
    "linalg.": (Phase.LINALG,),
    "bufferization.": (Phase.LINALG,),
    "memref.": (Phase.LINALG, Phase.VECTOR, Phase.X86),
    "vector.": (Phase.LINALG, Phase.VECTOR, Phase.X86),
    "llvm.func": (Phase.LLVM,),
}


def _phases_of(module: ir.Module) -> tuple[Phase, ...]:
    """The phases that `module` may be at: the one in its attribute, or those that have its ops."""
    if PHASE in module.operation.attributes:
        return (phase_of(module),)
    names = {op.name for op in ops_in(module.operation)}
    return next((phases for sign, phases in _SIGNS.items() if any(n.startswith(sign) for n in names)), tuple(Phase))


# The contract of each phase: its legal ops. A breach is one error with a note per unsupported op.

_MAX_NOTES = 10
_FUSED_PRODUCTS = ("vector.contract", "vector.fma", "vector.outerproduct")
"""Ops that upstream lowers to fused multiply-adds if their elements are floating-point numbers."""
_FUSED_SUM = "llvm.intr.fmuladd"
_CAST = "builtin.unrealized_conversion_cast"
_NOT_ROUNDED = "adds a product that is not rounded"
_NOT_ALLOWED = "is not allowed"

Problem = Callable[[ir.Operation], str | None]
"""The problem of an op; None if it is legal."""


def check_fused(module: ir.Module) -> None:
    """Fused: only `qnn` ops, constants, element-wise upstream ops and the function around them."""
    _check_dialects(module, "fused", ("qnn", "func", "builtin", "arith", "math", "tensor"))


def check_linalg(module: ir.Module) -> None:
    """linalg: kernels of linalg, tensor and scalar ops, in loops where data lies by a table; else only buffers."""
    allowed = ("func", "builtin", "linalg", "tensor", "arith", "math", "memref", "bufferization", "scf")
    _check_dialects(module, "linalg", allowed)


def check_vector(module: ir.Module) -> None:
    """vector: no tensors and no linalg op left, no allocation."""
    allowed = ("func", "builtin", "vector", "scf", "arith", "math", "memref", "ub", "affine", "omp")
    _check_dialects(module, "vector", allowed, dict.fromkeys(ALLOCATIONS, "allocates memory inside a kernel"))


def check_products(module: ir.Module) -> None:
    """x86: a product of floats is rounded before it is added, but for `math.fma`, which is fused on every CPU."""

    def problem(op: ir.Operation) -> str | None:
        return _NOT_ROUNDED if _is_float(op.results[0]) else None

    check_ops(ops_named(module, *_FUSED_PRODUCTS), "x86", problem)


def _is_float(value: ir.Value) -> bool:
    element = value.type.element_type if isinstance(value.type, ir.VectorType) else value.type
    return isinstance(element, ir.FloatType)


def check_llvm(module: ir.Module) -> None:
    """llvm: the LLVM dialect alone, and no product that one CPU rounds before it is added and another does not."""
    _check_dialects(module, "llvm", ("llvm", "builtin"), {_FUSED_SUM: _NOT_ROUNDED, _CAST: _NOT_ALLOWED})


def _reads_clock(op: ir.Operation) -> bool:
    return op.name == "llvm.call_intrinsic" and ir.StringAttr(op.attributes["intrin"]).value == CLOCK


def _check_dialects(
    module: ir.Module, phase: str, allowed: Iterable[str], forbidden: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raise `CompileError` if an op is of no `allowed` dialect, or is in `forbidden`, which gives the reason."""
    if _is_legal(module, allowed, forbidden):
        return
    prefixes = tuple(f"{dialect}." for dialect in allowed)

    def problem(op: ir.Operation) -> str | None:
        if op.name in forbidden:
            return forbidden[op.name]
        return None if op.name.startswith(prefixes) or _reads_clock(op) else _NOT_ALLOWED

    check_ops(ops_in(module.operation), phase, problem)


def _is_legal(module: ir.Module, allowed: Iterable[str], forbidden: Iterable[str]) -> bool:
    """Whether all ops are of `allowed` dialects and none is `forbidden`, as MLIR sees it: ten times as fast as a walk.

    A conversion without patterns changes nothing, and fails at what is not legal.
    """
    with module.context:
        target = rewrite.ConversionTarget()
        target.add_legal_dialect(*allowed)
        target.add_illegal_op(*forbidden)
        try:
            rewrite.apply_full_conversion(module.operation, target, rewrite.RewritePatternSet().freeze())
        except ir.MLIRError:
            return False
    return True


def check_ops(ops: Iterable[ir.Operation], phase: str, problem: Problem) -> None:
    """Raise `CompileError` with a note for each of `ops` that has a `problem`."""
    unsupported = [(op, text) for op in ops if (text := problem(op))]
    if not unsupported:
        return
    message = f"after phase {phase}: {len(unsupported)} ops break its contract"
    raise error_at(
        unsupported[0][0].location,
        message,
        tuple(note_at(*unsupported_op) for unsupported_op in unsupported[:_MAX_NOTES]),
    )


# Upstream's passes and transform schedules as parts of lowering steps, with their failures as our errors.

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
