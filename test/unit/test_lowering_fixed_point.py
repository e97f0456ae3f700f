"""Functions of fixed-point numbers: of every argument, compiled and near the real function."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import check, tensor
from graphs import graph
from numpy.typing import NDArray
from together import variants_together

from qdialect.arithmetic.fixed_point_functions import MAX_INTEGER_BITS, FixedPointFunction, fixed_point_table
from qdialect.dialect import build
from qdialect.dialect.i16_ops import FixedPointFunctionOp, I16LayerNormOp
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

EVERY = np.arange(-(2**15), 2**15).astype(np.int16)


def real(function: FixedPointFunction, x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.tanh(x) if function is FixedPointFunction.TANH else 1 / (1 + np.exp(-x))


def module_of(function: FixedPointFunction, integer_bits: int, shape: tuple[int, ...]) -> ir.Module:
    how: dict[str, Any] = {"function": function, "integer_bits": integer_bits}
    return graph([tensor(shape, "i16")], lambda x: build(FixedPointFunctionOp, x, element="i16", **how).output)


@pytest.mark.parametrize("integer_bits", range(MAX_INTEGER_BITS + 1))
@pytest.mark.parametrize("function", FixedPointFunction)
def test_tables_are_near_the_real_function(function: FixedPointFunction, integer_bits: int) -> None:
    x = EVERY.astype(np.float64) * 2.0 ** (integer_bits - 15)
    found = fixed_point_table(function, integer_bits) * 2.0**-15
    assert np.abs(found - real(function, x)).max() < 4e-4


@pytest.mark.parametrize("function", FixedPointFunction)
def test_every_argument_compiled(function: FixedPointFunction) -> None:
    module = module_of(function, 3, EVERY.shape)
    wanted = interpreter.run(module, [EVERY])[0]
    np.testing.assert_array_equal(wanted, fixed_point_table(function, 3))
    np.testing.assert_array_equal(compile_module(module)(EVERY), wanted)


@variants_together
@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 16), (1, 2, 3, 7), (70,)])
def test_shapes(shape: tuple[int, ...]) -> None:
    check(module_of(FixedPointFunction.TANH, 4, shape))


@variants_together
@pytest.mark.parametrize(
    ("shape", "scale"), [((5,), 0.01), ((3, 16), 2.0**-15), ((2, 3, 33), 3e-5), ((2, 1), 1e-7), ((3, 4), 2.0**30)]
)
def test_layer_norm(shape: tuple[int, ...], scale: float) -> None:
    """Rows of any numbers, of the extreme ones, and of one number alone, whose variance is zero."""
    how: dict[str, Any] = {"scale": scale, "variance_guard": 7}

    def body(x: ir.Value, weight: ir.Value, bias: ir.Value) -> ir.Value:
        return build(I16LayerNormOp, x, weight, bias, element="i16", **how).output

    last = shape[-1:]
    module = graph([tensor(shape, "i16"), tensor(last, "i16"), tensor(last, "i32")], body)
    random = np.random.default_rng(sum(shape))
    weight = random.integers(-(2**15), 2**15, last).astype(np.int16)
    bias = random.integers(-(2**20), 2**20, last).astype(np.int32)
    drawn = random.integers(-3000, 3000, shape).astype(np.int16)
    ends = np.where(drawn < 0, -(2**15), 2**15 - 1).astype(np.int16)
    check(module, *([values, weight, bias] for values in (drawn, ends, np.full(shape, 5, np.int16))))
