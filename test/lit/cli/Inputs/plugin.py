"""Passes that a user might write, good and bad ones."""

from dataclasses import dataclass
from typing import ClassVar

from qdialect import Pass, register_pass
from qdialect.ir._mlir import ir


@register_pass
@dataclass(frozen=True)
class RenameFunctionsPass(Pass):
    """Append a suffix to the name of every function."""

    name: ClassVar[str] = "rename-functions"
    suffix: str = "_renamed"

    def run(self, module: ir.Module) -> None:
        for op in module.body.operations:
            name = ir.StringAttr(op.attributes["sym_name"]).value
            op.attributes["sym_name"] = ir.StringAttr.get(name + self.suffix)


@register_pass
@dataclass(frozen=True)
class BreakModulePass(Pass):
    """Leave a reshape to a shape of another size."""

    name: ClassVar[str] = "break-module"

    def run(self, module: ir.Module) -> None:
        reshape = module.body.operations[0].regions[0].blocks[0].operations[0]
        reshape.attributes["shape"] = ir.DenseI64ArrayAttr.get([7])


@register_pass
@dataclass(frozen=True)
class RaisePass(Pass):
    """Have a bug."""

    name: ClassVar[str] = "raise"

    def run(self, module: ir.Module) -> None:
        del module
        print(1 // 0)
