"""The activations' formulas against PyTorch's CPU kernels: equal quantized values, whatever the last bits of floats."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from tolerances import assert_within, tolerance_of
from torch.nn import functional

from qdialect.arithmetic import Activation, Rounding, Scaling, activate, requantize_f32
from qdialect.arithmetic.activations import STAGE_ACTIVATIONS

ALPHA = 0.1
KERNELS: dict[Activation, Callable[[torch.Tensor], torch.Tensor]] = {
    Activation.LEAKY_RELU: lambda x: functional.leaky_relu(x, ALPHA),
    Activation.ELU: lambda x: functional.elu(x, ALPHA),
    Activation.HARDSWISH: functional.hardswish,
    Activation.HARDSIGMOID: functional.hardsigmoid,
    Activation.SIGMOID: torch.sigmoid,
    Activation.SILU: functional.silu,
    Activation.TANH: torch.tanh,
    Activation.GELU: functional.gelu,
    Activation.GELU_TANH: lambda x: functional.gelu(x, approximate="tanh"),
}
# Steps of arithmetic alone, in the same order: the same float32 numbers.
SAME_FLOATS = (Activation.LEAKY_RELU, Activation.HARDSWISH, Activation.HARDSIGMOID)


def test_every_activation_has_a_kernel() -> None:
    assert set(KERNELS) == set(STAGE_ACTIVATIONS)


@pytest.mark.parametrize("activation", KERNELS)
def test_values_are_those_of_pytorch(activation: Activation) -> None:
    x = (np.random.default_rng(1).normal(size=1 << 17) * 4).astype(np.float32)
    found = activate(activation, ALPHA, x)
    wanted = KERNELS[activation](torch.tensor(x)).numpy()
    how = (0.03, 5, -128, 127, Rounding.F32_RNE_ZP_LAST, Scaling.RECIPROCAL)
    name = activation.removesuffix("_tanh")
    tolerance = tolerance_of(".pt2", f"aten.{name}.default")
    assert_within(requantize_f32(found, *how), requantize_f32(wanted, *how), tolerance)
    if activation in SAME_FLOATS:
        np.testing.assert_array_equal(found, wanted)
