"""frontends/onnx/branches.py: the branch of an If whose condition is known is part of the graph."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, helper, numpy_helper
from onnx_graphs import ModelBuilder, run

import qdialect
from qdialect.frontends.onnx import import_onnx
from qdialect.support.diagnostics import ImportModelError

X = np.random.default_rng(0).normal(size=(4, 1)).astype(np.float32)


def _graph(*nodes: Any, output: str, constants: dict[str, Any] | None = None) -> GraphProto:
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    return helper.make_graph(nodes, "branch", [], [helper.make_empty_tensor_value_info(output)], held)


NEGATED = _graph(helper.make_node("Neg", ["x"], ["t"]), output="t")
SCALED = _graph(helper.make_node("Mul", ["x", "c"], ["t"]), output="t", constants={"c": np.float32(3)})


def _branching(condition: Any, then: GraphProto, other: GraphProto, *, readers: int = 1) -> bytes:
    model = ModelBuilder()
    model.input("x", (4, 1))
    name = model.constant(np.asarray(condition))
    found = [model.node("If", name, then_branch=then, else_branch=other) for _ in range(readers)]
    total = found[0]
    for one in found[1:]:
        total = model.node("Add", total, one)
    return model.finish(total, dtype=np.float32)


@pytest.mark.parametrize(("condition", "wanted"), [(True, -X), (False, X * 3)])
def test_the_branch_that_is_taken_is_there_alone(condition: bool, wanted: Any) -> None:
    np.testing.assert_array_equal(run(_branching(condition, NEGATED, SCALED), X), wanted)


def test_branches_of_two_nodes_may_use_the_same_names() -> None:
    np.testing.assert_array_equal(run(_branching([False], NEGATED, SCALED, readers=2), X), X * 6)


def test_a_branch_may_give_what_is_outside_of_it() -> None:
    np.testing.assert_array_equal(run(_branching(True, _graph(output="x"), SCALED), X), X)


def test_nested_branches_read_names_of_the_outer_ones() -> None:
    inner = _graph(helper.make_node("Mul", ["t", "c"], ["u"]), output="u")
    nested = helper.make_node("If", ["k"], ["v"], then_branch=inner, else_branch=_graph(output="t"))
    constants = {"c": np.float32(3), "k": np.array(True)}
    outer = _graph(helper.make_node("Neg", ["x"], ["t"]), nested, output="v", constants=constants)
    np.testing.assert_array_equal(run(_branching(True, outer, SCALED), X), X * -3)


@pytest.mark.parametrize(("columns", "shape"), [(1, (4,)), (2, (4, 2))])
def test_a_condition_may_be_computed_from_extents(columns: int, shape: tuple[int, ...]) -> None:
    """As PyTorch exports `squeeze`."""
    model = ModelBuilder()
    x = model.input("x", (4, "columns"))
    one = model.constant(np.array([1]))
    extent = model.node("Gather", model.node("Shape", model.node("Relu", x)), one)
    squeezed = _graph(helper.make_node("Squeeze", ["x", one], ["t"]), output="t")
    same = _graph(helper.make_node("Identity", ["x"], ["t"]), output="t")
    found = model.node("If", model.node("Equal", extent, one), then_branch=squeezed, else_branch=same)
    module = import_onnx(model.finish(found, dtype=np.float32), dims={"columns": columns})
    assert np.shape(qdialect.compile(module)(np.ones((4, columns), np.float32))) == shape


def test_a_condition_of_run_time_is_refused_or_left_to_the_framework(tmp_path: Path) -> None:
    model = ModelBuilder()
    condition = model.input("b", (), np.bool_)
    model.input("x", (4, 1))
    found = model.node("If", condition, then_branch=NEGATED, else_branch=SCALED)
    content = model.finish(found, dtype=np.float32)
    with pytest.raises(ImportModelError, match="operator is not supported"):
        import_onnx(content)
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    executable = qdialect.compile(path, fallback="framework")
    np.testing.assert_array_equal(executable(np.array(False), X), X * 3)


def test_a_branch_that_gives_too_little_is_damaged() -> None:
    nothing = helper.make_graph([], "branch", [], [])
    with pytest.raises(ImportModelError, match="file is damaged"):
        import_onnx(_branching(True, nothing, SCALED))
