"""The engines that are measured, by name; each is loaded in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec

import qdialect
from qdialect.bench.cases import Engine

OURS = "qdialect"

# Name: module here, class in it, package it needs, and the distribution whose version is told.
_ENGINES: Mapping[str, tuple[str, str, str, str]] = {
    OURS: ("model_files", "Compiler", "onnx", "qdialect"),
    "onnxruntime": ("model_files", "OnnxRuntime", "onnxruntime", "onnxruntime"),
    "openvino": ("model_files", "OpenVino", "openvino", "openvino"),
    "litert": ("model_files", "LiteRt", "ai_edge_litert", "ai-edge-litert"),
    "torch": ("pytorch", "PyTorch", "torch", "torch"),
    "inductor": ("inductor", "Inductor", "torch", "torch"),
    "ggml": ("ggml", "Ggml", "ggml", "ggml-python"),
    "iree": ("iree", "Iree", "iree", "iree-base-compiler"),
    "tvm": ("model_files", "Tvm", "tvm", "apache-tvm"),
}

ENGINES = tuple(_ENGINES)
"""Names, ours first."""


SLOW = ("inductor", "iree", "tvm")
"""Those that take minutes to compile."""


def missing_package(name: str) -> str:
    """The package that the engine `name` needs and that is not installed; empty where it is."""
    package = _ENGINES[name][2]
    return "" if find_spec(package) else package


def load_engine(name: str) -> Engine:
    """The engine of this name; raises `ImportError` where its package is not installed."""
    module, kind, *_ = _ENGINES[name]
    return getattr(import_module(f"{__name__}.{module}"), kind)()


def version_of(name: str) -> str:
    """The version of an engine that is installed."""
    return qdialect.__version__ if name == OURS else version(_ENGINES[name][3])
