"""How far results may be from those of the framework that they are compared with: one table for tests and for pages.

A quantized value may be `steps` away, and no more than the part `share` of a result may be away at all.  Results in f32
have a relative and an absolute bound.  What has no entry is equal in every bit.  `tools/status_page.py` writes these
tables down, and a test sees to it that the tests of front ends compare with nothing else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Tolerance:
    """Of quantized values, and why it has to be."""

    steps: int
    share: float
    reason: str

    def __str__(self) -> str:
        if self == EXACT:
            return "exact"
        step = "step" if self.steps == 1 else "steps"
        return f"{self.steps} {step} in at most {100 * self.share:.3g} % of the elements: {self.reason}"


@dataclass(frozen=True)
class FloatTolerance:
    """Of f32 results: ``|found - wanted| <= absolute + relative * |wanted|``."""

    relative: float
    absolute: float


EXACT = Tolerance(0, 0.0, "")

_TORCH_SUMS = Tolerance(1, 0.001, "PyTorch adds f32 numbers in an order of its own")
_TORCH_FUNCTIONS = Tolerance(
    1, 2 / 2**17, "PyTorch's f32 function may be a unit in the last place away at a tie; a table of 256 is equal"
)
_TORCH_PAIRS = Tolerance(1, 6 / 65536, "an integer sum or product may stand for the f32 one where as few pairs differ")
_TORCH_CELLS = Tolerance(
    1, 0.01, "PyTorch's sums and functions in a cell are a few units of the last place away, which decides ties"
)
_ORT_SUMS = Tolerance(1, 0.05, "ONNX Runtime adds f32 numbers in an order of its own, which decides ties")
_ORT_LEFT_IN_FLOATS = Tolerance(
    1, 0.01, "ONNX Runtime computes in f32 where it has no integer kernel, as for most results with several readers"
)
_ORT_CELLS = Tolerance(
    1, 0.01, "ONNX Runtime's sums and functions in a cell are a few units of the last place away, which decides ties"
)
_ORT_FUNCTIONS = Tolerance(1, 1 / 256, "ONNX Runtime's f32 function may be a unit in the last place away at a tie")

_TORCH = {
    **dict.fromkeys(
        (
            *("aten.conv1d.default", "aten.conv1d.padding", "aten.conv2d.default", "aten.conv2d.padding"),
            *("aten.conv_transpose2d.input", "aten.linear.default", "aten.addmm.default", "aten.mm.default"),
            *("aten.conv3d.default", "aten.conv3d.padding", "aten.avg_pool3d.default"),
            *("aten.bmm.default", "aten.matmul.default", "aten.mean.default", "aten.mean.dim"),
            *("aten.avg_pool2d.default", "aten.adaptive_avg_pool2d.default", "aten.softmax.int"),
            *("aten._softmax.default", "aten.log_softmax.int", "aten._log_softmax.default"),
        ),
        _TORCH_SUMS,
    ),
    **dict.fromkeys(
        (
            *("aten.elu.default", "aten.exp.default", "aten.gelu.default", "aten.rsqrt.default"),
            *("aten.sigmoid.default", "aten.silu.default", "aten.tanh.default"),
        ),
        _TORCH_FUNCTIONS,
    ),
    **dict.fromkeys(("aten.add.Tensor", "aten.mul.Tensor"), _TORCH_PAIRS),
    **dict.fromkeys(("aten.gru.input", "aten.lstm.input"), _TORCH_CELLS),
}
_ONNX = {
    **dict.fromkeys(
        (
            *("ConvTranspose", "GroupNormalization", "InstanceNormalization", "LayerNormalization"),
            *("LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Pow", "RMSNormalization", "ReduceMean"),
            *("ReduceSum", "SimplifiedLayerNormalization", "com.microsoft.GroupNorm"),
            *("com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization"),
        ),
        _ORT_SUMS,
    ),
    **dict.fromkeys(("Conv", "Gemm", "MatMul"), _ORT_LEFT_IN_FLOATS),
    **dict.fromkeys(("GRU", "LSTM", "RNN", "com.microsoft.DynamicQuantizeLSTM"), _ORT_CELLS),
    **dict.fromkeys(
        (
            *("Attention", "com.microsoft.Attention", "com.microsoft.FusedMatMul", "com.microsoft.MultiHeadAttention"),
            *("com.microsoft.QAttention", "com.microsoft.TransposeMatMul"),
        ),
        _ORT_SUMS,
    ),
    **dict.fromkeys(
        (
            *("Celu", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "Log", "Mish", "Selu", "Softplus"),
            *("Softsign", "Swish", "Tanh", "com.microsoft.BiasGelu", "com.microsoft.FastGelu", "com.microsoft.Gelu"),
            "com.microsoft.QuickGelu",
        ),
        _ORT_FUNCTIONS,
    ),
}
TOLERANCES: Mapping[str, Mapping[str, Tolerance]] = {".pt2": _TORCH, ".onnx": _ONNX, ".tflite": {}, ".mlir": {}}
"""By format and operator; `EXACT` is left out."""

FLOATS: Mapping[str, FloatTolerance] = {
    "pair": FloatTolerance(1e-6, 0),
    "function": FloatTolerance(1e-6, 1e-7),
    "formula": FloatTolerance(2e-6, 2e-6),
    "gelu": FloatTolerance(0, 4.8e-7),
    "softmax": FloatTolerance(2e-6, 0),
    "sum": FloatTolerance(1e-5, 0),
    "layer": FloatTolerance(1e-5, 1e-5),
    "cell": FloatTolerance(0, 2e-6),
    "network": FloatTolerance(0, 1e-6),
}
"""Of f32 results, by what gives them; a network's results are divided by the largest of them."""


def tolerance_of(suffix: str, operator: str) -> Tolerance:
    """The bound of results of `operator` of the format `suffix`."""
    return TOLERANCES[suffix].get(operator, EXACT)


def loosest(suffix: str, operators: Iterable[str]) -> Tolerance:
    """Of a graph of several operators, the tolerance of the one that needs most."""
    return max((tolerance_of(suffix, operator) for operator in operators), key=lambda t: t.share, default=EXACT)


def assert_within(found: Array, wanted: Array, tolerance: Tolerance) -> None:
    """Quantized values of one type and shape are as close as `tolerance` says."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    away = np.abs(found.astype(np.int64) - wanted.astype(np.int64))
    count = np.count_nonzero(away)
    assert away.max(initial=0) <= tolerance.steps, f"an element is {away.max()} steps away"
    assert count <= tolerance.share * away.size, f"{count} of {away.size} elements are away"


def assert_bits(found: Array, wanted: Array, title: str = "") -> None:
    """Shape, type and bits are the same, but any NaN is NaN."""
    np.testing.assert_array_equal(found, wanted, err_msg=title, strict=True)
    if wanted.dtype.kind == "f":
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]), f"signs of {title}")


def assert_floats_within(found: Array, wanted: Array, kind: str) -> None:
    """f32 results of one shape are as close as `FLOATS` says of `kind`."""
    tolerance = FLOATS[kind]
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=tolerance.relative, atol=tolerance.absolute)
