"""The frameworks that run a model beside the compiler, by the kind of its file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from tools.zoo.frameworks.runner import Array, Runner

# Suffix: the framework whose model it is, and the engines that are timed on it, each a module here.
OWN = {".onnx": "onnx_runtime", ".tflite": "litert", ".pt2": "pytorch"}
TIMED = {".onnx": ("onnx_runtime", "open_vino"), ".tflite": ("litert", "open_vino"), ".pt2": ("pytorch",)}
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


def load_call(name: str, path: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
    """A call of the model at `path` in the framework `name`, set up for speed, on one thread.

    Its inputs are in their buffers, and so are its outputs where the framework allows it; `outputs` have their shapes
    and dtypes.  Raises as `load` does.
    """
    module: Any = import_module(f"{__name__}.{name}")
    return module.load_call(path, inputs, outputs)
