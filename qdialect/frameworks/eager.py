"""PyTorch's own operators, one after the other."""

from __future__ import annotations

from qdialect.frameworks.framework import Framework

FRAMEWORK = Framework("PyTorch", "torch")
