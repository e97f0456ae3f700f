"""PyTorch: the exported program as it stands, operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from qdialect.bench.frameworks import Array, Runner, imported


def tensors(arrays: Sequence[Array]) -> tuple[Tensor, ...]:
    """Tensors that share the memory of `arrays`."""
    return tuple(imported("torch").from_numpy(array) for array in arrays)


def program(path: str) -> Any:
    """The exported program of a ``.pt2`` archive."""
    torch = imported("torch")
    # Registers the operators that PT2E writes.
    imported("torch.ao.quantization.fx._decomposed")
    torch.set_num_threads(1)
    return torch.export.load(path)


def leaves(found: Any) -> list[Any]:
    """The tensors of a result: one, or a tuple or list of them."""
    one_or_many: Any = [found] if isinstance(found, Tensor) else found
    return list(one_or_many)


def load(path: str) -> Runner:
    """The program's module."""
    torch = imported("torch")
    module = program(path).module()

    def run(inputs: Sequence[Array]) -> list[Array]:
        with torch.no_grad():
            found: Any = module(*tensors(inputs))
        return [leaf.numpy() for leaf in leaves(found)]

    return run
