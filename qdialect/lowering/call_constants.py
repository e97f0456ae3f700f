"""Integers that every call of a kernel gives it alike become constants of the kernel.

A zero point of 0 needs no subtraction, and bounds of 0 and 255 are those of a saturating store: what a parameter hides,
no pattern can use. Scales stay parameters, for which no instruction is chosen: kernels that differ in nothing else are
shared by networks.
"""

from __future__ import annotations

from qdialect._mlir import arith, ir
from qdialect.lowering.functions import functions, has_body, name_of, ops_named


def propagate_call_constants(module: ir.Module) -> None:
    """Replace in each kernel the integer and index parameters that are the same constant in all of its calls.

    The parameters stay, unused. A function that others than those of `module` may call keeps its own.
    """
    private = {name_of(function): function for function in functions(module) if _is_private(function)}
    found: dict[str, dict[int, ir.IntegerAttr]] = {}
    for call in ops_named(module, "func.call"):
        callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        constants = _constants(call)
        known = found.setdefault(callee, constants)
        found[callee] = {index: one for index, one in known.items() if index in constants and constants[index] == one}
    with module.context, ir.Location.unknown():
        for name in (name for name in found if name in private):
            for index, constant in found[name].items():
                _replace(private[name], index, constant)


def _is_private(function: ir.Operation) -> bool:
    attributes = function.attributes
    visibility = attributes.get("sym_visibility")
    return has_body(function) and isinstance(visibility, ir.StringAttr) and visibility.value == "private"


def _constants(call: ir.Operation) -> dict[int, ir.IntegerAttr]:
    """The operands that are integer constants, by index."""
    found: dict[int, ir.IntegerAttr] = {}
    for index, operand in enumerate(call.operands):
        owner = operand.owner
        if isinstance(owner, ir.Block) or owner.name != "arith.constant":
            continue
        value = owner.attributes["value"]
        if isinstance(value, ir.IntegerAttr):
            found[index] = value
    return found


def _replace(kernel: ir.Operation, index: int, constant: ir.IntegerAttr) -> None:
    block = kernel.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(block):
        block.arguments[index].replace_all_uses_with(arith.constant(constant.type, constant))
