"""What a model in a framework is to the zoo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

Runner = Callable[[Sequence[Array]], list[Array]]
"""Inputs in the order of the model to its outputs."""
