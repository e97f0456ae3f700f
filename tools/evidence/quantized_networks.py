"""Drawn networks that the frameworks' own tools quantize, beside the framework that runs them."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import torch

from tools.evidence.case import Array, Case, InvalidCaseError
from tools.evidence.drawn_networks import drawn
from tools.evidence.onnx_cases import case_of_model
from tools.evidence.torch_cases import case_of_module

quantization: Any = import_module("onnxruntime.quantization")
_TYPES = (quantization.QuantType.QInt8, quantization.QuantType.QUInt8)


def quantized_case(seed: int) -> Case:
    """The quantizer of a seed applied to its network; raises `InvalidCaseError` where the tool itself fails."""
    logging.disable(logging.WARNING)
    makers = (_static, _dynamic, _static, _torch_static, _torch_weights)
    make = makers[seed % len(makers)]
    rng = np.random.default_rng(seed)
    torch.default_generator.manual_seed(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(rng)
    except Exception as error:
        raise InvalidCaseError(f"{type(error).__name__}: {error}") from error


class _Reader(quantization.CalibrationDataReader):
    """A few inputs around those of the call."""

    def __init__(self, rng: np.random.Generator, model: onnx.ModelProto, inputs: Sequence[Array]) -> None:
        names = [one.name for one in model.graph.input]
        self._feeds = iter(
            [
                {n: (v * rng.uniform(0.5, 1)).astype(v.dtype) for n, v in zip(names, inputs, strict=True)}
                for _ in range(3)
            ]
        )

    def get_next(self) -> dict[str, Array] | None:
        return next(self._feeds, None)


def _network(rng: np.random.Generator) -> tuple[onnx.ModelProto, tuple[Array, ...]]:
    while True:
        model, inputs = drawn(rng)
        if all(value.size for value in inputs):
            return model, inputs


def _through_files(model: onnx.ModelProto, work: Callable[[Path, Path], None]) -> bytes:
    with TemporaryDirectory() as folder:
        source, result = Path(folder) / "f32.onnx", Path(folder) / "quantized.onnx"
        source.write_bytes(model.SerializeToString())
        work(source, result)
        return result.read_bytes()


def _static(rng: np.random.Generator) -> Case:
    model, inputs = _network(rng)
    form = (quantization.QuantFormat.QDQ, quantization.QuantFormat.QOperator)[int(rng.integers(2))]
    options: dict[str, Any] = {
        "quant_format": form,
        "per_channel": bool(rng.random() < 0.5),
        "reduce_range": bool(rng.random() < 0.2),
        "activation_type": _TYPES[int(rng.integers(2))],
        "weight_type": _TYPES[int(rng.integers(2))],
        "extra_options": {"ActivationSymmetric": bool(rng.random() < 0.3), "WeightSymmetric": bool(rng.random() < 0.7)},
    }
    content = _through_files(
        model, lambda a, b: quantization.quantize_static(a, b, _Reader(rng, model, inputs), **options)
    )
    return case_of_model(content, inputs, 1)


def _dynamic(rng: np.random.Generator) -> Case:
    model, inputs = _network(rng)
    options: dict[str, Any] = {"per_channel": bool(rng.random() < 0.5), "weight_type": _TYPES[int(rng.integers(2))]}
    content = _through_files(model, lambda a, b: quantization.quantize_dynamic(a, b, **options))
    return case_of_model(content, inputs, 1)


def _module(rng: np.random.Generator) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """A chain of layers of images, or of rows."""
    if rng.random() < 0.5:
        channels = int(rng.integers(1, 5)) * 4
        layers = [torch.nn.Conv2d(3, channels, 3, padding=1), *_image_layers(rng, channels)]
        layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(channels, 7)]
        return torch.nn.Sequential(*layers), (torch.randn(int(rng.integers(1, 3)), 3, 9, 11),)
    inner = int(rng.integers(1, 9)) * 8
    layers = [torch.nn.Linear(inner, 32), *_row_layers(rng), torch.nn.Linear(32, int(rng.integers(1, 20)))]
    return torch.nn.Sequential(*layers), (torch.randn(int(rng.integers(1, 4)), inner),)


def _image_layers(rng: np.random.Generator, channels: int) -> Iterator[torch.nn.Module]:
    for _ in range(int(rng.integers(1, 5))):
        yield [
            lambda: torch.nn.Conv2d(channels, channels, 3, padding=1, groups=channels),
            lambda: torch.nn.Conv2d(channels, channels, 1),
            lambda: torch.nn.BatchNorm2d(channels),
            torch.nn.ReLU,
            torch.nn.Hardswish,
            torch.nn.Sigmoid,
            lambda: torch.nn.MaxPool2d(2, 1),
            lambda: torch.nn.AvgPool2d(2, 1),
        ][int(rng.integers(8))]()


def _row_layers(rng: np.random.Generator) -> Iterator[torch.nn.Module]:
    for _ in range(int(rng.integers(1, 5))):
        yield [
            lambda: torch.nn.Linear(32, 32, bias=bool(rng.random() < 0.5)),
            lambda: torch.nn.LayerNorm(32),
            torch.nn.GELU,
            torch.nn.SiLU,
            torch.nn.Tanh,
            torch.nn.ReLU,
        ][int(rng.integers(6))]()


def _torch_static(rng: np.random.Generator) -> Case:
    pt2e: Any = import_module("torchao.quantization.pt2e.quantize_pt2e")
    x86: Any = import_module("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    module, inputs = _module(rng)
    captured: Any = torch.export.export(module.eval(), inputs).module()
    is_dynamic = bool(rng.random() < 0.3)
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_dynamic=is_dynamic))
    prepared = pt2e.prepare_pt2e(captured, quantizer)
    prepared(*inputs)
    case = case_of_module(pt2e.convert_pt2e(prepared), inputs)
    # The last bits of f32 sums, whose order is PyTorch's own, decide ranges and steps of what follows.
    return replace(case, limit=1 / 255) if is_dynamic else case


def _torch_weights(rng: np.random.Generator) -> Case:
    torchao: Any = import_module("torchao.quantization")
    module, inputs = _module(rng)
    config = torchao.Int8WeightOnlyConfig() if rng.random() < 0.5 else torchao.Int8DynamicActivationInt8WeightConfig()
    torchao.quantize_(module.eval(), config)
    return case_of_module(module, inputs)
