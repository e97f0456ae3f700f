"""Quantized graphs in exact arithmetic: the same graph in float64, with exact functions.

Its integers are those of the file: the truth is that of the quantized network and not of the float network that it was
made from.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from qdialect.bench.frameworks import Runner

_MODULES = {".onnx": "onnx_truth", ".pt2": "torch_truth", ".tflite": "tflite_truth"}


class NoTruthError(Exception):
    """The truth of a model cannot be computed; the text gives the reason."""


def load(path: str, suffix: str) -> Runner:
    """The model in float64; raises `NoTruthError` for a kind of model or an operator that has no evaluator here."""
    if suffix not in _MODULES:
        raise NoTruthError(f"a {suffix} file has no evaluator in float64")
    module: Any = import_module(f"{__name__}.{_MODULES[suffix]}")
    return module.load(path)
