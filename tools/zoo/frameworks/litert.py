"""LiteRT: its reference kernels for results, its default delegate for times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from qdialect.bench.engines.litert import LiteRtSession
from tools.zoo.frameworks import litert_kernels, litert_segments
from tools.zoo.frameworks.runner import Array, Runner
from tools.zoo.packages import imported


def load(path: str) -> Runner:
    """An interpreter of the model with the reference kernels, as far as there are such."""
    content = Path(path).read_bytes()
    try:
        return litert_kernels.load(content, is_reference=True)
    # Some operators, ELU among them, are not among the reference kernels.
    except ValueError:
        return litert_segments.load(content)


def load_call(path: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
    """An interpreter with XNNPACK whose inputs are set."""
    del outputs
    return LiteRtSession(imported(litert_kernels.PACKAGE), path, inputs, 1).call
