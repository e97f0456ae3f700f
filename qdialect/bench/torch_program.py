"""ONNX graphs of transformers and float functions as programs of PyTorch, in operators that inductor has kernels for.

A dequantized constant is no tensor until something reads it: what multiplies by it decides in which layout it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from qdialect.support.interface import Array

_Operator = Callable[[list[Any], Mapping[str, Any]], Any]
"""Operands, constants as they are, and attributes to a result, or to several."""

_BYTE = (0, 255)
_SIGNED = (-127, 127)
_NIBBLE_SHIFT, _NIBBLE_MASK, _MIDDLE = 4, 15, 8
# PyTorch's wrappers have no types.
_ops: Any = torch.ops
_from_numpy: Callable[[Array], Tensor] = getattr(torch, "from_numpy")  # noqa: B009


def exported(path: Path, *, is_folded: bool = False) -> Any:
    """The model at `path` as an exported program; raises `KeyError` for an operator that is not in the table.

    Weights that rows of floats meet stay in their few bits, and the rows become bfloat16, or `is_folded` makes f32
    numbers of such weights.
    """
    # Registers the operators that PT2E writes.
    import_module("torch.ao.quantization.fx._decomposed")
    model = _Model(path, {**_OPERATORS, **(_FOLDED if is_folded else {})})
    export: Any = torch.export.export
    return export(model.eval(), model.examples, strict=False)


@dataclass(frozen=True, eq=False)
class _Constant:
    """A constant that is dequantized: its values, a scale for each index of `axis`, and what is to be added later."""

    values: Array
    scales: Array
    axis: int

    def numbers(self) -> Array:
        """The float32 numbers that it stands for."""
        shape = [1] * self.values.ndim
        shape[self.axis] = -1
        found: Array = self.values.astype(np.float32) * self.scales.reshape(shape)
        return found

    def tensor(self) -> Tensor:
        """Dequantized at run time, which patterns of quantized convolutions and products begin with."""
        zeros = torch.zeros(len(self.scales), dtype=torch.int64)
        values, scales = _tensor(self.values), _tensor(self.scales)
        dequantize = _ops.quantized_decomposed.dequantize_per_channel.default
        return dequantize(values, scales, zeros, self.axis, *_SIGNED, torch.int8)

    def transposed(self) -> _Constant:
        """A matrix as `linear` takes it: [outputs, inputs]."""
        return _Constant(self.values.T, self.scales, 1 - self.axis)


@dataclass(frozen=True, eq=False)
class _Product:
    """A product of quantized rows that has no scales yet, or no bias."""

    data: Tensor
    weights: Array
    scales: Array | None = None

    def plus(self, bias: Tensor | None) -> Tensor:
        assert self.scales is not None
        return functional.linear(self.data, _Constant(self.weights.T, self.scales, 0).tensor(), bias)


class _Model(torch.nn.Module):
    """Calls what the table has for each node, in turn."""

    def __init__(self, path: Path, operators: Mapping[str, _Operator]) -> None:
        super().__init__()
        self._operators = operators
        onnx = import_module("onnx")
        graph = onnx.load(path).graph
        self._constants = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
        value_of = onnx.helper.get_attribute_value
        self._inputs = [one.name for one in graph.input]
        self._outputs = [one.name for one in graph.output]
        self._nodes = [
            (one.op_type, list(one.input), list(one.output), {a.name: value_of(a) for a in one.attribute})
            for one in graph.node
        ]
        self.examples = tuple(_example(onnx, one.type.tensor_type) for one in graph.input)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        values: dict[str, Any] = {**self._constants, **dict(zip(self._inputs, inputs, strict=True))}
        for kind, sources, results, attributes in self._nodes:
            found = self._operators[kind]([values[name] for name in sources], attributes)
            several: list[Any] = [*found] if isinstance(found, tuple) else [found]
            values.update(zip(results, several, strict=True))
        return tuple(values[name] for name in self._outputs)


def _example(onnx: Any, kind: Any) -> Tensor:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return _tensor(np.zeros([extent.dim_value for extent in kind.shape.dim], dtype))


def _tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, _Constant):
        return _tensor(value.numbers())
    return _from_numpy(np.array(value, order="C"))


def _operand(value: Any) -> Any:
    """A number where it is one, as PyTorch's operators take it."""
    return value.item() if np.ndim(value) == 0 else _tensor(value)


# Products.


def _linear(data: Tensor, weights: Any, bias: Any = None) -> Tensor:
    added = None if bias is None else _tensor(bias)
    if isinstance(weights, _Constant):
        return functional.linear(data, weights.transposed().tensor(), added)
    return functional.linear(data, _tensor(weights).transpose(0, 1), added)


def _product(data: Tensor, other: Any) -> Tensor:
    if not isinstance(other, _Constant):
        return data @ _tensor(other)
    kept = other.transposed()
    scales = _tensor(kept.scales).to(torch.bfloat16)
    return _ops.aten._weight_int8pack_mm(data.to(torch.bfloat16), _tensor(kept.values), scales).to(torch.float32)


def _block_product(data: Tensor, packed: Array, scales: Array, **sizes: int) -> Tensor:
    """Rows are rounded to bfloat16 whatever the level: the kernel for f32 is 30 times as slow."""
    kept = _ops.aten._convert_weight_to_int4pack_for_cpu(_tensor(_nibbles(packed, sizes["N"]).astype(np.int32)), 1)
    by_block = scales.reshape(sizes["N"], -1).T
    # A zero point is a number that is added: 8 stands for 0 already.
    pairs = _tensor(np.stack([by_block, np.zeros_like(by_block)], -1)).to(torch.bfloat16)
    product = _ops.aten._weight_int4pack_mm_for_cpu(data.to(torch.bfloat16), kept, sizes["block_size"], pairs)
    return product.to(torch.float32)


def _nibbles(packed: Array, rows: int) -> Array:
    values: Array = np.stack([packed & _NIBBLE_MASK, packed >> _NIBBLE_SHIFT], -1).reshape(rows, -1)
    return values


def _folded_block_product(data: Tensor, packed: Array, scales: Array, **sizes: int) -> Tensor:
    blocks = _nibbles(packed, sizes["N"]).reshape(-1, sizes["block_size"]).astype(np.float32) - _MIDDLE
    return functional.linear(data, _tensor((blocks * scales.reshape(-1, 1)).reshape(sizes["N"], -1)))


def _quantized_rows(data: Tensor) -> tuple[Any, ...]:
    """Dequantized again, with 1 for the scale that is in it: a product of such rows is one of `linear`'s patterns."""
    kinds = _ops.quantized_decomposed
    scale, zero = kinds.choose_qparams.tensor(data, *_BYTE, float(np.finfo(np.float32).eps), torch.uint8)
    stored = kinds.quantize_per_tensor.tensor(data, scale, zero, *_BYTE, torch.uint8)
    return kinds.dequantize_per_tensor.tensor(stored, scale, zero, *_BYTE, torch.uint8), np.float32(1), None


# Quantized tensors.


def _quantize(data: Any, scale: Array, zero: Array) -> Tensor:
    kind = _ops.quantized_decomposed.quantize_per_tensor.default
    return kind(_tensor(data), float(scale), int(zero), *_BYTE, torch.uint8)


def _dequantize(data: Any, scale: Array, zero: Array, axis: int = 0) -> Any:
    if isinstance(data, Tensor):
        kind = _ops.quantized_decomposed.dequantize_per_tensor.default
        return kind(data, float(scale), int(zero), *_BYTE, torch.uint8)
    return _Constant(data, scale, axis)


# The rest.


def _multiply(left: Any, right: Any) -> Any:
    if isinstance(left, _Product):
        return replace(left, scales=right)
    if isinstance(left, np.generic):
        return left * right
    return _operand(left) * _operand(right)


_OPERATORS: Mapping[str, _Operator] = {
    "QuantizeLinear": lambda x, _: _quantize(*x),
    "DequantizeLinear": lambda x, how: _dequantize(*x, **how),
    "DynamicQuantizeLinear": lambda x, _: _quantized_rows(*x),
    "MatMul": lambda x, _: _product(*x),
    "MatMulInteger": lambda x, _: _Product(x[0], x[1]),
    "MatMulNBits": lambda x, how: _block_product(*x, **how),
    "Gemm": lambda x, _: _linear(*x),
    "Conv": lambda x, how: functional.conv2d(x[0], x[1].tensor(), None, how["strides"]),
    "Add": lambda x, _: x[0].plus(_tensor(x[1])) if isinstance(x[0], _Product) else _operand(x[0]) + _operand(x[1]),
    "Mul": lambda x, _: _multiply(*x),
    "Div": lambda x, _: _operand(x[0]) / _operand(x[1]),
    "Pow": lambda x, _: _operand(x[0]) ** _operand(x[1]),
    "Cast": lambda x, _: x[0],
    "Concat": lambda x, how: torch.cat([_tensor(part) for part in x], how["axis"]),
    "Reshape": lambda x, _: x[0].reshape(x[1].tolist()),
    "Transpose": lambda x, how: x[0].permute(how["perm"]),
    "Slice": lambda x, _: x[0].narrow(int(x[3][0]), int(x[1][0]), int(x[2][0] - x[1][0])),
    "ReduceMean": lambda x, how: x[0].mean(how["axes"], keepdim=True),
    "Softmax": lambda x, how: torch.softmax(x[0], how["axis"]),
    "LayerNormalization": lambda x, how: functional.layer_norm(
        x[0], x[0].shape[-1:], _tensor(x[1]), _tensor(x[2]), how["epsilon"]
    ),
    "Gelu": lambda x, _: functional.gelu(x[0]),
    "QuickGelu": lambda x, how: x[0] * torch.sigmoid(x[0] * how["alpha"]),
    "Sqrt": lambda x, _: torch.sqrt(x[0]),
    "Erf": lambda x, _: torch.erf(x[0]),
    "Exp": lambda x, _: torch.exp(x[0]),
    "Tanh": lambda x, _: torch.tanh(x[0]),
    "Sigmoid": lambda x, _: torch.sigmoid(x[0]),
}
_FOLDED: Mapping[str, _Operator] = {
    "MatMul": lambda x, _: x[0] @ _tensor(x[1]),
    "MatMulNBits": lambda x, how: _folded_block_product(*x, **how),
}
