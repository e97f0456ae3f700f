"""`qnn-inline-outlined`: inlines outlined functions at their calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect.ir._mlir import ir
from qdialect.passes.outlined import inline_outlined
from qdialect.passes.registry import Pass, register


@register
@dataclass(frozen=True)
class InlineOutlinedPass(Pass):
    """Replace calls of functions with `qnn.external` by their bodies, and erase the functions.

    Undoes `qnn-outline-fused`: the ops are then compiled like any other op.  With `keep_extern`, which compilation
    uses, extern functions stay: those that the library of a target implements.
    """

    name: ClassVar[str] = "qnn-inline-outlined"
    dependent_dialects = ()
    keep_extern: bool = False

    def run(self, module: ir.Module) -> None:
        with module.context:
            inline_outlined(module, self.keep_extern)
