"""PyTorch: the exported program as it stands, operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from tools.zoo.frameworks.runner import Array, Runner
from tools.zoo.packages import imported
from tools.zoo.tensors import tensors


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


def load_call(path: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
    """The program's module on tensors that are in place; its results are new tensors."""
    del outputs
    torch = imported("torch")
    module, arguments = program(path).module(), tensors(inputs)

    def call() -> None:
        with torch.no_grad():
            module(*arguments)

    return call
