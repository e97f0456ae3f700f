"""PyTorch: its quantized operators one after the other, with FBGEMM or oneDNN behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from qdialect.bench.cases import Array, Case, Session, foreign, session_of
from qdialect.bench.levels import has_fbgemm, target_name
from qdialect.bench.network import LEAKY_SLOPE

# The engine `fbgemm` is what its default `x86` takes for most convolutions; a fused oneDNN operator rounds once, so
# that it is exact only where there is no activation with a rounding of its own.

# Variant: the library, and whether tensors are channels-last.
_VARIANTS: Mapping[str, tuple[str, bool]] = {
    "fbgemm": ("fbgemm", False),
    "fbgemm_nhwc": ("fbgemm", True),
    "onednn": ("onednn", False),
    "onednn_nhwc": ("onednn", True),
    "fused_nhwc": ("fused", True),
}
_PRODUCT_VARIANTS = ("fbgemm", "onednn")
# The fused operator's name for an activation, its numbers, and whether the result has the activation's own scale.
_FUSED: Mapping[str, tuple[str, list[float], bool]] = {
    "none": ("none", [], False),
    "relu": ("relu", [], False),
    "relu6": ("hardtanh", [0.0, 6.0], False),
    "leaky_relu": ("leaky_relu", [LEAKY_SLOPE], True),
    "hardswish": ("hardswish", [], True),
    "swish": ("swish", [], True),
}


def layer_variants(is_convolution: bool, target: str) -> list[str]:
    """How a layer is run at the level of `target`."""
    found = _VARIANTS if is_convolution else _PRODUCT_VARIANTS
    return [variant for variant in found if has_fbgemm(target) or not variant.startswith("fbgemm")]


def _session(function: Callable[[], Any], wanted: Array) -> Session:
    """A function of tensors that are in place."""

    def arrays(found: Any) -> list[Array]:
        result = found.int_repr() if found.is_quantized else found
        return [result.contiguous().numpy().reshape(wanted.shape)]

    return session_of(function, arrays)


class PyTorch:
    """The package `torch`."""

    def __init__(self) -> None:
        self._torch = foreign("torch")
        self._torch.set_num_interop_threads(1)
        self._torch.set_grad_enabled(False)

    def variants(self, case: Case) -> Mapping[str, str]:
        if case.kind == "call":
            return {"leaky_relu": "call_onnx"}
        if not case.parameters:
            return {}
        # Tensors are NCHW in name, whatever their layout in memory.
        return dict.fromkeys(layer_variants("qdq_nhwc" in case.forms, target_name()), "qdq")

    def load(self, case: Case, variant: str, threads: int) -> Session:
        self._torch.set_num_threads(threads)
        if case.kind == "call":
            form = case.forms["call_onnx"]
            source, (wanted,) = self._quantized(form.inputs()[0], 1.0, 0), form.outputs()
            operator = self._torch.ops.quantized.leaky_relu
            return _session(lambda: operator(source, LEAKY_SLOPE, False, 1.0, 0), wanted)
        form = case.forms["qdq"]
        with np.load(case.parameters, allow_pickle=False) as archive:
            layer = _Layer(self._torch, {key: archive[key] for key in archive.files})
        library, channels_last = _VARIANTS[variant]
        (data,) = form.inputs()
        if data.ndim == 2:
            function = layer.product(data, library)
        elif library == "fused":
            function = layer.fused(data)
        else:
            function = layer.convolution(data, library, channels_last)
        return _session(function, form.outputs()[0])

    def _quantized(self, data: Array, scale: float, zero_point: int) -> Any:
        return self._torch._make_per_tensor_quantized_tensor(self._torch.from_numpy(data), scale, zero_point)


class _Layer:
    """A layer's numbers as tensors, and the functions that compute it."""

    def __init__(self, torch: Any, numbers: dict[str, Array]) -> None:
        self._torch = torch
        self._operators = torch.ops.quantized
        self._weight_values = torch.from_numpy(numbers["weights"])
        self._scales = torch.from_numpy(numbers["weight_scales"].astype(np.float64))
        self._source, self._middle, self._result = (
            (float(numbers[f"{name}_scale"]), int(numbers[f"{name}_zero_point"])) for name in "xca"
        )
        bias_scales = self._source[0] * numbers["weight_scales"].astype(np.float64)
        self._bias = torch.from_numpy(numbers["bias"] * bias_scales).float()
        self._padding = [int(numbers["padding"])] * 2
        self._groups = int(numbers["groups"])
        self._clamp, self._activation = str(numbers["clamp"]), str(numbers["activation"])

    def product(self, data: Array, library: str) -> Callable[[], Any]:
        self._torch.backends.quantized.engine = library
        packed = self._operators.linear_prepack(self._weights(), self._bias)
        source, linear, middle = self._quantized(data, False), self._operators.linear, self._middle
        return lambda: linear(source, packed, *middle)

    def convolution(self, data: Array, library: str, channels_last: bool) -> Callable[[], Any]:
        """A convolution and an operator, or two, for its activation."""
        self._torch.backends.quantized.engine = library
        pack = self._operators.conv2d_prepack
        packed = pack(self._weights(), self._bias, [1, 1], self._padding, [1, 1], self._groups)
        source, middle = self._quantized(data, channels_last), self._middle
        convolve = self._operators.conv2d if self._clamp == "none" else self._operators.conv2d_relu
        activate = self._activate()
        return lambda: activate(convolve(source, packed, *middle))

    def fused(self, data: Array) -> Callable[[], Any]:
        """The one operator that oneDNN has for both."""
        torch, operators = self._torch, self._torch.ops.onednn
        source = torch.from_numpy(data).to(memory_format=torch.channels_last)
        values = self._weight_values if self._groups > 1 else self._weight_values.to(memory_format=torch.channels_last)
        shape = ([1, 1], self._padding, [1, 1], self._groups)
        scales = self._scales.float()
        packed = operators.qconv_prepack(values, scales, *self._source, *shape, list(source.shape))
        zeros = torch.zeros(scales.shape, dtype=torch.int64)
        kind = self._clamp if self._activation == "none" else self._activation
        name, numbers, has_own_scale = _FUSED[kind]
        to = self._result if has_own_scale else self._middle
        arguments = (source, *self._source, packed, scales, zeros, self._bias, *shape, *to)
        return lambda: operators.qconv2d_pointwise(*arguments, torch.uint8, name, numbers, "")

    def _activate(self) -> Callable[[Any], Any]:
        operators, result = self._operators, self._result
        match self._activation:
            case "leaky_relu":
                return lambda data: operators.leaky_relu(data, LEAKY_SLOPE, False, *result)
            case "hardswish":
                return lambda data: operators.hardswish(data, *result)
            case "swish":
                return lambda data: operators.mul(data, operators.sigmoid(data, 1 / 256, 0), *result)
            case _:
                return lambda data: data

    def _weights(self) -> Any:
        zeros = self._torch.zeros(self._scales.shape, dtype=self._torch.int64)
        return self._torch._make_per_channel_quantized_tensor(self._weight_values, self._scales, zeros, 0)

    def _quantized(self, data: Array, channels_last: bool) -> Any:
        values = self._torch.from_numpy(data)
        if channels_last:
            values = values.to(memory_format=self._torch.channels_last)
        return self._torch._make_per_tensor_quantized_tensor(values, *self._source)
