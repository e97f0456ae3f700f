"""Numbers that every call of a kernel gives it alike become constants of the kernel where they choose instructions.

A zero point of 0 needs no subtraction, bounds of 0 and 255 are those of a saturating store, the smaller of a float and
6 needs no instructions for zeros and NaN, and a division by 6 is two products: what a parameter hides, no pattern can
use. Scales stay parameters, for which no instruction is chosen: kernels that differ in nothing else are shared by
networks.
"""

from __future__ import annotations

from qdialect._mlir import arith, ir
from qdialect.lowering.functions import functions, has_body, name_of, ops_named
from qdialect.quant_math.short_reciprocal import ShortReciprocal

_Constant = ir.IntegerAttr | ir.FloatAttr
_BOUNDS = ("arith.maximumf", "arith.minimumf")
_DIVISION, _DIVISOR = "arith.divf", 1


def propagate_call_constants(module: ir.Module) -> None:
    """Replace in each kernel the integer and index parameters that are the same constant in all of its calls.

    Of those in float32 it replaces bounds, and divisors that have a `ShortReciprocal`.
    The parameters stay, unused. A function that others than those of `module` may call keeps its own.
    """
    private = {name_of(function): function for function in functions(module) if _is_private(function)}
    found: dict[str, dict[int, _Constant]] = {}
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


def _constants(call: ir.Operation) -> dict[int, _Constant]:
    """The operands that are constants, by index."""
    found: dict[int, _Constant] = {}
    for index, operand in enumerate(call.operands):
        owner = operand.owner
        if isinstance(owner, ir.Block) or owner.name != "arith.constant":
            continue
        value = owner.attributes["value"]
        if isinstance(value, _Constant):
            found[index] = value
    return found


def _replace(kernel: ir.Operation, index: int, constant: _Constant) -> None:
    block = kernel.regions[0].blocks[0]
    uses = [(use.owner.operation, use.operand_number) for use in block.arguments[index].uses]
    if isinstance(constant, ir.FloatAttr):
        uses = [(op, number) for op, number in uses if _chooses(op, number, constant)]
    if not uses:
        return
    with ir.InsertionPoint.at_block_begin(block):
        value = arith.constant(constant.type, constant)
    for op, number in uses:
        op.operands[number] = value


def _chooses(op: ir.Operation, number: int, constant: ir.FloatAttr) -> bool:
    """Whether other instructions compute `op` where its operand `number` is `constant`."""
    if op.name in _BOUNDS:
        return True
    is_divisor = (op.name, number) == (_DIVISION, _DIVISOR) and isinstance(constant.type, ir.F32Type)
    return is_divisor and ShortReciprocal.of(constant.value) is not None
