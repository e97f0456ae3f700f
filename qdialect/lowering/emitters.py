"""What writes a part of a kernel's scalar body."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qdialect.lowering.kernel_text import Body

EmitRequantize = Callable[[Body, str, Sequence[str]], str]
"""(body, accumulator as i32, per-channel parameters) -> code as i32."""
