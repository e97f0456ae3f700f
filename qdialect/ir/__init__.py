"""MLIR for everything above: the bindings, contexts, locations, constants, and texts read and printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qdialect.ir._mlir import ir

LOADERS: list[Callable[[ir.Context], None]] = []
"""What every new context is given to: a dialect of a package above this one loads itself. It needs no bindings."""
