"""No second definition takes a name that another has: neither wins silently."""

from collections.abc import Callable
from importlib import import_module

import pytest

from qdialect.dialect import ClipOp
from qdialect.frontends.onnx.operators import registry as onnx_operators
from qdialect.frontends.tflite.operators import registry as tflite_operators
from qdialect.frontends.torch.operators import registry as torch_operators
from qdialect.lowering.qnn_to_linalg.graph.graph import lowers
from qdialect.passes.tosa.conversion import converts
from qdialect.reference.evaluators import EVALUATORS, evaluates
from qdialect.support.diagnostics import RegistrationError
from qdialect.support.registry import Registry

# Each fills a table while it is imported.
for package in (
    *("frontends.onnx", "frontends.tflite", "frontends.torch"),
    *("lowering.qnn_to_linalg.conversions", "passes.import_tosa"),
):
    import_module(f"qdialect.{package}")
import_module("qdialect.reference.interpreter")


def first(*_: object) -> None: ...


def second(*_: object) -> None: ...


def test_an_entry_is_found_under_each_of_its_names() -> None:
    registry = Registry[Callable[..., None]]("handler")
    registry.add(["a", "b"], first)
    registry.add(["c"], second)
    assert dict(registry) == {"a": first, "b": first, "c": second}
    assert len(registry) == 3


def test_a_second_definition_is_refused_and_changes_nothing() -> None:
    registry = Registry[Callable[..., None]]("handler")
    registry.add(["a"], first)
    with pytest.raises(
        RegistrationError, match=r"handler of 'a' must be registered once, but got \S+first and \S+second"
    ):
        registry.add(["b", "a"], second)
    assert dict(registry) == {"a": first}


def test_the_same_definition_may_come_again() -> None:
    registry = Registry[Callable[..., None]]("handler")
    registry.add(["a"], first)
    registry.add(["a"], first)
    assert dict(registry) == {"a": first}


def test_closures_of_one_function_are_different_definitions() -> None:
    registry = Registry[Callable[[], int]]("handler")

    def returning(value: int) -> Callable[[], int]:
        return lambda: value

    registry.add(["a"], returning(1))
    with pytest.raises(RegistrationError, match="handler of 'a' must be registered once"):
        registry.add(["a"], returning(2))


@pytest.mark.parametrize(
    "register",
    [
        evaluates(ClipOp),
        lowers(ClipOp),
        converts("tosa.add"),
        onnx_operators.imports("Add"),
        tflite_operators.imports("ADD"),
        torch_operators.imports("add.Tensor"),
    ],
    ids=["evaluator", "lowering", "tosa", "onnx", "tflite", "torch"],
)
def test_every_table_of_the_project_refuses_a_second_definition(register: Callable[[object], object]) -> None:

    with pytest.raises(RegistrationError, match="must be registered once"):
        register(second)
    assert EVALUATORS["qnn.clip"] is not second
