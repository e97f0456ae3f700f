"""Quantized graphs in exact arithmetic: the same graph in float64, with exact functions.

Its integers are those of the file: the truth is that of the quantized network and not of the float network that it was
made from.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from qdialect.bench.frameworks import Runner
from qdialect.support.interface import Array

_MODULES = {".onnx": "onnx_truth", ".pt2": "torch_truth", ".tflite": "tflite_truth"}


class NoTruthError(Exception):
    """The truth of a model cannot be computed; the text gives the reason."""


def load(path: str, suffix: str) -> Runner:
    """The model in float64; raises `NoTruthError` for a kind of model or an operator that has no evaluator here."""
    if suffix not in _MODULES:
        raise NoTruthError(f"a {suffix} file has no evaluator in float64")
    module: Any = import_module(f"{__name__}.{_MODULES[suffix]}")
    return module.load(path)


# What the truth has at the quantized tensors of a network, and what becomes of it where some elements are others.


@dataclass(frozen=True)
class Exact:
    """A tensor where a network quantizes."""

    values: Array
    """The quantized values, of the tensor's own type."""
    positions: Array
    """In float64, data / scale + zero point: what is rounded and clamped to give `values`."""


@dataclass(frozen=True)
class Trace:
    """What an evaluator met in a run, and the values that it went on with."""

    forced: Mapping[str, Array]
    exact: dict[str, Exact] = field(default_factory=dict[str, Exact])


_CURRENT: ContextVar[Trace | None] = ContextVar("trace", default=None)


@contextmanager
def tracing(forced: Mapping[str, Array] | None = None) -> Generator[Trace]:
    """Runs of evaluators note their quantized tensors by name, and go on with those of `forced` in their stead."""
    trace = Trace(forced or {})
    token = _CURRENT.set(trace)
    try:
        yield trace
    finally:
        _CURRENT.reset(token)


def traced(name: str, positions: Array, values: Array) -> Array:
    """Note the quantized tensor `name`; what the network goes on with, which is `values` unless others are forced."""
    trace = _CURRENT.get()
    if trace is None:
        return values
    trace.exact[name] = Exact(values, positions)
    return trace.forced.get(name, values)
