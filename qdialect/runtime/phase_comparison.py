"""Runs every phase of a compilation on the same arrays, and finds where a phase first differs.

That is an op of the network, or a kernel call of the program."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO

import numpy as np

from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.ir import context
from qdialect.ir._mlir import ir, ops_in
from qdialect.ir.context import key_of, location_of, names_of
from qdialect.ir.module_text import Printing
from qdialect.lowering.ir import lowered
from qdialect.lowering.ir.lowered import Phase, phase_of
from qdialect.lowering.pipeline.phases import lower, target_of, threads_of
from qdialect.lowering.qnn_to_linalg.to_linalg import main_function
from qdialect.lowering.x86_to_llvm.plain_code import linalg_to_plain_loops, vector_to_plain_code
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter
from qdialect.runtime.base import empty
from qdialect.runtime.comparison import Difference, differing_bits, first_difference
from qdialect.runtime.compiler import CompiledExecutable, check_target
from qdialect.support.interface import KERNEL, Array
from qdialect.targets import Target


@dataclass(frozen=True)
class PhaseResult:
    """The results of a phase, compared with those of the first phase."""

    phase: Phase
    differing: int
    """Elements of all outputs whose bits differ."""
    elements: int
    first: Difference | None
    """The first of them."""
    node: Node | None = None
    """Of the first phase that differs: the first op of the fused network whose value differs, or the first kernel."""


def compare_phases(
    module: ir.Module,
    inputs: Sequence[Array],
    *,
    target: str | Target = "host",
    threads: int = 1,
    progress: Callable[[PhaseResult], None] = lambda result: None,
) -> tuple[PhaseResult, ...]:
    """Run `module` at its own phase and at each one after it, and compare the outputs of each with those of the first.

    The text of each phase is what runs: each module is printed and parsed before it is run and lowered further.
    `progress` gets each result as soon as it is there. Raises `CompileError` for a module that cannot be lowered or a
    target that this CPU cannot run, and `InputError` for arrays that do not fit.
    """
    chosen, count = target_of(module, target), threads_of(module, threads)
    start = phase_of(module)
    modules: dict[Phase, ir.Module] = {}
    results: list[PhaseResult] = []
    expected: tuple[Array, ...] = ()
    current = module
    for phase in [start, *start.up_to(Phase.LLVM)]:
        wanted = count if phase.number >= Phase.VECTOR.number else 1
        current = _reread(lower(current, chosen, phase, threads=wanted).module)
        modules[phase] = current
        found = RUNS[phase].run(current, inputs)
        expected = expected or found
        result = _compared(phase, _names(module, len(found)), expected, found)
        if result.differing and not any(earlier.differing for earlier in results):
            node = first_node(modules, phase, inputs, chosen, wanted) or first_kernel(modules, phase, inputs)
            result = replace(result, node=node)
        progress(result)
        results.append(result)
    return tuple(results)


def _reread(module: ir.Module) -> ir.Module:
    return context.parse(Printing(enable_debug_info=True).text(module), context.make_context())


def _names(module: ir.Module, count: int) -> tuple[str, ...]:
    """The names of the outputs."""
    if phase_of(module) is Phase.QNN:
        return tuple(port.name for port in lowered.ports(main_function(module), "res"))[:count]
    return tuple(port.name for port in lowered.read(module).outputs)


def _compared(phase: Phase, names: Sequence[str], expected: Sequence[Array], found: Sequence[Array]) -> PhaseResult:
    pairs = list(zip(names, expected, found, strict=True))
    masks = [differing_bits(wanted, got) for _, wanted, got in pairs]
    firsts = (first_difference(name, wanted, got) for name, wanted, got in pairs)
    first = next((one for one in firsts if one is not None), None)
    return PhaseResult(phase, sum(int(mask.sum()) for mask in masks), sum(mask.size for mask in masks), first)


# How a module is run at each phase, with as few later steps of the lowering as possible.


@dataclass(frozen=True)
class PhaseRun:
    """How a module at some phase is run."""

    means: str
    """A short description of the runner."""
    run: Callable[[ir.Module, Sequence[Array]], tuple[Array, ...]]
    code: Callable[[ir.Module], ir.Module] | None = None
    """The functions of the LLVM dialect that are run; None where NumPy computes."""


def _reference(module: ir.Module, inputs: Sequence[Array]) -> tuple[Array, ...]:
    copy = context.copy(module)
    with copy.context:
        # The interpreter runs a function of this name.
        main_function(copy).attributes["sym_name"] = ir.StringAttr.get("main")
    return interpreter.run(copy, inputs)


def _converted(convert: Callable[[ir.Module], None]) -> Callable[[ir.Module], ir.Module]:
    def code(module: ir.Module) -> ir.Module:
        copy = context.copy(module)
        convert(copy)
        return copy

    return code


def _target_code(module: ir.Module) -> ir.Module:
    target = target_of(module, "host")
    check_target(target)
    return lower(module, target, threads=lowered.read(module).threads).module


def _compiled(means: str, code: Callable[[ir.Module], ir.Module]) -> PhaseRun:
    return PhaseRun(means, lambda module, inputs: called(code(module), inputs), code)


def called(module: ir.Module, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The results of ``main`` of a module at phase `llvm`."""
    found = lowered.read(module)
    states = {one.output: inputs[one.argument] for one in found.states}
    arguments = {one.argument for one in found.states}
    read = [array for index, array in enumerate(inputs) if index not in arguments]
    code = CompiledExecutable(found)
    written = [np.array(states[index]) if index in states else empty(port) for index, port in enumerate(code.outputs)]
    code.run(read, written)
    return tuple(written)


RUNS: Mapping[Phase, PhaseRun] = {
    Phase.QNN: PhaseRun("NumPy reference", _reference),
    Phase.FUSED: PhaseRun("NumPy reference", _reference),
    Phase.LINALG: _compiled("loops over scalars", _converted(linalg_to_plain_loops)),
    Phase.VECTOR: _compiled("vector code for any CPU", _converted(vector_to_plain_code)),
    Phase.X86: _compiled("the target's instructions", _target_code),
    Phase.LLVM: _compiled("machine code of the text", _target_code),
}
"""How each phase is run."""


# Finds the first op of a network that a phase computes differently.
#
# The network is compiled again with the value of every op among its results, and these are compared in order.


@dataclass(frozen=True)
class Node:
    """An op of the fused network whose value differs, or a kernel call that makes an output differ."""

    op: str
    """Empty for a kernel call."""
    name: str
    """The names of the model's nodes that it computes, or its location in the text."""
    kernel: str
    """The function that computes it at the phases from `linalg` on; empty before, and where several ops have one."""
    difference: Difference


def first_node(
    modules: Mapping[Phase, ir.Module], phase: Phase, inputs: Sequence[Array], target: Target, threads: int
) -> Node | None:
    """The first op whose value differs at `phase`; None where a network that returns all values computes them alike.

    `modules` are the network at every phase as far as `phase`. None also where they begin after phase `fused`: there
    is no graph then.
    """
    if Phase.FUSED not in modules:
        return None
    if phase is Phase.FUSED:
        return _fused_node(modules[Phase.QNN], modules[Phase.FUSED], inputs)
    layered, operations = _with_all_values(modules[Phase.FUSED])
    lowered = lower(layered, target, phase, threads=threads).module
    found = RUNS[phase].run(lowered, inputs)
    expected = RUNS[Phase.FUSED].run(layered, inputs)
    first = len(expected) - len(operations)
    for op, wanted, got in zip(operations, expected[first:], found[first:], strict=True):
        difference = first_difference("value", wanted, got)
        if difference:
            return Node(op.name, title(op.location), _kernel(modules[Phase.LINALG], op), difference)
    return None


def _with_all_values(module: ir.Module) -> tuple[ir.Module, list[ir.Operation]]:
    """A network that returns the value of each of its ops too, and those ops."""
    copy = context.copy(module)
    function = main_function(copy)
    *operations, last = [op.operation for op in function.regions[0].blocks[0].operations]
    computing = [op for op in operations if op.name not in CONSTANT_OPS]
    return_also(function, last, [op.results[0] for op in computing])
    return copy, computing


def _fused_node(graph: ir.Module, fused: ir.Module, inputs: Sequence[Array]) -> Node | None:
    """The first op of the fused network that differs from the last op of the graph that it stands for."""
    known: dict[Hashable, Array] = {}

    def remember(op: ir.Operation, value: Array) -> None:
        known[key_of(op.location)] = value

    nodes: list[Node] = []

    def compare(op: ir.Operation, value: Array) -> None:
        parts = [known[key] for key in map(key_of, _parts(op.location)) if key in known]
        alike = [part for part in parts if part.shape == value.shape and part.dtype == value.dtype]
        differences = [first_difference("value", part, value) for part in alike]
        if differences and all(differences) and op.name not in CONSTANT_OPS:
            nodes.extend(Node(op.name, title(op.location), "", d) for d in differences[:1] if d)

    interpreter.run(graph, inputs, observe=remember)
    interpreter.run(fused, inputs, observe=compare)
    return nodes[0] if nodes else None


def _parts(location: ir.Location) -> list[ir.Location]:
    return list(location.locations) if isinstance(location, ir.FusedLoc) else [location]


def title(location: ir.Location) -> str:
    """The names of the model's nodes at a location, or where it stands in a text."""
    names = names_of(location)
    file, line, column = location_of(location)
    return f"'{', '.join(names)}'" if names else f"at {file}:{line}:{column}"


def _kernel(module: ir.Module, op: ir.Operation) -> str:
    """The function that computes `op` at phase `linalg`: that of the last call at its location."""
    calls = [one for one in ops_in(module.operation) if one.name == "func.call"]
    named = [_callee(call) for call in calls if key_of(call.location) == key_of(op.location)]
    return named[-1] if named else ""


# Finds the first kernel call of a program that a phase computes differently from the phase before.
#
# Both phases end as functions of pointers, so that one program can call kernels of either: the first calls are those of
# the phase that differs, the others those of the phase before, and a binary search finds the boundary.

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
    """A program of a phase that also contains the kernels of the phase before, renamed."""

    module: ir.Module
    kernels: frozenset[str]
    """The kernels that both phases have."""

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
        """The number of calls that can be of either phase."""
        return len(self._calls(self.module))

    def run(self, count: int, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs if the calls from `count` on are of the phase before."""
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
        callers = [one for name, one in _functions(module).items() if name.removeprefix(_BEFORE) not in self.kernels]
        inner = (op for caller in callers for op in ops_in(caller))
        return [op for op in inner if op.name == "llvm.call" and _callee(op) in self.kernels]


def _functions(module: ir.Module) -> dict[str, ir.Operation]:
    """The functions with a body, by name."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "llvm.func"]
    return {ir.StringAttr(op.attributes["sym_name"]).value: op for op in functions if op.regions[0].blocks}


def _callee(call: ir.Operation) -> str:
    """The callee of a call; empty for a pointer."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value if "callee" in call.attributes else ""


def _type(function: ir.Operation) -> str:
    return str(function.attributes["function_type"])


# A variant of a network that also returns the values between its layers.


def with_layers(module: ir.Module, attribute: str) -> tuple[ir.Module, tuple[int, ...]]:
    """A fused copy of `module` that returns, after its results, those of every op which has the integer `attribute`.

    Gives that module and the attribute's values, in order: with ``qnn.tensor``, which the .tflite importer sets, the
    numbers of the file's tensors. Fusion comes first, so that the layers are those of the network as it is compiled.
    """
    copy = context.copy(module)
    PassManager("fuse-qnn").run(copy)
    function = main_function(copy)
    operations = [op.operation for op in function.regions[0].blocks[0].operations]
    seen = [op for op in operations if attribute in op.attributes]
    return_also(function, operations[-1], [op.results[0] for op in seen])
    context.verify(copy)
    return copy, tuple(ir.IntegerAttr(op.attributes[attribute]).value for op in seen)


def return_also(function: ir.Operation, last: ir.Operation, values: list[ir.Value]) -> None:
    """Let `function`, which ends in `last`, return `values` after its own results."""
    returned = [*last.operands, *values]
    with ir.InsertionPoint(last), last.location:
        ir.Operation.create("func.return", operands=returned)
    last.erase()
    with function.context:
        inputs = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs
        type_ = ir.FunctionType.get(inputs, [value.type for value in returned])
        function.attributes["function_type"] = ir.TypeAttr.get(type_)
        if "res_attrs" in function.attributes:
            named = list(ir.ArrayAttr(function.attributes["res_attrs"]))
            function.attributes["res_attrs"] = ir.ArrayAttr.get([*named, *[ir.DictAttr.get({})] * len(values)])
