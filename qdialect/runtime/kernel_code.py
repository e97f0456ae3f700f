"""Machine code of kernels that are compiled before the rest of their network, a few at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from qdialect._mlir import ir
from qdialect.lowering.code_attributes import is_left_as_it_is, keep_to_target
from qdialect.lowering.functions import MAIN
from qdialect.lowering.kernel_groups import add_table, taken_groups
from qdialect.lowering.pipeline import lower_kernels
from qdialect.runtime.jit import MachineCode
from qdialect.target import Target


@dataclass(frozen=True)
class KernelCode:
    """Kernels, by the names that the network calls them by."""

    groups: list[MachineCode] = field(default_factory=list)
    addresses: dict[str, int] = field(default_factory=dict)

    def add(self, group: ir.Module, target: Target) -> None:
        """Compile a group at phase `vector`, which is used up."""
        lower_kernels(group, target)
        keep_to_target(group, target)
        names = add_table(group)
        code = MachineCode(group)
        empty(group)
        table = np.zeros(len(names), np.uint64)
        code.bind(MAIN, [table.ctypes.data]).call()
        self.groups.append(code)
        self.addresses.update(zip(names, map(int, table), strict=True))


def compiled_kernels(module: ir.Module, target: Target) -> KernelCode:
    """Compile kernels of a module at phase `vector`; of each that is compiled here the module keeps the declaration.

    Where LLVM optimizes, functions stay together: it looks at what `main` passes to them.
    """
    found = KernelCode()
    if is_left_as_it_is(module):
        for group in taken_groups(module):
            found.add(group, target)
    return found


def empty(module: ir.Module) -> None:
    """Erase all ops of a module of which LLVM has its own form."""
    for op in list(module.body.operations):
        op.operation.erase()
