"""What is legal after each phase; a breach is one error with a note per unsupported op."""

from __future__ import annotations

from collections.abc import Callable

from qdialect._mlir import ir
from qdialect.lowering.errors import error_at, note_at
from qdialect.lowering.program import CLOCK
from qdialect.lowering.to_x86 import instruction_patterns
from qdialect.lowering.x86.byte_table import is_table_read
from qdialect.lowering.x86.instruction_pattern import reasons
from qdialect.lowering.x86.instruction_set import instruction_set_of
from qdialect.lowering.x86.narrow_contraction import factors_of
from qdialect.target import Target

_MAX_NOTES = 10
_FUSED_PRODUCTS = ("vector.contract", "vector.fma", "vector.outerproduct")
"""What upstream lowers to fused multiply-adds, where its elements are floating-point numbers."""
_MUST_BE_INSTRUCTIONS = ("vector.contract", "vector.gather")
"""What is a dot product or a table read, where its elements and operands are those of one."""

Problem = Callable[[ir.Operation, str], str | None]
"""What is wrong with an op of a name, which is asked for once: modules have a hundred thousand ops."""


def check_fused(module: ir.Module) -> None:
    """Fused: only `qnn` ops, constants, element-wise upstream ops and the function around them."""
    _check(module, "fused", _unknown_op(("qnn.", "func.", "builtin.", "arith.", "math.", "tensor.")))


def check_linalg(module: ir.Module) -> None:
    """linalg: kernels of linalg, tensor and scalar ops, in loops where data lies by a table; else only buffers."""
    allowed = ("func.", "builtin.", "linalg.", "tensor.", "arith.", "math.", "memref.", "bufferization.", "scf.")
    _check(module, "linalg", _unknown_op(allowed))


def check_vector(module: ir.Module) -> None:
    """vector: no tensors and no linalg op left, no allocation."""
    allowed = ("func.", "builtin.", "vector.", "scf.", "arith.", "math.", "memref.", "ub.", "affine.", "omp.")
    unknown = _unknown_op(allowed)

    def problem(op: ir.Operation, name: str) -> str | None:
        if name in ("memref.alloc", "memref.alloca"):
            return "allocates memory inside a kernel"
        return unknown(op, name)

    _check(module, "vector", problem)


def check_x86(module: ir.Module, target: Target) -> None:
    """x86: every contraction of bytes or words is dot products, every table read an instruction if there is one."""
    patterns, instructions = instruction_patterns(target), instruction_set_of(target)

    def problem(op: ir.Operation, name: str) -> str | None:
        if name not in _MUST_BE_INSTRUCTIONS:
            return None
        is_left = instructions is not None and instructions.looks_up_tables and is_table_read(op)
        factors = factors_of(op)
        is_narrow = factors is not None and instructions is not None and factors.dots(instructions)
        if not is_left and not is_narrow:
            return None
        return "; ".join(["is left", *(f"[{pattern}] {found.reason}" for pattern, found in reasons(op, patterns))])

    if instructions is not None:
        _check(module, "x86", problem)


def check_products(module: ir.Module) -> None:
    """x86: a product of floats is rounded before it is added, but for `math.fma`, which is fused on every CPU."""

    def problem(op: ir.Operation, name: str) -> str | None:
        is_fused = name in _FUSED_PRODUCTS and _is_float(op.results[0])
        return "adds a product that is not rounded" if is_fused else None

    _check(module, "x86", problem)


def _is_float(value: ir.Value) -> bool:
    element = value.type.element_type if isinstance(value.type, ir.VectorType) else value.type
    return isinstance(element, ir.FloatType)


def check_llvm(module: ir.Module) -> None:
    """llvm: the LLVM dialect alone, and no product that one CPU rounds before it is added and another does not."""
    unknown = _unknown_op(("llvm.", "builtin.module"))

    def problem(op: ir.Operation, name: str) -> str | None:
        return "adds a product that is not rounded" if name == "llvm.intr.fmuladd" else unknown(op, name)

    _check(module, "llvm", problem)


def _unknown_op(prefixes: tuple[str, ...]) -> Problem:
    return lambda op, name: None if name.startswith(prefixes) or _reads_clock(op, name) else "is not allowed"


def _reads_clock(op: ir.Operation, name: str) -> bool:
    return name == "llvm.call_intrinsic" and ir.StringAttr(op.attributes["intrin"]).value == CLOCK


def _check(module: ir.Module, phase: str, problem: Problem) -> None:
    unsupported: list[tuple[ir.Operation, str]] = []

    advance = ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        text = problem(op, op.name)
        if text:
            unsupported.append((op, text))
        return advance

    # Many times as fast as going through regions and blocks here.
    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if not unsupported:
        return
    message = f"after phase {phase}: {len(unsupported)} ops break its contract"
    raise error_at(
        unsupported[0][0].location,
        message,
        tuple(note_at(*unsupported_op) for unsupported_op in unsupported[:_MAX_NOTES]),
    )
