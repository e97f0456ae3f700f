"""The package `torch`, which is loaded when a program is read and not before."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from qdialect.diagnostics import ImportModelError


def torch_package() -> Any:
    """The module `torch`, with the operators of PT2E registered.

    Raises `ImportModelError` where the package is not installed.
    """
    try:
        torch = import_module("torch")
    except ImportError as error:
        needed = "needs the package 'torch', which the extra 'torch' brings: pip install 'qdialect[torch]'"
        raise ImportModelError(f"reading .pt2 files {needed}") from error
    import_module("torch.ao.quantization.fx._decomposed")
    return torch
