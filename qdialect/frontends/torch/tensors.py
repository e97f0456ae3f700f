"""What is PyTorch's own among the tensors of a plan.

PyTorch quantizes by ``clamp(round_half_even(x * float32(1 / s)) + z)`` and dequantizes by ``float32(q - z) * s``, both
in float32 (``quantized_decomposed``).
"""

from __future__ import annotations

from qdialect.frontends.planning import tensors as planning
from qdialect.profiles import PYTORCH


class Quantized(planning.Quantized):
    """What a dequantize gives."""

    profile = PYTORCH
