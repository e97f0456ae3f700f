"""`qnn-to-tosa`: functions of `qnn` ops become functions of upstream's `tosa` dialect, with the same bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect.ir._mlir import func, ir
from qdialect.ir.context import location_of
from qdialect.passes.decompose_fused import DecomposeFusedPass
from qdialect.passes.outlined import inline_outlined
from qdialect.passes.pass_base import Pass
from qdialect.passes.pattern import apply_patterns
from qdialect.passes.registry import register
from qdialect.passes.tosa_export import export_function
from qdialect.support.diagnostics import Diagnostic, PassError, Severity


@register
@dataclass(frozen=True)
class ToTosa(Pass):
    """Convert `qnn` ops and upstream's element-wise ops to `tosa` ops with the same results.

    Fused ops are decomposed first.  `fixed64_up` is RESCALE with SINGLE_ROUND, `fixed64_double` with DOUBLE_ROUND; the
    other rounding modes are written as their integer or float32 arithmetic, and functions of 8-bit values become TABLE
    operators.  TOSA computes on signed bytes, so 128 is subtracted from `ui8` values between the arguments and results,
    which stay `ui8`. Scales of arguments and results stay attributes.  A function with ops that TOSA cannot express
    exactly is not changed; one error lists all of these ops as notes.
    """

    name: ClassVar[str] = "qnn-to-tosa"
    dependent_dialects = ("tosa",)

    def run(self, module: ir.Module) -> None:
        with module.context, ir.Location.unknown():
            inline_outlined(module)
            DecomposeFusedPass().run(module)
            functions = [op.operation for op in module.body.operations if _is_exported(op.operation)]
            notes = [note for function in functions for note in _export(function)]
            # Constants that nothing reads.
            apply_patterns(module, ())
        if notes:
            message = f"{self.name}: {len(notes)} ops have no exact counterpart in tosa"
            raise PassError(message, (Diagnostic(Severity.ERROR, message, notes=tuple(notes)),))


def _is_exported(operation: ir.Operation) -> bool:
    return operation.name == "func.func" and len(operation.regions[0].blocks) == 1


def _export(function: ir.Operation) -> list[Diagnostic]:
    """Replace `function` by the exported one; if ops have no counterpart, leave it and return them."""
    with ir.InsertionPoint(function), function.location:
        name = ir.StringAttr(function.attributes["sym_name"]).value
        created = func.FuncOp(name, ir.TypeAttr(function.attributes["function_type"]).value)
    for attribute, value in function.attributes.items():
        created.attributes[attribute] = value
    arguments = function.regions[0].blocks[0].arguments
    block = created.add_entry_block([argument.location for argument in arguments])
    unsupported = list(export_function(function, block))
    (created.operation if unsupported else function).erase()
    return [_note(op, reason) for op, reason in unsupported]


def _note(op: ir.Operation, reason: str) -> Diagnostic:
    file, line, column = location_of(op.location)
    return Diagnostic(Severity.NOTE, f"'{op.name}' op {reason}", file, line, column)
