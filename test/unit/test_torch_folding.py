"""Which operators the front end runs itself: pure ones, by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import qdialect
from qdialect.frontends.building.checks import Budget, UnsupportedError
from qdialect.frontends.torch import import_torch
from qdialect.frontends.torch.program.folding import FOLDABLE, evaluate, fold
from qdialect.frontends.torch.program.model import Element, Node, Ref
from qdialect.frontends.torch.program.pytorch_operators import schema_of

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


def call(kind: str, **arguments: Any) -> Node:
    return Node("node", kind, arguments, (), "")


@pytest.mark.parametrize("kind", sorted(FOLDABLE))
def test_operators_are_pure(kind: str) -> None:
    """They write to no operand, draw no random numbers and are in PyTorch's registry."""
    schema = schema_of(kind)
    assert schema is not None
    assert not schema.is_mutable or kind == "aten.detach_.default"
    package, name, overload = kind.split(".")
    operator: Any = getattr(getattr(getattr(torch.ops, package), name), overload)
    assert torch.Tag.nondeterministic_seeded not in operator.tags
    assert all(argument.name not in ("filename", "generator") for argument in schema.arguments)


def test_operators_by_name() -> None:
    found = evaluate(call("aten.add.Tensor", self=Ref("a"), other=Ref("b"), alpha=2), {"a": ARRAY, "b": ARRAY})
    assert np.array_equal(found, ARRAY * 3)
    found = evaluate(call("aten.permute.default", self=Ref("a"), dims=(1, 0)), {"a": ARRAY})
    assert np.array_equal(found, ARRAY.T)


def test_operators_without_operands() -> None:
    made = call(
        "aten.full.default", size=(2, 1), fill_value=7, dtype=Element("i8"), layout=None, device="cuda", pin_memory=None
    )
    found = fold(made, {}, Budget.of_file(0))
    assert found.dtype == np.int8
    assert found.tolist() == [[7], [7]]


def test_constants_are_not_written_to() -> None:
    array = ARRAY.copy()
    array.flags.writeable = False
    found = fold(call("aten.relu.default", self=Ref("a")), {"a": array}, Budget.of_file(0))
    assert np.array_equal(found, ARRAY)


def test_other_operators_are_not_run(tmp_path: Path) -> None:
    path = tmp_path / "made"
    mapped = call("aten.from_file.default", filename=str(path), shared=True, size=16)
    for attempt in (lambda: evaluate(mapped, {}), lambda: fold(mapped, {}, Budget.of_file(0))):
        with pytest.raises(UnsupportedError, match="operator is not supported on constants"):
            attempt()
    assert not path.exists()


WRONG: dict[str, dict[str, Any]] = {
    "a string for a tensor": {"self": "x", "other": Ref("a"), "alpha": 1},
    "a tuple for a tensor": {"self": (1, 2), "other": Ref("a"), "alpha": 1},
    "a type that PyTorch lacks": {"self": Ref("a"), "other": Element("load"), "alpha": 1},
    "shapes that do not broadcast": {"self": Ref("a"), "other": Ref("b"), "alpha": 1},
    "an argument left out": {"self": Ref("a"), "alpha": 1},
    "another argument": {"self": Ref("a"), "other": Ref("a"), "alpha": 1, "beta": 1},
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments(what: str) -> None:
    arrays = {"a": ARRAY, "b": np.zeros(5, np.float32)}
    with pytest.raises(UnsupportedError):
        evaluate(call("aten.add.Tensor", **WRONG[what]), arrays)


def test_types_are_checked_before_the_kernel() -> None:
    """PyTorch ends the process where a number is no type of its own."""
    converted = call(
        "aten.to.dtype", self=Ref("a"), dtype=2**63 - 1, non_blocking=False, copy=False, memory_format=None
    )
    with pytest.raises(
        UnsupportedError, match="argument 'dtype' must be of type ScalarType, but got 9223372036854775807"
    ):
        evaluate(converted, {"a": ARRAY})


def test_budget() -> None:
    budget = Budget(maximum=100)
    fold(call("aten.relu.default", self=Ref("a")), {"a": ARRAY}, budget)
    assert budget.spent == 48
    fold(call("aten.relu.default", self=Ref("a")), {"a": ARRAY}, budget)
    with pytest.raises(
        UnsupportedError,
        match=r"^constants that a model makes must have at most 100 bytes, but 4 are left for a constant",
    ):
        fold(call("aten.relu.default", self=Ref("a")), {"a": ARRAY}, budget)


def test_random_numbers_are_not_constants() -> None:
    class Noisy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.rand(4)

    with pytest.raises(qdialect.ImportModelError) as caught:
        import_torch(torch.export.export(Noisy(), (torch.zeros(4),)))
    assert "aten.rand: operator is not supported" in caught.value.render()
