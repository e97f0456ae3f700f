"""CAST between integers, booleans and float32."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of
from qdialect.passes.tosa.conversion import Conversion, converts, result_element
from qdialect.passes.tosa.upstream import apply, compare, convert, resized, select, without_sign


@converts("tosa.cast")
def _cast(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Integers lose high bits or gain the sign; floats go to the nearest integer, ties to even, or to the end.

    NaN, of which TOSA does not speak, becomes 0.
    """
    value, element = conversion.value(op.operands[0]), result_element(op)
    found = element_of(value.type)
    if found == element:
        return value
    if element == "i1":
        return compare("ne", value, 0)
    if found == "f32":
        return _nearest_integer(value, element)
    is_unsigned = found == "i1" or found.startswith("u")
    if element == "f32":
        return convert("arith.uitofp" if is_unsigned else "arith.sitofp", without_sign(value), element)
    return resized(without_sign(value), element, is_unsigned=is_unsigned)


def _nearest_integer(value: ir.Value, element: str) -> ir.Value:
    low, high = ELEMENT_RANGES[element]
    known = select(compare("eq", value, value), value, 0)
    # 2^31 - 1 is no float32: the end is taken once more where integers are exact.
    near = apply("arith.minimumf", apply("arith.maximumf", apply("math.roundeven", known), low), high)
    whole = convert("arith.fptosi", near, "i64")
    return resized(apply("arith.minsi", whole, high), element)
