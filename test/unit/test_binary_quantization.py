"""The quantization of a binary op as one value: what it gives an op is what the op has."""

import numpy as np
import pytest

from qdialect.arithmetic import AddArithmetic, BinaryQuantization, QuantParams, Scaling, SubArithmetic
from qdialect.arithmetic.elementwise import scale_of_squared_difference, scale_of_sum
from qdialect.dialect import AddOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.elementwise_ops import binary_attributes
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context

LHS, RHS, OUTPUT = QuantParams(0.5, 3), QuantParams(0.125, -7), QuantParams(2.0, 11)


def test_an_op_has_the_quantization_it_is_built_with() -> None:
    quantization = BinaryQuantization(LHS, RHS, OUTPUT, (-100, 99))
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            x = constant(np.zeros((1, 4), np.int8))
            op = build(AddOp, x, x, element="i8", **binary_attributes(quantization))
        assert op.quantization == quantization


@pytest.mark.parametrize("scaling", Scaling)
def test_each_scaling_has_a_sum_of_f32_values(scaling: Scaling) -> None:
    assert scaling.f32_sum.f32_scaling is scaling


@pytest.mark.parametrize("arithmetic", SubArithmetic)
def test_a_difference_in_integers_is_a_sum_with_the_other_sign(arithmetic: SubArithmetic) -> None:
    wanted = None if arithmetic is SubArithmetic.FLOAT else AddArithmetic(arithmetic.value)
    assert arithmetic.addition is wanted


def test_operands_meet_at_twice_the_larger_scale() -> None:
    scale = scale_of_sum(LHS, RHS, OUTPUT)
    assert (scale.lhs, scale.rhs, scale.output) == (0.5, 0.125, 1.0 / (2**20 * 2.0))
    square = scale_of_squared_difference(LHS, RHS, OUTPUT)
    assert (square.lhs, square.rhs, square.output) == (0.5, 0.125, 1.0 / (2**14 * 2.0))
