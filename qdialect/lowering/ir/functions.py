"""Functions of a module that is lowered, `main` and the kernels that it calls; loops in them; errors at ops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from numpy.typing import NDArray

from qdialect.dialect.constants import constant_value
from qdialect.ir._mlir import ir, rewrite
from qdialect.ir.context import functions, location_of, name_of
from qdialect.support.diagnostics import CompileError, Diagnostic, Severity
from qdialect.support.late_imports import UNINTERRUPTED

MAIN = "main"
CLOCK = "llvm.readcyclecounter"
"""The intrinsic that reads the counter of cycles."""
TRIPS = "qnn.trips"
"""Assumed trip count of a loop whose bounds are not constant."""
REFERENCES = ("callee", "global_name")
"""Attributes of the LLVM dialect that name another function or constant of the module."""


def ops_named(module: ir.Module, *names: str) -> list[ir.Operation]:
    """Every op of `module` with one of these names, at any depth; an op comes after those in its regions.

    MLIR compares the names: a walk that calls Python for each op takes twenty times as long.
    """
    found: list[ir.Operation] = []

    def note(op: ir.OpView, _: rewrite.PatternRewriter) -> bool:
        found.append(op.operation)
        return True

    patterns = rewrite.RewritePatternSet(module.context)
    for name in names:
        patterns.add(name, note)
    with UNINTERRUPTED:
        rewrite.walk_and_apply_patterns(module.operation, patterns.freeze())
    return found


def owner_of(value: ir.Value) -> ir.Operation | None:
    """The op that gives `value`; None for an argument of a block."""
    owner = value.owner
    return owner.operation if isinstance(owner, ir.Operation | ir.OpView) else None


def required_constant(name: str, value: ir.Value) -> NDArray[Any]:
    """The array behind an operand that must be a constant; raises `CompileError`."""
    array = constant_value(value)
    if array is None:
        raise CompileError(f"{name} must be a constant to be compiled, but got a value that is known at run time only")
    return array


def only_user(value: ir.Value) -> ir.OpView | None:
    """The op that uses `value`, once; None where there are more uses, or none."""
    uses = list(value.uses)
    return uses[0].owner if len(uses) == 1 else None


def op_in(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The op of `block` that is `op` or holds it."""
    while op.block != block and op.parent:
        op = op.parent.operation
    return op


def symbols(module: ir.Module) -> Iterator[tuple[str, ir.Operation]]:
    """The functions and constants of a module, each with its name."""
    for op in [op.operation for op in module.body.operations]:
        yield name_of(op), op


def function_of(op: ir.Operation) -> ir.Operation:
    """The outermost op of the module that `op` is in, or is."""
    while (parent := op.parent) is not None and parent.parent is not None:
        op = parent.operation
    return op


def has_body(function: ir.Operation) -> bool:
    """Whether `function` is more than a declaration."""
    return len(function.regions[0].blocks) > 0


def entry(module: ir.Module) -> ir.Operation:
    """The function `main`; raises `CompileError` where `module` has none with a body."""
    found = functions(module)
    main = next((function for function in found if name_of(function) == MAIN), None)
    if main is not None and has_body(main):
        return main
    what = "a declaration" if main else ", ".join(map(name_of, found)) or "no function"
    message = f"a module must have a function {MAIN} with a body to be lowered, but got {what}"
    first = next((op.operation for op in module.body.operations), module.operation)
    raise error_at((main or first).location, message)


# Loops, and constant indices.

LOOP = "scf.for"


def constant(value: ir.Value) -> int | None:
    """A constant integer, signed, or index; None for other values."""
    owner = owner_of(value)
    number = owner.attributes["value"] if owner and owner.name == "arith.constant" else None
    return number.value if isinstance(number, ir.IntegerAttr) else None


def loop_of(variable: ir.Value) -> ir.Operation | None:
    """The `scf.for` whose index is `variable`."""
    block = variable.owner
    holder = block.owner if isinstance(block, ir.Block) else None
    return holder.operation if holder and holder.name == LOOP else None


def bounds(loop: ir.Operation) -> tuple[int, int, int] | None:
    """(first index, step, trip count) of an `scf.for` where they are known."""
    lower, upper, step = (constant(value) for value in list(loop.operands)[:3])
    if lower is None or upper is None or step is None:
        return None
    return lower, step, max(-(-(upper - lower) // step), 0)


def inside(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops in the regions of `op`, and in theirs."""
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                yield from inside(child.operation)


# The loops of ops with affine maps: which loop indexes each dimension of an operand, and its extent.

Point = Mapping[int, int]
"""An index for each of some loops."""


@dataclass(frozen=True)
class Contraction:
    """The loops of a `vector.contract`, by their positions in its iteration space."""

    lhs: tuple[int, ...]
    """The loop that walks each dimension of the first operand."""
    rhs: tuple[int, ...]
    result: tuple[int, ...]
    extents: tuple[int, ...]
    """Steps of each loop."""
    kind: str
    """The combining kind: ``add``, ``minsi``, ..."""

    @property
    def reduced(self) -> tuple[int, ...]:
        """The loops over terms of one element of the result, outermost first."""
        return tuple(loop for loop in range(len(self.extents)) if loop not in self.result)

    def terms(self, loops: Sequence[int]) -> int:
        """Steps of `loops` together."""
        return prod(self.extents[loop] for loop in loops)

    def points(self, loops: Sequence[int]) -> Iterator[dict[int, int]]:
        """Every step of `loops`, the last of them fastest."""
        for indices in product(*(range(self.extents[loop]) for loop in loops)):
            yield dict(zip(loops, indices, strict=True))


def loops_of(attribute: ir.Attribute) -> tuple[int | None, ...]:
    """By result of an affine map: the loop that it is; None for other expressions."""
    return tuple(
        ir.AffineDimExpr(result).position if isinstance(result, ir.AffineDimExpr) else None
        for result in ir.AffineMapAttr(attribute).value.results
    )


def kind_of(op: ir.Operation) -> str:
    """That of a vector's reduction, such as ``add``, which products on tensors have."""
    return (
        str(op.attributes["kind"]).removeprefix("#vector.kind<").removesuffix(">") if "kind" in op.attributes else "add"
    )


def contraction_of(op: ir.Operation) -> Contraction:
    """The loops of a `vector.contract`, whose verifier wants projected permutations, or of a generic like one."""
    maps = [
        tuple(loop for loop in loops_of(one) if loop is not None)
        for one in ir.ArrayAttr(op.attributes["indexing_maps"])
    ]
    extents = [1] * len(ir.ArrayAttr(op.attributes["iterator_types"]))
    for loops, value in zip(maps, list(op.operands), strict=False):
        shape = value.type.shape if isinstance(value.type, ir.VectorType | ir.RankedTensorType) else ()
        for loop, extent in zip(loops, shape, strict=True):
            extents[loop] = extent
    return Contraction(maps[0], maps[1], maps[2], tuple(extents), kind_of(op))


def at(point: Point, loops: Sequence[int]) -> tuple[int, ...]:
    """The indices of an operand that `loops` walk at a point; a loop that has no index there is at its start."""
    return tuple(point.get(loop, 0) for loop in loops)


# Errors of the lowering, at the op they are about.


def error_at(location: ir.Location, message: str, notes: tuple[Diagnostic, ...] = ()) -> CompileError:
    """An error at `location`, with `notes` below it."""
    return CompileError(message, (Diagnostic(Severity.ERROR, message, *location_of(location), notes),))


def op_error(op: ir.Operation, text: str) -> CompileError:
    """The error ``'name' op text``, at `op`."""
    return error_at(op.location, f"'{op.name}' op {text}")
