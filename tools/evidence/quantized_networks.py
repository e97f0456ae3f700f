"""Drawn ONNX networks that ONNX Runtime's own tools quantize, beside ONNX Runtime."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx

from tools.evidence.case import Array, Case, InvalidCaseError
from tools.evidence.drawn_networks import drawn
from tools.evidence.onnx_cases import case_of_model

quantization: Any = import_module("onnxruntime.quantization")
_TYPES = (quantization.QuantType.QInt8, quantization.QuantType.QUInt8)


def quantized_case(seed: int) -> Case:
    """The quantizer of a seed applied to its network; raises `InvalidCaseError` where the tool itself fails."""
    logging.disable(logging.WARNING)
    makers = (_static, _dynamic, _static)
    make = makers[seed % len(makers)]
    rng = np.random.default_rng(seed)
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
        model, network = drawn(rng)
        inputs = tuple(network.inputs.values())
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
