"""Small PyTorch networks drawn at random and quantized by torchao's tools, beside eager PyTorch."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as nnf

from tools.evidence.case import Case, InvalidCaseError
from tools.evidence.torch_cases import case_of_module

_MAX_ELEMENTS = 20_000
_PT2E = "torchao.quantization.pt2e"
# By a quantizer: its module, and the name of its configuration.
_QUANTIZERS = {
    "X86Inductor": (f"{_PT2E}.quantizer.x86_inductor_quantizer", "default_x86_inductor"),
    "ArmInductor": (f"{_PT2E}.quantizer.arm_inductor_quantizer", "default_arm_inductor"),
    "XNNPACK": ("torchao.testing.pt2e._xnnpack_quantizer", "symmetric"),
}
_WEIGHTS = ("Int8WeightOnly", "Int8DynamicActivationInt8Weight", "IntxWeightOnly", "Int8DynamicActivationIntxWeight")


class _Function(nn.Module):
    """A function of tensors, as a step of a network."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Tensor:
        return self.function(*tensors)


class _Network(nn.Module):
    """Steps in order, each of which reads values by their numbers; it grows while it runs."""

    def __init__(self, rng: np.random.Generator, inputs: Sequence[Tensor]) -> None:
        super().__init__()
        self.rng, self.values = rng, list(inputs)
        self.steps, self.reads, self.ends = nn.ModuleList(), list[tuple[int, ...]](), list[int]()

    def choice(self, *options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def grow(self, count: int) -> None:
        """Add steps that fit, and end in what nothing reads."""
        for _ in range(8 * count):
            value = len(self.values) - 1 if self.rng.random() < 0.75 else self.whole(0, len(self.values))
            shape = self.values[value].shape
            fitting = [step for step, ranks in _STEPS if len(shape) in ranks]
            self._take(self.choice(*fitting)(self, self.values[value]), value)
            if len(self.steps) == count:
                break
        used = {one for reads in self.reads for one in reads}
        self.ends = [one for one in range(len(self.values)) if one not in used][-3:]
        self.values = []

    def _take(self, step: nn.Module | Callable[..., Tensor], value: int) -> None:
        others = [i for i, one in enumerate(self.values) if one.shape == self.values[value].shape]
        reads = (value, self.choice(*others)) if isinstance(step, _Pair) else (value,)
        module = step if isinstance(step, nn.Module) else _Function(step)
        with torch.no_grad():
            result = module.eval()(*(self.values[one] for one in reads))
        if 0 < result.numel() <= _MAX_ELEMENTS and result.isfinite().all():
            self.steps.append(module)
            self.reads.append(reads)
            self.values.append(result)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        values = list(inputs)
        for step, reads in zip(self.steps, self.reads, strict=True):
            values.append(step(*(values[one] for one in reads)))
        return tuple(values[one] for one in self.ends)


class _Pair(_Function):
    """A function of two values of one shape."""


def _convolution(n: _Network, x: Tensor) -> nn.Module:
    rank, channels = x.dim() - 2, x.shape[1]
    kernel = [n.whole(1, min(one, 4) + 1) for one in x.shape[2:]]
    groups = n.choice(1, 1, channels)
    results = channels * n.choice(1, 2) if groups > 1 else n.whole(1, 30)
    kind: Any = (nn.Conv1d, nn.Conv2d)[rank - 1]
    padding, stride = n.whole(0, 2), n.whole(1, 3)
    layer = kind(channels, results, kernel, stride, padding, groups=groups, bias=n.choice(True, False))
    after = [(nn.BatchNorm1d, nn.BatchNorm2d)[rank - 1](results)] if n.choice(True, False) else []
    return nn.Sequential(layer, *after, *n.choice([], [nn.ReLU()], [nn.ReLU6()], [nn.Hardtanh()], [nn.Hardswish()]))


def _spread(n: _Network, x: Tensor) -> nn.Module:
    return nn.ConvTranspose2d(x.shape[1], n.whole(1, 12), n.whole(1, 4), n.whole(1, 3))


def _linear(n: _Network, x: Tensor) -> nn.Module:
    layer = nn.Linear(x.shape[-1], n.whole(1, 40), bias=n.choice(True, True, False))
    return nn.Sequential(layer, *n.choice([], [nn.ReLU()], [nn.GELU()], [nn.ReLU6()], [nn.Tanh()]))


_FUNCTIONS = (
    *(nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.Sigmoid, nn.Tanh, nn.GELU, nn.SiLU),
    *(nn.LeakyReLU, nn.ELU, nn.Mish, nn.Softplus, nn.Hardshrink, nn.Softshrink, nn.Softsign, nn.CELU, nn.SELU),
)
_NUMBERS: Sequence[Callable[[Tensor], Tensor]] = (
    *(torch.abs, torch.neg, lambda x: x + 0.5, lambda x: x * 0.75, lambda x: x / 3, lambda x: 1 - x, torch.square),
    *(lambda x: x.clamp(-0.5, 0.25), lambda x: x * torch.sigmoid(x), lambda x: x.clamp(min=0).sqrt()),
)


def _function(n: _Network, _: Tensor) -> nn.Module | Callable[..., Tensor]:
    return n.choice(*_FUNCTIONS)() if n.rng.random() < 0.7 else n.choice(*_NUMBERS)


def _pair(n: _Network, _: Tensor) -> nn.Module:
    return _Pair(n.choice(torch.add, torch.add, torch.mul, torch.sub, torch.maximum, torch.minimum))


def _activated_pair(n: _Network, _: Tensor) -> nn.Module:
    activation = n.choice(torch.relu, nnf.hardswish, torch.sigmoid)

    def activated(x: Tensor, y: Tensor) -> Tensor:
        return activation(x + y)

    return _Pair(activated)


def _joined(n: _Network, x: Tensor) -> nn.Module:
    return _Pair(partial(_cat, axis=n.whole(1, x.dim())))


def _cat(*tensors: Tensor, axis: int) -> Tensor:
    return torch.cat(tensors, axis)


def _pool(n: _Network, x: Tensor) -> nn.Module:
    size = n.whole(1, min(3, *x.shape[2:]) + 1)
    how: dict[str, Any] = {
        "stride": n.whole(1, 3),
        "padding": n.choice(0, size // 2),
        "ceil_mode": n.choice(False, True),
    }
    if n.choice(True, False):
        return nn.MaxPool2d(size, **how)
    return nn.AvgPool2d(size, count_include_pad=n.choice(False, True), **how)


def _whole_pool(n: _Network, _: Tensor) -> nn.Module | Callable[..., Tensor]:
    return n.choice(nn.AdaptiveAvgPool2d(1), partial(torch.mean, dim=(2, 3)), nn.AdaptiveMaxPool2d(1))


def _reduced(n: _Network, x: Tensor) -> Callable[..., Tensor]:
    kind = n.choice(torch.mean, torch.sum, torch.amax, torch.amin)
    return partial(kind, dim=n.whole(1, x.dim()), keepdim=n.choice(False, True) if x.dim() > 2 else True)


def _moved(n: _Network, x: Tensor) -> Callable[..., Tensor]:
    axis, extent = n.whole(1, x.dim()), x.shape[-1]
    start, step = n.whole(0, extent), n.whole(1, 3)
    order = [0, *(1 + n.rng.permutation(x.dim() - 1)).tolist()]
    moves: Sequence[Callable[[Tensor], Tensor]] = (
        *(lambda v: v.flatten(1), lambda v: v.permute(order).contiguous(), lambda v: v[..., start::step]),
        *(lambda v: nnf.pad(v, (1, 2)), lambda v: v.unsqueeze(1).squeeze(1), lambda v: v.flip(axis)),
        lambda v: v.chunk(2, axis)[0],
    )
    return n.choice(*moves)


def _attention(_: _Network, __: Tensor) -> Callable[..., Tensor]:
    def attention(x: Tensor) -> Tensor:
        return torch.softmax(x @ x.transpose(-1, -2), -1) @ x

    return attention


def _resized(n: _Network, _: Tensor) -> nn.Module:
    return nn.Upsample(scale_factor=2, mode=n.choice("nearest", "bilinear"))


def _normalized(n: _Network, x: Tensor) -> nn.Module:
    return n.choice(nn.LayerNorm(x.shape[-1]), nn.Softmax(-1))


_ANY = (2, 3, 4)
_STEPS: Sequence[tuple[Callable[[_Network, Tensor], Any], Sequence[int]]] = (
    *(((_convolution, (3, 4)),) * 3 + ((_linear, _ANY),) * 2 + ((_function, _ANY),) * 2 + ((_pair, _ANY),) * 2),
    *((_spread, (4,)), (_pool, (4,)), (_pool, (4,)), (_whole_pool, (4,)), (_reduced, _ANY), (_moved, _ANY)),
    *((_attention, (3,)), (_resized, (4,)), (_normalized, (2, 3)), (_activated_pair, _ANY), (_joined, _ANY)),
)


def case(seed: int) -> Case:
    """The network of a seed, what a tool of torchao makes of it, and what that gives in eager mode."""
    logging.disable(logging.WARNING)
    rng = np.random.default_rng(seed)
    torch.default_generator.manual_seed(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _case(rng)
    except Exception as error:
        raise InvalidCaseError(f"{type(error).__name__}: {error}") from error


def _case(rng: np.random.Generator) -> Case:
    # Numbers of few bits, so that many lie halfway between two quantized values.
    inner = [int(one) for one in rng.integers(3, 12, int(rng.choice([0, 1, 2, 2])))]
    shape = (int(rng.integers(1, 4)), int(rng.choice([1, 3, 4, 8, 16, 17, 32])), *inner)
    inputs = tuple(torch.round(torch.randn(shape) * 64) / 64 for _ in range(int(rng.choice([1, 1, 2]))))
    network = _Network(rng, inputs)
    network.grow(int(rng.integers(2, 9)))
    if rng.random() < 0.25:
        torchao: Any = import_module("torchao.quantization")
        torchao.quantize_(network, getattr(torchao, f"{network.choice(*_WEIGHTS)}Config")())
        return case_of_module(network.eval(), inputs)
    return _of_program(network, inputs)


def _of_program(network: _Network, inputs: tuple[Tensor, ...]) -> Case:
    """By PT2E, static or dynamic, after training or with training."""
    kind = network.choice("X86Inductor", "X86Inductor", "XNNPACK", "XNNPACK", "ArmInductor")
    name, config = _QUANTIZERS[kind]
    is_dynamic, is_trained = bool(network.rng.random() < 0.2), bool(network.rng.random() < 0.3)
    options: dict[str, Any] = {"is_dynamic": is_dynamic, "is_qat": is_trained}
    if kind == "XNNPACK":
        options["is_per_channel"] = network.choice(True, False)
    source, pt2e = import_module(name), import_module(f"{_PT2E}.quantize_pt2e")
    quantizer = getattr(source, f"{kind}Quantizer")()
    quantizer.set_global(getattr(source, f"get_{config}_quantization_config")(**options))
    captured: Any = torch.export.export(network.train() if is_trained else network.eval(), inputs).module()
    prepared = (pt2e.prepare_qat_pt2e if is_trained else pt2e.prepare_pt2e)(captured, quantizer)
    for share in (1.0, 0.75):
        prepared(*(share * one for one in inputs))
    converted = pt2e.convert_pt2e(prepared)
    if is_trained:
        import_module(_PT2E).move_exported_model_to_eval(converted)
    if network.rng.random() < 0.6:
        _make_dyadic(converted)
    found = case_of_module(converted, inputs)
    # The last bits of f32 sums, whose order is PyTorch's own, decide ranges and steps of what follows.
    return replace(found, limit=1 / 255) if is_dynamic else found


def _make_dyadic(program: Any) -> None:
    """Scales become powers of two, and biases multiples of small ones: few sums are rounded, and many are halves."""
    for node in program.graph.nodes:
        if "quantize_per_tensor" in str(node.target) and isinstance(node.args[1], float):
            node.args = (node.args[0], 2.0 ** round(math.log2(node.args[1])), *node.args[2:])
    for name, value in program.state_dict().items():
        if "scale" in name:
            value.copy_(torch.exp2(torch.round(torch.log2(value))))
        elif value.dtype == torch.float32:
            value.copy_(torch.round(value * 64) / 64)
    program.recompile()
