"""Which dialects a context has loaded: those of graphs, what a pass names, and for users all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import qdialect
from qdialect import PassManager
from qdialect.ir._mlir import ir
from qdialect.ir.context import available_dialects, make_context, parse
from qdialect.lowering.ir.upstream import load_kernel_dialects
from qdialect.passes.pass_base import Pass
from qdialect.passes.registry import all_passes
from qdialect.support import registry

GRAPH = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}"
# The bindings know this one by another name.
NAMES = [name for name in available_dialects() if name != "vcix"]


def loaded(context: ir.Context) -> set[str]:
    return {name for name in NAMES if context.is_dialect_loaded(name)}


def test_a_context_has_the_dialects_of_graphs() -> None:
    found = loaded(make_context())
    assert {"arith", "builtin", "func", "math", "qnn", "tensor"} <= found
    assert not {"gpu", "llvm", "quant", "tosa", "transform"} & found


def test_a_context_for_users_has_all(tmp_path: Path) -> None:
    path = tmp_path / "graph.mlir"
    path.write_text(GRAPH)
    modules = [qdialect.parse(GRAPH), qdialect.parse(path), qdialect.read_model(path)]
    for context in (qdialect.make_context(), *(module.context for module in modules)):
        assert loaded(context) == set(NAMES)


def test_a_context_has_all_where_a_module_from_outside_has_registered_something() -> None:
    registry.Registry[Callable[[], None]]("test").add(["test.op"], lambda: None)
    assert loaded(make_context()) == set(NAMES)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('%0 = "llvm.mlir.zero"() : () -> !llvm.ptr', "llvm"),
        ("func.func private @f(!quant.uniform<i8:f32, 0.5>)", "quant"),
        ("module attributes {test.a = #gpu.address_space<global>} {}", "gpu"),
    ],
)
def test_the_parser_loads_what_it_meets(text: str, name: str) -> None:
    context = make_context()
    before = loaded(context)
    module = parse(text, context)
    assert name in loaded(module.context)
    assert name not in before


@dataclass(frozen=True)
class Looks(Pass):
    """Writes down what is loaded while it runs."""

    name: ClassVar[str] = "test-looks"
    found: ClassVar[set[str]] = set()

    def run(self, module: ir.Module) -> None:
        self.found.clear()
        self.found.update(loaded(module.context))


class LooksForSome(Looks):
    """Names what it builds."""

    name: ClassVar[str] = "test-looks-for-some"
    dependent_dialects = ("quant",)


def test_a_pass_that_names_no_dialects_gets_all() -> None:
    PassManager(Looks()).run(parse(GRAPH))
    assert Looks.found == set(NAMES)


def test_a_pass_that_names_dialects_gets_them() -> None:
    PassManager(LooksForSome()).run(parse(GRAPH))
    assert "quant" in Looks.found
    assert "transform" not in Looks.found


def test_every_pass_of_the_project_names_its_dialects() -> None:
    own = [one for one in all_passes().values() if one.__module__.startswith("qdialect.")]
    assert own
    assert [one.name for one in own if one.dependent_dialects is None] == []


def test_lowering_loads_what_kernels_are_made_of() -> None:
    module = parse(GRAPH)
    load_kernel_dialects(module)
    assert {"linalg", "llvm", "memref", "omp", "scf", "transform", "ub", "vector", "x86"} <= loaded(module.context)
