"""Products of a tensor and one that repeats, on every kind of CPU that this machine executes, against the reference."""

from typing import Any

import pytest
from compiled_ops import EIGHT_BIT, drawn_inputs, ends, tensor
from graphs import graph
from together import check_compiled

from qdialect.arithmetic import Rounding
from qdialect.dialect import MulOp, build
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference import interpreter
from qdialect.targets import TARGETS, host_features

KINDS = [name if kind.features <= host_features() else f"{name},portable" for name, kind in TARGETS.items()]


def products(element: str, channels: int, extent: int = 5) -> ir.Module:
    """Of a tensor with one number for each of its channels and images, and one that is all the same."""
    types = [tensor((2, extent, 3, channels), element), tensor((2, 1, 1, channels), element), tensor((1,), element)]
    low, high = ends(element)
    base: dict[str, Any] = {
        "lhs_scale": 0.03,
        "rhs_scale": 1 / 256,
        "output_scale": 0.021,
        "output_min": low,
        "output_max": high,
    }

    def body(data: ir.Value, factor: ir.Value, scalar: ir.Value) -> list[ir.Value]:
        cases: list[tuple[tuple[ir.Value, ir.Value], int, int, int, dict[str, Any]]] = [
            ((data, factor), low + 14, low, low + 12, {"rounding": Rounding.FIXED32_DOUBLE}),
            ((factor, data), low + 100, low + 3, high - 5, {"rounding": Rounding.FIXED32_DOUBLE}),
            ((data, factor), high, high, low, {"rounding": Rounding.FIXED64_NEAREST, "output_max": high - 9}),
            ((scalar, data), low, low + 128, low + 128, {"rounding": Rounding.FIXED64_UP}),
            ((data, scalar), low + 7, low + 9, low + 11, {"rounding": Rounding.F32_RNE_ZP_FIRST}),
        ]
        return [
            build(
                MulOp,
                *operands,
                element=element,
                **(base | rest),
                lhs_zero_point=lhs,
                rhs_zero_point=rhs,
                output_zero_point=own,
            ).output
            for operands, lhs, rhs, own, rest in cases
        ]

    return graph(types, body)


@pytest.mark.parametrize("element", EIGHT_BIT)
@pytest.mark.parametrize("channels", [1, 5, 64, 87, 144])
def test_products_have_the_bits_of_the_reference_on_every_kind(element: str, channels: int) -> None:
    module = products(element, channels)
    inputs = drawn_inputs(module)
    wanted = interpreter.run(module, inputs)
    for name in KINDS:
        check_compiled(module, name, [inputs], [wanted])


def test_factors_are_computed_once_where_multiply_adds_are_fused() -> None:
    module = products("ui8", 64)
    text = {name: str(lower(module, TARGETS[name], Phase.X86).module) for name in ("avx2", "sse4.1")}
    assert text["avx2"].count("call @") > text["sse4.1"].count("call @")
    assert "math.fma" in text["avx2"]
    assert "math.fma" not in text["sse4.1"]
    few = str(lower(products("ui8", 64, 1), TARGETS["avx2"], Phase.X86).module)
    assert few.count("call @") < text["avx2"].count("call @")
