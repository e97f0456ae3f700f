"""Which kernel call of a program is the first whose code differs from that of the phase before.

Both phases end as functions of pointers, so that one program can call kernels of either: the first calls those of the
phase that differs, the others those of the phase before, and the border between them is searched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from numpy.typing import NDArray

from qdialect import context
from qdialect._mlir import ir, walk
from qdialect.lowering import lowered
from qdialect.lowering.phase import Phase
from qdialect.lowering.program import KERNEL
from qdialect.runtime.comparison import Difference, first_difference
from qdialect.runtime.phase_nodes import Node, title
from qdialect.runtime.phase_runs import RUNS, called

Array = NDArray[Any]

_BEFORE = "before_"


def first_kernel(modules: Mapping[Phase, ir.Module], phase: Phase, inputs: Sequence[Array]) -> Node | None:
    """The kernel call of `phase` whose code, in place of that of the phase before, makes an output differ.

    None where one of the phases is a graph, or where kernels of the two cannot stand for each other.
    """
    earlier = [one for one in modules if one.number < phase.number]
    code = RUNS[earlier[-1]].code if earlier else None
    of_phase = RUNS[phase].code
    if code is None or of_phase is None:
        return None
    names = [port.name for port in lowered.read(modules[phase]).outputs]
    program = _Program.of(code(modules[earlier[-1]]), of_phase(modules[phase]))
    expected = program.run(0, inputs)

    def difference(count: int) -> Difference | None:
        found = zip(names, expected, program.run(count, inputs), strict=True)
        return next((one for output in found if (one := first_difference(*output))), None)

    alike, differing = 0, program.calls
    found = difference(differing)
    while differing - alike > 1:
        middle = (alike + differing) // 2
        nearer = difference(middle)
        alike, differing, found = (alike, middle, nearer) if nearer else (middle, differing, found)
    return None if found is None else program.node(differing - 1, found)


@dataclass(frozen=True)
class _Program:
    """A program of a phase, and beside its kernels those of the phase before, by other names."""

    module: ir.Module
    kernels: frozenset[str]
    """Those that both phases have."""

    @classmethod
    def of(cls, before: ir.Module, after: ir.Module) -> _Program:
        """The program of `after`."""
        if lowered.CONSTANTS in before.operation.attributes:
            del before.operation.attributes[lowered.CONSTANTS]
        content = BytesIO()
        before.operation.write_bytecode(content)
        others = context.parse(content.getvalue(), after.context)
        known, own = _functions(others), _functions(after)
        kernels = frozenset(
            name
            for name, function in own.items()
            if name.startswith(KERNEL) and name in known and _type(function) == _type(known[name])
        )
        symbols = {ir.StringAttr(op.attributes["sym_name"]).value for op in after.body.operations}
        with after.context, ir.InsertionPoint.at_block_begin(after.body):
            for op in others.body.operations:
                name = ir.StringAttr(op.attributes["sym_name"]).value
                if name in kernels:
                    copy = op.operation.clone()
                    copy.attributes["sym_name"] = ir.StringAttr.get(_BEFORE + name)
                elif name not in symbols:
                    op.operation.clone()
        return cls(after, kernels)

    @property
    def calls(self) -> int:
        """How many calls may be of either phase."""
        return len(self._calls(self.module))

    def run(self, count: int, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs where the calls from `count` on are of the phase before."""
        copy = context.copy(self.module)
        with copy.context:
            for call in self._calls(copy)[count:]:
                call.attributes["callee"] = ir.FlatSymbolRefAttr.get(_BEFORE + _callee(call))
        return called(copy, inputs)

    def node(self, index: int, difference: Difference) -> Node:
        """The call at `index`."""
        call, known = self._calls(self.module)[index], lowered.read(self.module).calls
        names = known[index].names if len(known) == self.calls else ()
        return Node("", f"'{', '.join(names)}'" if names else title(call.location), _callee(call), difference)

    def _calls(self, module: ir.Module) -> list[ir.Operation]:
        """The calls of kernels, in order; those of kernels among themselves stay as they are."""
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name == "llvm.call" and _callee(op) in self.kernels:
                found.append(op)
            return ir.WalkResult.ADVANCE

        for name, function in _functions(module).items():
            if name.removeprefix(_BEFORE) not in self.kernels:
                walk(function, visit)
        return found


def _functions(module: ir.Module) -> dict[str, ir.Operation]:
    """The functions with a body, by name."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "llvm.func"]
    return {ir.StringAttr(op.attributes["sym_name"]).value: op for op in functions if op.regions[0].blocks}


def _callee(call: ir.Operation) -> str:
    """What a call calls; empty where that is a pointer."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value if "callee" in call.attributes else ""


def _type(function: ir.Operation) -> str:
    return str(function.attributes["function_type"])
