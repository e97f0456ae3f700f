"""LiteRT: its reference kernels for results, its default delegate for times."""

from __future__ import annotations

from pathlib import Path

from qdialect.bench.frameworks import litert_kernels, litert_segments
from qdialect.bench.frameworks.runner import Runner


def load(path: str) -> Runner:
    """An interpreter of the model with the reference kernels, as far as there are such."""
    content = Path(path).read_bytes()
    try:
        return litert_kernels.load(content, is_reference=True)
    # Some operators, ELU among them, are not among the reference kernels.
    except ValueError:
        return litert_segments.load(content)
