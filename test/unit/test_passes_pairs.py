"""Functions of two tensors become tables where one is a constant, or both are functions of one tensor."""

from typing import Any

import numpy as np
import pytest
from graphs import failures, graph, op_names, run_both
from quantized_layers import SCALE, ZERO_POINT, sigmoid

from qdialect.arithmetic import PairArithmetic, Rounding, SubArithmetic
from qdialect.dialect import AddOp, DivOp, MaximumOp, MinimumOp, MulOp, PreluOp, SquaredDifferenceOp, SubOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.passes.compose_luts import ComposeLutsPass
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.tabulate_unary import TabulateUnaryPass

EVERY = "tensor<16x20xui8>"
PAIRS: list[tuple[Any, dict[str, Any]]] = [
    (AddOp, {}),
    (MulOp, {"rounding": Rounding.FIXED32_DOUBLE}),
    *((SubOp, {"arithmetic": arithmetic}) for arithmetic in SubArithmetic),
    *((DivOp, {"arithmetic": arithmetic}) for arithmetic in PairArithmetic),
    *((PreluOp, {"arithmetic": arithmetic}) for arithmetic in PairArithmetic),
    (MaximumOp, {}),
    (MinimumOp, {}),
    (SquaredDifferenceOp, {}),
]


def pair(op: Any, how: dict[str, Any], lhs: ir.Value, rhs: ir.Value, **changes: Any) -> ir.Value:
    attributes: dict[str, Any] = {
        "lhs_scale": SCALE,
        "lhs_zero_point": ZERO_POINT,
        "rhs_scale": 1 / 256,
        "rhs_zero_point": 0,
        "output_scale": 0.04,
        "output_zero_point": 10,
        "output_min": 3,
        "output_max": 250,
        **how,
        **changes,
    }
    return build(op, lhs, rhs, element="ui8", **attributes).output


@pytest.mark.parametrize(("op", "how"), PAIRS)
def test_with_a_uniform_constant(op: Any, how: dict[str, Any]) -> None:
    def body(x: ir.Value) -> ir.Value:
        return pair(op, how, x, constant(np.full((1,), 200, dtype=np.uint8)))

    assert op_names(run_both(graph([EVERY], body), TabulateUnaryPass())) == ["qnn.lut"]


@pytest.mark.parametrize(("op", "how"), PAIRS)
def test_of_a_tensor_and_a_function_of_it(op: Any, how: dict[str, Any]) -> None:
    after = run_both(graph([EVERY], lambda x: pair(op, how, x, sigmoid(x))), ComposeLutsPass())
    assert op_names(after) == ["qnn.lut"]


def test_a_function_that_two_pairs_use_is_part_of_their_table() -> None:
    """``(x * s) * s`` with s = sigmoid(x): no pair alone has all users of s."""

    def body(x: ir.Value) -> ir.Value:
        gate = sigmoid(x)
        how = {"rounding": Rounding.FIXED32_DOUBLE}
        first = pair(MulOp, how, x, gate, output_scale=SCALE, output_zero_point=ZERO_POINT)
        return pair(MulOp, how, first, gate)

    after = run_both(graph([EVERY], body), ComposeLutsPass())
    assert op_names(after) == ["qnn.lut"]


def test_a_piece_that_others_look_into_stays() -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        gate = sigmoid(x)
        how = {"rounding": Rounding.FIXED32_DOUBLE}
        first = pair(MulOp, how, x, gate, output_scale=SCALE, output_zero_point=ZERO_POINT)
        return [pair(MulOp, how, first, gate), first]

    module = graph([EVERY], body)
    assert any("needs the result of 'qnn.mul' alone" in reason for reason in failures(module, ComposeLutsPass()))


def test_hard_swish_written_out_is_one_table() -> None:
    """Add 3, clamp to 0..6, times x, times 1/6: every step has quantized values of its own."""

    def body(x: ir.Value) -> ir.Value:
        three = constant(np.full((1,), 3, dtype=np.uint8))
        how = {"rounding": Rounding.FIXED32_DOUBLE}
        out = {"output_scale": 6 / 255, "output_zero_point": 0, "output_min": 0, "output_max": 255}
        gate = pair(AddOp, {}, x, three, rhs_scale=1.0, **out)
        product = pair(MulOp, how, x, gate, rhs_scale=6 / 255, output_scale=0.2)
        sixth = constant(np.full((1,), 1, dtype=np.uint8))
        return pair(MulOp, how, product, sixth, lhs_scale=0.2, lhs_zero_point=10, rhs_scale=1 / 6)

    assert op_names(run_both(graph([EVERY], body), FuseQnnPass())) == ["qnn.lut"]
