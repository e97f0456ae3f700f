"""What a model in a framework is to a measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

Sample = tuple[Array, ...]
"""Inputs in the order of the model."""

Runner = Callable[[Sequence[Array]], list[Array]]
"""Inputs in the order of the model to its outputs."""


def imported(name: str) -> Any:
    """A module of a package whose types are not known, by its dotted name; raises `ImportError` where it is absent."""
    return import_module(name)
