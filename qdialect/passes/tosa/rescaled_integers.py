"""RESCALE in 64-bit arithmetic, of which every form can be written: what no requantization has.

``((value - z_i) * multiplier + nudge) >> shift``, plus z_o, clamped.  The nudge is ``2^(shift - 1)``; with DOUBLE_ROUND
and a shift above 31 it is larger by 2^30, smaller for negative values.
"""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.quant_types import storage_type
from qdialect.passes.tosa.conversion import Conversion, flag, mode, result_element
from qdialect.passes.tosa.upstream import (
    apply,
    compare,
    convert,
    filled,
    reshaped,
    resized,
    select,
    spread,
    without_sign,
)

_SECOND_NUDGE, _MAX_SHIFT_OF_ONE = 1 << 30, 31


def is_requantization(conversion: Conversion, op: ir.Operation) -> bool:
    """Whether a ``tosa.rescale`` is a `qnn.requantize`.

    Its parameters must be constants, what it reads or writes as unsigned be bytes, and short multipliers not be rounded
    twice.
    """
    operands = list(op.operands)
    if not all(conversion.is_constant(operand) for operand in operands[1:]):
        return False
    source = element_of(storage_type(operands[0].type))
    sides = (("input_unsigned", source), ("output_unsigned", result_element(op)))
    if any(flag(op, name) and element not in ("i8", "ui8") for name, element in sides):
        return False
    multipliers, shifts = (conversion.array(operands[i], "parameters").ravel() for i in (1, 2))
    rounds_twice = mode(op, "rounding_mode") == "DOUBLE_ROUND" and bool((shifts > _MAX_SHIFT_OF_ONE).any())
    return not rounds_twice or _keeps_second_nudge(multipliers.tolist(), shifts.tolist())


def _keeps_second_nudge(multipliers: list[int], shifts: list[int]) -> bool:
    """Whether multipliers in [2^30, 2^31) with the shifts to them have the same second nudge."""
    for multiplier, shift in zip(multipliers, shifts, strict=True):
        headroom = 31 - multiplier.bit_length()
        if multiplier > 0 and headroom > 0 and shift + headroom > _MAX_SHIFT_OF_ONE:
            return False
    return True


def rescaled_integers(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """The result of a ``tosa.rescale``."""
    data, multiplier, shift, input_zp, output_zp = op.operands
    shape, is_unsigned = shape_of(data.type), flag(op, "input_unsigned")
    value = _wide(conversion, data, shape, is_unsigned)
    offset = apply("arith.subi", value, _wide(conversion, input_zp, shape, is_unsigned))
    scale, amount = (_wide(conversion, operand, shape, is_unsigned=False) for operand in (multiplier, shift))
    nudge = apply("arith.shli", filled(1, amount), apply("arith.subi", amount, 1))
    if mode(op, "rounding_mode") == "DOUBLE_ROUND":
        nudge = apply("arith.addi", nudge, _second_nudge(offset, amount))
    total = apply("arith.addi", apply("arith.muli", offset, scale), nudge)
    writes_unsigned = flag(op, "output_unsigned")
    moved = apply(
        "arith.addi", apply("arith.shrsi", total, amount), _wide(conversion, output_zp, shape, writes_unsigned)
    )
    return _narrow(moved, result_element(op), writes_unsigned)


def _second_nudge(offset: ir.Value, amount: ir.Value) -> ir.Value:
    signed = select(compare("lt", offset, 0), filled(-_SECOND_NUDGE, offset), _SECOND_NUDGE)
    return select(compare("gt", amount, _MAX_SHIFT_OF_ONE), signed, 0)


def _wide(conversion: Conversion, old: ir.Value, shape: tuple[int, ...], is_unsigned: bool) -> ir.Value:
    """An operand as 64-bit integers of the shape of the data; a parameter is one, or one for each channel."""
    value = conversion.value(old)
    if shape_of(value.type) != shape and not shape:
        value = reshaped(value, ())
    is_unsigned = is_unsigned or element_of(value.type).startswith("u")
    return spread(resized(without_sign(value), "i64", is_unsigned=is_unsigned), shape)


def _narrow(value: ir.Value, element: str, is_unsigned: bool) -> ir.Value:
    """Clamped to the range of the result, as signless bits or as an unsigned tensor."""
    bits = element.removeprefix("u")
    width = int(bits[1:])
    is_unsigned = is_unsigned or element.startswith("u")
    low, high = (0, (1 << width) - 1) if is_unsigned else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    narrow = resized(apply("arith.minsi", apply("arith.maxsi", value, low), high), bits)
    return convert("tensor.bitcast", narrow, element) if element.startswith("u") else narrow
