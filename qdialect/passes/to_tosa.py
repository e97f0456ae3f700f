"""`qnn-to-tosa`: functions of `qnn` ops become functions of upstream's `tosa` dialect, with the same bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect.ir._mlir import func, ir
from qdialect.ir.context import functions, name_of, note_at
from qdialect.passes.decompose_fused import DecomposeFusedPass
from qdialect.passes.outlined import inline_outlined
from qdialect.passes.pattern import apply_patterns
from qdialect.passes.registry import Pass, register
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
            defined = [function for function in functions(module) if len(function.regions[0].blocks) == 1]
            notes = [note for function in defined for note in _export(function)]
            # Constants that nothing reads.
            apply_patterns(module, ())
        if notes:
            message = f"{self.name}: {len(notes)} ops have no exact counterpart in tosa"
            raise PassError(message, (Diagnostic(Severity.ERROR, message, notes=tuple(notes)),))


def _export(function: ir.Operation) -> list[Diagnostic]:
    """Replace `function` by the exported one; if ops have no counterpart, leave it and return them."""
    with ir.InsertionPoint(function), function.location:
        created = func.FuncOp(name_of(function), ir.TypeAttr(function.attributes["function_type"]).value)
    for attribute, value in function.attributes.items():
        created.attributes[attribute] = value
    arguments = function.regions[0].blocks[0].arguments
    block = created.add_entry_block([argument.location for argument in arguments])
    unsupported = list(export_function(function, block))
    (created.operation if unsupported else function).erase()
    return [note_at(op, reason) for op, reason in unsupported]
