"""The frameworks that run a model beside the compiler, by the kind of its file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

# Suffix: the framework whose model it is, a module here.
OWN = {".onnx": "onnx_runtime", ".tflite": "litert", ".pt2": "pytorch"}
# Suffix: whose arithmetic results are compared in, where the default of a divided model is another.
PROFILES = {".tflite": "tflite"}


def load(name: str, path: str) -> Runner:
    """The model at `path` in the framework `name`, on one thread, set up for the results that count as its own.

    Raises `ImportError` where the framework is not installed, and whatever the framework raises for the model.
    """
    module: Any = import_module(f"{__name__}.{name}")
    return module.load(path)


def load_plain(path: str, suffix: str) -> Runner | None:
    """The model in its framework without optimizations, where the framework has such a mode."""
    if suffix != ".onnx":
        return None
    module: Any = import_module(f"{__name__}.onnx_runtime")
    return module.load_plain(path)


# What a model in a framework is to a measurement.

Array = NDArray[Any]

Sample = tuple[Array, ...]
"""Inputs in the order of the model."""

Runner = Callable[[Sequence[Array]], list[Array]]
"""Inputs in the order of the model to its outputs."""


def imported(name: str) -> Any:
    """A module of a package whose types are not known, by its dotted name; raises `ImportError` where it is absent."""
    return import_module(name)
