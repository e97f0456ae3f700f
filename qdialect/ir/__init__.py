"""MLIR for everything above: the bindings, contexts, locations, constants, and texts read and printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qdialect.ir._mlir import ir

LOADERS: list[Callable[[ir.Context], None]] = []
"""Functions that every new context is passed to: packages above this one load their dialects. It needs no bindings."""
