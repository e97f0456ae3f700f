"""`qnn-to-linalg`: a network becomes kernels over planned memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from qdialect import targets
from qdialect.dialect.type_constraints import TypeConstraint
from qdialect.ir import context
from qdialect.ir._mlir import ir, ops_in
from qdialect.lowering.cost import variants as variant_attributes
from qdialect.lowering.cost.strategy import strategy_of
from qdialect.lowering.ir import lowered, phase_pass
from qdialect.lowering.ir.functions import error_at, has_body
from qdialect.lowering.ir.lowered import Lowered, Phase
from qdialect.lowering.ir.phase_pass import PhasePass, load_kernel_dialects
from qdialect.lowering.qnn_to_linalg.contractions.widened_products import multiplies_stored_pairs
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering
from qdialect.lowering.qnn_to_linalg.program.program import STORAGE_ELEMENTS, Program, dense_storage_of
from qdialect.passes.outlined import extern_functions, is_extern
from qdialect.passes.registry import register
from qdialect.support.heap import return_free_memory
from qdialect.support.interface import State
from qdialect.targets import Target


@register
@dataclass(frozen=True)
class ToLinalgPass(PhasePass):
    """Lower the one function of a `qnn` module to kernels of `linalg` and a `main` that calls them.

    Constants, inputs, outputs and the target are attributes of the module. `target` is the CPU to lower for; with
    `clocked`, `main` writes the cycle counter before each call and at its end. Fuse first, as `fuse-qnn` does: an op
    that is not fused becomes a kernel of its own.
    """

    name: ClassVar[str] = "qnn-to-linalg"
    starts: ClassVar[tuple[Phase, ...]] = (Phase.QNN, Phase.FUSED)
    end: ClassVar[Phase] = Phase.LINALG
    target: str = "host"
    clocked: bool = False

    def lower(self, module: ir.Module) -> None:
        qnn_to_linalg(module, targets.resolve(self.target), self.clocked)
        return_free_memory()
        phase_pass.check_linalg(module)


# qnn -> linalg: a network becomes kernels over planned memory.

_STORABLE = TypeConstraint(tuple(STORAGE_ELEMENTS), may_be_empty=True)


def qnn_to_linalg(module: ir.Module, target: Target, clocked: bool = False) -> None:
    """Lower the one function of a `qnn` module in place; the module's attributes then describe the arguments of `main`.

    With `clocked`, `main` reads the cycle counter around each call. Raises `CompileError` with a note for each op
    without a lowering.
    """
    function = main_function(module)
    results = lowered.results_of_states(function)
    arguments, outputs = lowered.ports(function, "arg"), list(lowered.ports(function, "res"))
    for index, result in results.items():
        outputs[result] = arguments[index]
    variants = variant_attributes.wanted_variants(module, target)
    load_kernel_dialects(module)
    with module.context, ir.Location.unknown():
        program = _program(function, target, variants, results)
        is_apart = partial(multiplies_stored_pairs, program.strategy)
        GraphLowering(function, program, extern_functions(module), states=results, is_apart=is_apart).run()
        states = tuple(State(index, result, _start(program, function, index)) for index, result in results.items())
        text, arena = program.render(clocked)
    # Free the memory of packing now: MLIR's copy of the constants is their third.
    return_free_memory()
    kernels = context.parse_generated(text, module.context, "kernels")
    _locate(kernels, program)
    _replace_body(module, kernels)
    found = Lowered(
        module,
        program.constants(),
        arena,
        tuple(port for index, port in enumerate(arguments) if index not in results),
        tuple(outputs),
        live_bytes=program.live_bytes(),
        weights_bytes=sum(program.packed_weights.values()),
        calls=program.kernel_calls(),
        buffers=program.buffers(),
        kernels=len(program.kernels),
        clocked=clocked,
        states=states,
        externals=tuple((data.offset, data.length) for data in program.externals),
    )
    lowered.write(found, target.name)


def _program(
    function: ir.Operation, target: Target, variants: Mapping[str, str] | None, states: Collection[int]
) -> Program:
    """An empty program with the arrays of `function`; arguments that are `states` are in the arrays of results."""
    block = function.regions[0].blocks[0]
    returned = block.operations[len(block.operations) - 1].operands
    arguments = [value for index, value in enumerate(block.arguments) if index not in states]
    inputs, outputs = ([dense_storage_of(value.type) for value in values] for values in (arguments, returned))
    strategy, location = strategy_of(target), function.location
    return Program(inputs, outputs, strategy, location=location, variants=variants)


def _start(program: Program, function: ir.Operation, argument: int) -> int:
    """Where the first content of a state stands among the constants; -1 for zeros."""
    found = lowered.start_of(function, argument)
    bits = None if found is None else np.ascontiguousarray(found).reshape(-1).view(np.uint8)
    return -1 if bits is None or not bits.any() else program.constant(bits).offset


def _locate(kernels: ir.Module, program: Program) -> None:
    """Set the location of each call, and of each kernel with all of its ops, to that of the model's op."""
    # Behind them stand the declarations of functions of other libraries.
    *functions, main = [op.operation for op in kernels.body.operations if has_body(op.operation)]
    calls = [op.operation for op in main.regions[0].blocks[0].operations if op.operation.name == "func.call"]
    for call, found in zip(calls, program.calls, strict=True):
        _set_locations([call], found.location)
    for number, function in zip(program.kernels.values(), functions, strict=True):
        _set_locations(ops_in(function), program.calls[number].location)


def _set_locations(operations: Sequence[ir.Operation], location: ir.Location | None) -> None:
    for op in operations if location else ():
        op.location = location or op.location


def _replace_body(module: ir.Module, source: ir.Module) -> None:
    for op in list(module.body.operations):
        op.operation.erase()
    for op in list(source.body.operations):
        module.body.append(op.detach_from_parent())


def main_function(module: ir.Module) -> ir.Operation:
    """The function to compile: `main`, or the only one; raises `CompileError`."""
    found = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    functions = [function for function in found if not is_extern(function)]
    named = [op for op in functions if ir.StringAttr(op.attributes["sym_name"]).value == "main"]
    chosen = named or functions
    if len(chosen) != 1:
        message = f"a module must have one function, or one named main, to be compiled, but got {len(functions)}"
        raise error_at([module.operation, *functions][-1].location, message)
    function = chosen[0]
    _check_signature(function)
    blocks = len(function.regions[0].blocks)
    if blocks != 1:
        raise error_at(function.location, f"a function must have one block to be compiled, but got {blocks}")
    return function


def _check_signature(function: ir.Operation) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    for kind, types in (("argument", type_.inputs), ("result", type_.results)):
        for index, found in enumerate(types):
            problem = _STORABLE.problem(found)
            if problem:
                message = f"{kind} {index} of a function must be {problem} to be compiled, but got {found}"
                raise error_at(function.location, message)
