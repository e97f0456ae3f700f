"""Shifts and leading zeros of integers: compiled they are the reference, which is that of Python's integers."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import check, tensor
from graphs import graph
from numpy.typing import NDArray
from together import variants_together

from qdialect.ir._mlir import ir
from qdialect.reference import interpreter

Array = NDArray[Any]

_WIDTHS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}


def numbers(bits: int) -> Array:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    near = [low, low + 1, -77, -2, -1, 0, 1, 2, 3, 100, high - 1, high]
    return np.array(near, dtype=f"int{bits}")


def shifted(name: str, x: int, amount: int, bits: int) -> int:
    """By the unsigned value of the amount: from the width on every bit is gone, or is the sign."""
    amount = min(amount % (1 << bits), bits)
    unsigned = x % (1 << bits)
    wide = {"arith.shli": unsigned << amount, "arith.shrui": unsigned >> amount, "arith.shrsi": x >> amount}[name]
    return (wide + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def of_two(name: str, element: str, count: int) -> ir.Module:
    def body(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        return ir.Operation.create(name, results=[lhs.type], operands=[lhs, rhs]).results[0]

    return graph([tensor((count,), element)] * 2, body)


@variants_together
@pytest.mark.parametrize("name", ["arith.shli", "arith.shrsi", "arith.shrui"])
@pytest.mark.parametrize("element", list(_WIDTHS))
def test_shifts(name: str, element: str) -> None:
    bits = _WIDTHS[element]
    amounts = np.array([0, 1, 2, bits // 2, bits - 1, bits, bits + 1, 100, -1, -bits], dtype=f"int{bits}")
    x, amount = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(numbers(bits), amounts))
    module = of_two(name, element, x.size)
    wanted = [shifted(name, a, b, bits) for a, b in zip(x.tolist(), amount.tolist(), strict=True)]
    assert interpreter.run(module, [x, amount])[0].tolist() == wanted
    check(module, [x, amount])


@variants_together
@pytest.mark.parametrize("element", list(_WIDTHS))
def test_leading_zeros(element: str) -> None:
    bits = _WIDTHS[element]
    x = np.concatenate([numbers(bits), np.array([1 << i for i in range(bits - 1)], dtype=f"int{bits}")])

    def body(value: ir.Value) -> ir.Value:
        return ir.Operation.create("math.ctlz", results=[value.type], operands=[value]).results[0]

    module = graph([tensor(x.shape, element)], body)
    wanted = [bits - (value % (1 << bits)).bit_length() for value in x.tolist()]
    assert interpreter.run(module, [x])[0].tolist() == wanted
    check(module, [x])


def test_leading_zeros_of_a_bit() -> None:
    def body(value: ir.Value) -> ir.Value:
        return ir.Operation.create("math.ctlz", results=[value.type], operands=[value]).results[0]

    module = graph([tensor((2,), "i1")], body)
    assert interpreter.run(module, [np.array([False, True])])[0].tolist() == [True, False]
    check(module, [np.array([False, True])])
