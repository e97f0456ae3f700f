"""Sums of f32 values are one integer op, whatever the scales, and are exact with PyTorch's float32 sums."""

from typing import Any

import numpy as np
import pytest
import torch
from graphs import graph, op_names, ops_of, run_both

from qdialect.arithmetic import AddArithmetic, BinaryQuantization, QuantParams
from qdialect.arithmetic.elementwise import add
from qdialect.arithmetic.profiles import ONNX_REFERENCE, PYTORCH, Profile
from qdialect.dialect import DequantizeOp, QuantizeOp, build
from qdialect.ir._mlir import arith, ir
from qdialect.passes.raise_qdq import RaiseQdqPass

QUANTIZED = "tensor<16x16xui8>"


def f32_sum(profile: Profile, seed: int) -> ir.Module:
    """Two tensors of drawn scales, dequantized, added and quantized as `profile` does."""
    scales = np.random.default_rng(seed).uniform(0.005, 0.1, 3).astype(np.float32)

    def body(x: ir.Value, y: ir.Value) -> ir.Value:
        left, right = (
            build(DequantizeOp, quantized, element="f32", scales=(float(scale),), zero_points=(point,)).output
            for quantized, scale, point in ((x, scales[0], 3), (y, scales[1], 201))
        )
        total = arith.addf(left, right)
        parameters: dict[str, Any] = {"scales": (float(scales[2]),), "zero_points": (97,), **profile.quantization}
        return build(QuantizeOp, total, element="ui8", **parameters).output

    return graph([QUANTIZED, QUANTIZED], body)


@pytest.mark.parametrize("profile", [ONNX_REFERENCE, PYTORCH], ids=lambda profile: profile.name)
def test_every_sum_is_an_add(profile: Profile) -> None:
    found = set[str]()
    for seed in range(8):
        after = run_both(f32_sum(profile, seed), RaiseQdqPass())
        assert op_names(after) == ["qnn.add"]
        found.add(ops_of(after, "qnn.add")[0].arithmetic)
    # Where it never differs for the scales at hand, ONNX Runtime's sum is found first.
    assert found == {AddArithmetic.FLOAT_ONCE, profile.addition}


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_pytorch_adds_the_same() -> None:
    left, right, output = QuantParams(0.0371, 3), QuantParams(0.0123, 201), QuantParams(0.0449, 97)
    rows, columns = np.meshgrid(np.arange(256), np.arange(256), indexing="ij")
    quantization = BinaryQuantization(left, right, output, (0, 255))
    found = add(rows, columns, quantization, PYTORCH.addition, PYTORCH.rounding, PYTORCH.multiplier)
    first, second = (
        (torch.tensor(quantized) - side.zero_point).to(torch.float32) * side.scale
        for quantized, side in ((rows, left), (columns, right))
    )
    wanted = torch.quantize_per_tensor(first + second, output.scale, output.zero_point, torch.quint8).int_repr()
    np.testing.assert_array_equal(found, wanted.numpy())
