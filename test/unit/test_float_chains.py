"""Activations as chains of float ops: what is written is what is found, and means what the reference says."""

from collections.abc import Callable

import numpy as np
import pytest
from quantized_layers import clamp

import qdialect
from qdialect.arithmetic import Activation, activate
from qdialect.arithmetic.activations import STAGE_ACTIVATIONS
from qdialect.dialect.f32_ops import IN_FLOAT64
from qdialect.ir._mlir import arith, ir
from qdialect.passes.float_chains import build_activation, match_activation, uniform_constant
from qdialect.passes.matching import producer
from qdialect.reference.interpreter import run

SOURCE = "func.func @main(%x: tensor<6x50xf32>) -> tensor<6x50xf32> {\n  return %x : tensor<6x50xf32>\n}"


def module_of(body: Callable[[ir.Value], ir.Value]) -> tuple[ir.Module, ir.Value]:
    """A function that returns `body` of its argument, and the value it returns."""
    module = qdialect.parse(SOURCE)
    block = module.body.operations[0].regions[0].blocks[0]
    end = block.operations[0]
    with module.context, ir.InsertionPoint(end), ir.Location.unknown():
        value = body(block.arguments[0])
    end.operation.operands[0] = value
    module.operation.verify()
    return module, value


def arith_operand(value: ir.Value, index: int) -> ir.Value:
    """An operand of the op that computes `value`."""
    op = producer(value)
    assert op is not None
    return op.operation.operands[index]


@pytest.mark.parametrize("activation", STAGE_ACTIVATIONS)
def test_what_is_written_is_found_and_means_the_same(activation: Activation) -> None:
    alpha = 0.1 if activation.has_alpha else 0.0
    module, value = module_of(lambda x: build_activation(activation, x, alpha))
    found = match_activation(value)
    assert found is not None
    assert (found.activation, found.alpha, found.is_closed) == (activation, float(np.float32(alpha)), True)
    x = np.random.default_rng(3).normal(size=(6, 50)).astype(np.float32) * 4
    np.testing.assert_array_equal(run(module, [x])[0], activate(activation, alpha, x))


def test_a_function_that_is_evaluated_in_float64_is_no_stage() -> None:
    _module, value = module_of(lambda x: build_activation(Activation.TANH, x))
    op = producer(value)
    assert op is not None
    assert match_activation(value) is not None
    op.operation.attributes[IN_FLOAT64] = ir.UnitAttr.get(op.context)
    assert match_activation(value) is None


def test_operands_of_sums_and_products_may_be_swapped() -> None:
    def swapped(x: ir.Value) -> ir.Value:
        ramp = clamp(arith.addf(uniform_constant(3.0, x.type), x), 0.0, 6.0)
        return arith.divf(arith.mulf(ramp, x), uniform_constant(6.0, x.type))

    _module, value = module_of(swapped)
    found = match_activation(value)
    assert found is not None
    assert found.activation is Activation.HARDSWISH


def test_other_constants_and_other_orders_are_other_functions() -> None:
    def wider(x: ir.Value) -> ir.Value:
        ramp = clamp(arith.addf(x, uniform_constant(3.0, x.type)), 0.0, 6.5)
        return arith.divf(arith.mulf(x, ramp), uniform_constant(6.0, x.type))

    def divided_first(x: ir.Value) -> ir.Value:
        return arith.mulf(x, build_activation(Activation.HARDSIGMOID, x))

    for body in (wider, divided_first):
        _module, value = module_of(body)
        assert match_activation(value) is None


def test_a_step_that_others_use_leaves_the_chain_open() -> None:
    _module, value = module_of(lambda x: arith.addf(x, build_activation(Activation.TANH, x)))
    found = match_activation(arith_operand(value, 1))
    assert found is not None
    assert not found.is_closed
