"""Operators with graphs of their own, If, Loop and Scan: refused with the node, whatever their graphs hold."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, TensorProto, helper
from onnx_graphs import ModelBuilder

import qdialect
from qdialect.frontends.onnx import import_onnx
from qdialect.support.diagnostics import ImportModelError


def notes_of(content: bytes) -> list[str]:
    with pytest.raises(ImportModelError, match="unsupported operation") as caught:
        import_onnx(content)
    return [note.message for note in caught.value.diagnostics[0].notes]


def graph(*names: str) -> GraphProto:
    """The identity of each input."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in names]
    nodes = [helper.make_node("Identity", [name], [f"{name}_after"]) for name in names]
    after = [helper.make_tensor_value_info(f"{name}_after", TensorProto.FLOAT, [4]) for name in names]
    return helper.make_graph(nodes, "inner", info, after)


def branch() -> GraphProto:
    """A graph that reads the outer one."""
    result = helper.make_tensor_value_info("b", TensorProto.FLOAT, [4])
    return helper.make_graph([helper.make_node("Identity", ["x"], ["b"])], "branch", [], [result])


def model(kind: str, *constants: Any, **graphs: Any) -> bytes:
    builder = ModelBuilder()
    x = builder.input("x", [4])
    inputs = [builder.constant(np.array(one)) for one in constants]
    if kind == "If" and not constants:
        inputs = [builder.input("condition", [], np.bool_)]
    data = [] if kind == "If" else [x]
    result = builder.node(kind, *inputs, *data, name="inner one", output="y", **graphs)
    return builder.finish(result, dtype=np.float32)


def test_a_branch_is_refused_where_its_condition_is_not_known() -> None:
    content = model("If", then_branch=branch(), else_branch=branch())
    assert notes_of(content) == ["node 0 If ('inner one'): operator is not supported"]


def test_a_loop_is_refused() -> None:
    content = model("Loop", 3, True, body=graph("v"))
    assert notes_of(content) == ["node 0 Loop ('inner one'): operator is not supported"]


def test_a_scan_is_refused() -> None:
    content = model("Scan", body=graph("v"), num_scan_inputs=1)
    assert notes_of(content) == ["node 0 Scan ('inner one'): operator is not supported"]


def test_what_is_within_an_unsupported_graph_is_not_listed() -> None:
    inner = helper.make_graph([helper.make_node("Unique", ["x"], ["b"])], "branch", [], list(branch().output))
    content = model("If", then_branch=inner, else_branch=branch())
    assert notes_of(content) == ["node 0 If ('inner one'): operator is not supported"]


def test_what_is_within_the_branch_that_is_taken_is_listed() -> None:
    inner = helper.make_graph([helper.make_node("Unique", ["x"], ["b"])], "branch", [], list(branch().output))
    content = model("If", True, then_branch=inner, else_branch=branch())
    assert notes_of(content) == ["node 0 Unique ('y/b'): operator is not supported"]


def test_a_graph_reads_what_a_later_node_gives(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, condition = builder.input("x", [4]), builder.input("condition", [], np.bool_)
    result = helper.make_tensor_value_info("b", TensorProto.FLOAT, [4])
    graphs = {
        name: helper.make_graph([helper.make_node(kind, ["later"], ["b"])], "branch", [], [result])
        for name, kind in (("then_branch", "Neg"), ("else_branch", "Exp"))
    }
    builder.node("If", condition, output="y", **graphs)
    builder.node("Relu", x, output="later")
    path = tmp_path / "model.onnx"
    path.write_bytes(builder.finish("y", dtype=np.float32))
    executable = qdialect.compile(path, fallback="framework", cache=False)
    data = np.array([-1, 0, 1, 2], np.float32)
    np.testing.assert_array_equal(np.asarray(executable(data, np.array(True))), -np.maximum(data, 0))
