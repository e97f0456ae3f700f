"""The forms in which an executable returns results."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

from qdialect.diagnostics import InputError

NUMPY, _TORCH = "numpy", "torch"


def converter(form: str) -> Callable[[NDArray[Any]], Any]:
    """What makes a result in another form than `NUMPY` of an array, over the same memory.

    Raises `InputError` for a form that is not there.
    """
    if form != _TORCH:
        raise InputError(f"returns must be {NUMPY} or {_TORCH}, but got '{form}'")
    try:
        return import_module("torch").from_numpy
    except ImportError as error:
        raise InputError(f"returns='torch' needs PyTorch, which cannot be imported: {error}") from error
