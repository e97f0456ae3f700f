"""Packages that only the zoo's environment has; the type checker knows nothing of them.

Nothing here imports the compiler: its bindings and TensorFlow's converter each bring an LLVM, and one process cannot
have both.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import Any

# Operators of torchvision's C++ part.
_DETECTION = ("nms", "qnms")
# A library's operators live as long as it does.
_KEPT: list[Any] = []


def imported(name: str) -> Any:
    """A module by its dotted name; raises `ImportError` where it is not installed."""
    return import_module(name)


@cache
def vision_package(name: str) -> Any:
    """A module that is torchvision's or that imports it, by its dotted name.

    torchvision from PyPI is built for PyTorch with CUDA.  Beside PyTorch for CPUs its C++ part cannot be loaded, and
    the import fails at the first mention of an operator.  The operators are then declared; no network here runs one.
    """
    try:
        import_module("torchvision")
    except RuntimeError:
        _declare_operators()
        for partly in [one for one in sys.modules if one.partition(".")[0] == "torchvision"]:
            del sys.modules[partly]
        import_module("torchvision")
    return import_module(name)


def _declare_operators() -> None:
    library = import_module("torch.library").Library("torchvision", "FRAGMENT")
    for name in _DETECTION:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _KEPT.append(library)
