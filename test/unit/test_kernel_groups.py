"""Kernels of a large network are compiled a few at a time, with the same results."""

from __future__ import annotations

import numpy as np
import pytest

from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.lowering.ir.functions import functions, has_body, name_of
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.kernel_groups import taken_groups
from qdialect.lowering.pipeline.phases import lower
from qdialect.runtime import compile_module
from qdialect.targets import Target, host, resolve

MANY, FEW = 67, 9


def clips(count: int) -> ir.Module:
    """A network of as many kernels, each for another shape."""
    shapes = [f"tensor<1x{17 + index}xi8>" for index in range(count)]
    arguments = ", ".join(f"%x{i}: {shape}" for i, shape in enumerate(shapes))
    bodies = [
        f'%{i} = "qnn.clip"(%x{i}) {{min = {-i - 2} : i64, max = {i + 3} : i64}} : ({shape}) -> {shape}'
        for i, shape in enumerate(shapes)
    ]
    values, types = ", ".join(f"%{i}" for i in range(count)), ", ".join(shapes)
    lines = [f"func.func @main({arguments}) -> ({types}) {{", *bodies, f"return {values} : {types}", "}"]
    return ir.Module.parse("\n".join(lines), make_context())


@pytest.mark.parametrize("target", [host(), resolve("generic")], ids=lambda target: target.name)
@pytest.mark.parametrize("count", [FEW, MANY])
def test_results_do_not_depend_on_groups(count: int, target: Target) -> None:
    images = [np.arange(17 + index, dtype=np.int8).reshape(1, -1) - 20 for index in range(count)]
    executable = compile_module(clips(count), target=target)
    for index, (image, found) in enumerate(zip(images, executable.results(images), strict=True)):
        np.testing.assert_array_equal(found, image.clip(-index - 2, index + 3))


def test_groups_have_all_kernels_once() -> None:
    module = lower(clips(MANY), host(), Phase.VECTOR).module
    kernels = [name_of(one) for one in functions(module) if has_body(one) and name_of(one) != "main"]
    groups = [[name_of(one) for one in functions(group)] for group in taken_groups(module)]
    assert [name for group in groups for name in group if name != "main"] == kernels
    assert [len(group) for group in groups] == [14, 14, 15, 14, 15]
    assert [name_of(one) for one in functions(module) if has_body(one)] == ["main"]


def test_few_kernels_stay_with_their_network() -> None:
    assert not list(taken_groups(lower(clips(FEW), host(), Phase.VECTOR).module))


def test_what_needs_another_function_stays() -> None:
    text = "\n".join(f"func.func private @kernel_{i}() {{\n return\n}}" for i in range(MANY))
    caller = "func.func private @caller() {\n func.call @kernel_0() : () -> ()\n return\n}"
    main = "func.func @main() {\n func.call @caller() : () -> ()\n return\n}"
    attributes = 'module attributes {qnn.phase = "vector", qnn.target = "generic"}'
    module = ir.Module.parse(f"{attributes} {{\n{text}\n{caller}\n{main}\n}}", make_context())
    assert sum(len(functions(group)) - 1 for group in taken_groups(module)) == MANY
    assert [name_of(one) for one in functions(module) if has_body(one)] == ["caller", "main"]
