"""`qnn-inline-outlined`: outlined functions go back to where they are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect.ir._mlir import ir
from qdialect.passes.outlined import inline_outlined
from qdialect.passes.pass_base import Pass
from qdialect.passes.registry import register


@register
@dataclass(frozen=True)
class InlineOutlinedPass(Pass):
    """Replace calls of functions with `qnn.external` by their bodies, and erase the functions.

    Undoes `qnn-outline-fused`: the ops are then compiled like any other op.  With `keep_handed_off`, which compilation
    uses, functions of a target stay.
    """

    name: ClassVar[str] = "qnn-inline-outlined"
    dependent_dialects = ()
    keep_handed_off: bool = False

    def run(self, module: ir.Module) -> None:
        with module.context:
            inline_outlined(module, self.keep_handed_off)
