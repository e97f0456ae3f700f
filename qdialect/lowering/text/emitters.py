"""Functions that write a part of a kernel's scalar body."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qdialect.lowering.text.scalar_body import Body, Value

EmitRequantize = Callable[[Body, Value, Sequence[Value]], Value]
"""(body, accumulator as i32, per-channel parameters) -> quantized value as i32, before the clamp."""
