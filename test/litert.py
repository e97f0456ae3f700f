"""What LiteRT's reference kernels make of a model."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from qdialect.frontends import frameworks

Array = NDArray[Any]


def reference(content: bytes, inputs: Sequence[Array]) -> Sequence[Array]:
    """Its outputs, by the reference kernels alone."""
    return frameworks.load_litert(content, 1, is_reference=True)(inputs)
