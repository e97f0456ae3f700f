"""The dynamic encoder in PyTorch: its dynamically quantized Linear, and float operators for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from qdialect.bench.cases import Array
from qdialect.bench.traced_graph import EPSILON

_LINEARS, _NORMS = 6, 2
"""Of a layer."""


class TorchEncoder:
    """An encoder with the numbers that `transformers` writes."""

    def __init__(self, torch: Any, numbers: Mapping[str, Array]) -> None:
        self._torch = torch
        self._heads = int(numbers["heads"])
        count = sum(name.startswith("values_") for name in numbers)
        self._linears = [self._packed(numbers, index) for index in range(count)]
        self._norms = [
            [torch.from_numpy(numbers[f"norm_{part}_{index}"]) for part in ("scale", "bias")]
            for index in range(count // _LINEARS * _NORMS)
        ]

    def function(self, data: Array) -> Callable[[], Any]:
        """What computes the encoder on `data`, [rows, width]."""
        state = self._torch.from_numpy(data)
        return lambda: self._encoded(state)

    def _packed(self, numbers: Mapping[str, Array], index: int) -> Any:
        torch, scales = self._torch, numbers[f"scales_{index}"]
        values = torch.from_numpy(np.ascontiguousarray(numbers[f"values_{index}"].T))
        zeros = torch.zeros(len(scales), dtype=torch.int64)
        scale = torch.from_numpy(scales.astype(np.float64))
        weight = torch._make_per_channel_quantized_tensor(values, scale, zeros, 0)
        return torch.ops.quantized.linear_prepack(weight, torch.from_numpy(numbers[f"bias_{index}"]))

    def _encoded(self, state: Any) -> Any:
        torch, linear = self._torch, self._torch.ops.quantized.linear_dynamic
        for layer in range(len(self._linears) // _LINEARS):
            query, key, value, last, wide, narrow = self._linears[layer * _LINEARS : (layer + 1) * _LINEARS]
            first, second = self._norms[layer * _NORMS : (layer + 1) * _NORMS]
            parts = [self._by_head(linear(state, packed)) for packed in (query, key, value)]
            shares = torch.softmax(parts[0] @ parts[1].transpose(1, 2), -1)
            context = (shares @ parts[2]).transpose(0, 1).reshape(state.shape)
            state = torch.nn.functional.layer_norm(state + linear(context, last), state.shape[-1:], *first, EPSILON)
            active = torch.nn.functional.gelu(linear(state, wide))
            state = torch.nn.functional.layer_norm(state + linear(active, narrow), state.shape[-1:], *second, EPSILON)
        return state

    def _by_head(self, rows: Any) -> Any:
        """[rows, width] as [heads, rows, columns of a head]."""
        return rows.reshape(len(rows), self._heads, -1).transpose(0, 1)
