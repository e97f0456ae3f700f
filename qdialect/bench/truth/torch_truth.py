"""A quantized program of PyTorch in float64."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx

from qdialect.bench.frameworks import Array, Runner, imported
from qdialect.bench.frameworks.pytorch import leaves, program, tensors
from qdialect.bench.truth import traced


def load(path: str) -> Runner:
    """The program of a ``.pt2`` archive; its outputs are float64."""
    module: Any = program(path).module().double()
    interpreter = _InDouble(module)

    def run(inputs: Sequence[Array]) -> list[Array]:
        arguments = tensors(inputs)
        with torch.no_grad(), _default_double():
            found: Any = interpreter.run(*(one.double() if one.is_floating_point() else one for one in arguments))
        return [np.asarray(leaf.numpy(), np.float64) for leaf in leaves(found)]

    return run


_map_aggregate: Any = imported("torch.fx.node").map_aggregate
# Of results, which are float64, and of tensors that a program checks.
_DTYPES = ("out_dtype", "output_dtype", "dtype", "device", "layout")


@contextmanager
def _default_double() -> Generator[None]:
    """Tensors whose type a program leaves to the default, such as zeros, are float64 meanwhile."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class _InDouble(fx.Interpreter):
    """Runs quantizations in float64, and what names another type of floats with float64 instead."""

    def run_node(self, n: fx.Node) -> Any:
        """The node's result; of a quantization what the trace of the truth goes on with."""
        if not is_quantization(n):
            return super().run_node(n)
        arguments: Any = self.fetch_args_kwargs_from_env(n)[0]
        values, positions = _quantize(*arguments).numpy(), _positions(*arguments[:3]).numpy()
        return tensors([traced(n.name, positions, values)])[0]

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        own = _QUANTIZATIONS.get(str(target).rpartition(".")[0])
        if own is not None:
            return own(*args, **{name: value for name, value in kwargs.items() if name not in _DTYPES})
        return super().call_function(target, *_map_aggregate((args, kwargs), _widened_leaf))


def is_quantization(node: fx.Node) -> bool:
    """Whether a node gives a tensor that is quantized per tensor."""
    return node.op == "call_function" and str(node.target).startswith("quantized_decomposed.quantize_per_tensor")


def _widened_leaf(leaf: Any) -> Any:
    return torch.float64 if isinstance(leaf, torch.dtype) and leaf.is_floating_point else leaf


def _quantize(data: Tensor, scale: Any, zero_point: Any, low: int, high: int, dtype: torch.dtype) -> Tensor:
    """clamp(round half to even(data / scale) + zero point, low, high), PT2E's own order."""
    rounded = torch.round(data.double() / float(scale)) + float(zero_point)
    return rounded.clamp(low, high).to(dtype)


def _positions(data: Tensor, scale: Any, zero_point: Any) -> Tensor:
    """data / scale + zero point: where data lies among the quantized values."""
    return data.double() / float(scale) + float(zero_point)


def _dequantize(data: Tensor, scale: Any, zero_point: Any, *_: Any) -> Tensor:
    return (data.double() - float(zero_point)) * float(scale)


def _dequantize_channels(data: Tensor, scales: Tensor, zero_points: Tensor | None, axis: int, *_: Any) -> Tensor:
    shape = [-1 if index == axis else 1 for index in range(data.dim())]
    zero = 0 if zero_points is None else zero_points.double().reshape(shape)
    return (data.double() - zero) * scales.double().reshape(shape)


def _choose(data: Tensor, low: int, high: int, smallest: float, *_: Any) -> tuple[Tensor, Tensor]:
    """Scale and zero point of the range of `data`, which is widened to hold 0."""
    minimum, maximum = min(0.0, float(data.min())), max(0.0, float(data.max()))
    scale = max((maximum - minimum) / (high - low), smallest)
    zero_point = min(max(low - round(minimum / scale), low), high)
    return torch.tensor(scale, dtype=torch.float64), torch.tensor(zero_point)


# torchao's: the scales of blocks.


def _by_element(parameters: Tensor, data: Tensor, block: Sequence[int]) -> Tensor:
    """A parameter of each block for each element of `data`."""
    found = parameters.double().reshape([extent // size for extent, size in zip(data.shape, block, strict=True)])
    for axis, size in enumerate(block):
        found = found.repeat_interleave(size, axis)
    return found


def _dequantize_blocks(data: Tensor, block: Sequence[int], scales: Tensor, zeros: Tensor | None, *_: Any) -> Tensor:
    values = data.double() if zeros is None else data.double() - _by_element(zeros, data, block)
    return values * _by_element(scales, data, block)


def _quantize_blocks(
    data: Tensor, block: Sequence[int], scales: Tensor, zeros: Tensor | None, dtype: Any, low: int, high: int
) -> Tensor:
    rounded = torch.round(data.double() / _by_element(scales, data, block))
    return (rounded if zeros is None else rounded + _by_element(zeros, data, block)).clamp(low, high).to(dtype)


def _choose_rows(
    data: Tensor, kind: str, block: Sequence[int], dtype: Any, low: int, high: int, smallest: float | None, *_: Any
) -> tuple[Tensor, Tensor]:
    """Of whole rows, by their range with 0 in it; symmetric, their largest number is between the last two values."""
    if kind not in ("SYMMETRIC", "ASYMMETRIC") or tuple(block) != (*[1] * (data.dim() - 1), data.shape[-1]):
        raise NotImplementedError(f"{kind} parameters of blocks {list(block)}")
    lowest, highest = data.double().amin(-1, keepdim=True).clamp(max=0), data.double().amax(-1, keepdim=True)
    if kind == "SYMMETRIC":
        lowest = -torch.maximum(-lowest, highest)
        highest = -lowest
    bound = torch.finfo(torch.float32).eps if smallest is None else smallest
    scales = ((highest.clamp(min=0) - lowest) / (high - low)).clamp(min=bound)
    if kind == "SYMMETRIC":
        return scales, torch.zeros(scales.shape, dtype=torch.int8)
    return scales, (low - torch.round(lowest / scales)).clamp(low, high).to(torch.int8)


_QUANTIZATIONS: Mapping[str, Callable[..., Any]] = {
    "quantized_decomposed.dequantize_per_tensor": _dequantize,
    "quantized_decomposed.dequantize_per_channel": _dequantize_channels,
    "quantized_decomposed.choose_qparams": _choose,
    "torchao.dequantize_affine": _dequantize_blocks,
    "torchao.quantize_affine": _quantize_blocks,
    "torchao.choose_qparams_affine": _choose_rows,
    # Assertions of a program about float32 tensors.
    "aten._assert_tensor_metadata": lambda *_: None,
}
