"""frontends/onnx/functions.py: functions that a model defines are replaced by their nodes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, FunctionProto, ModelProto, helper, load_from_string
from onnx_graphs import ModelBuilder, run

import qdialect
from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.onnx.importer import nodes_of
from qdialect.support.diagnostics import ImportModelError

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def _function(name: str, *nodes: Any, attributes: tuple[str, ...] = ()) -> FunctionProto:
    """Of `a`, which gives `b`."""
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, ["a"], ["b"], nodes, opsets, attributes=attributes)


def _model(call: str, *functions: FunctionProto, **attributes: Any) -> bytes:
    builder = ModelBuilder()
    result = builder.node(f"local.{call}", builder.input("x", (4, 3)), **attributes)
    model: ModelProto = load_from_string(builder.finish(result, dtype=np.float32, version=20))
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.extend(functions)
    return model.SerializeToString()


def _node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    domain = "local" if kind[0].islower() else ""
    return helper.make_node(kind, list(inputs), list(outputs), domain=domain, **attributes)


TWICE = _function("twice", _node("Add", "aa", "c"), _node("Relu", "c", "b"))


def test_a_function_of_functions_is_its_nodes() -> None:
    outer = _function("outer", _node("twice", "a", "c"), _node("twice", "c", "b"))
    content = _model("outer", outer, TWICE)
    assert [node.kind for node in nodes_of(content)] == ["Add", "Relu", "Add", "Relu"]
    np.testing.assert_array_equal(run(content, X), np.maximum(X * 4, 0))


def test_a_function_takes_attributes_of_its_call() -> None:
    inner = _node("Transpose", "a", "b")
    inner.attribute.append(AttributeProto(name="perm", type=AttributeProto.INTS, ref_attr_name="order"))
    content = _model("turn", _function("turn", inner, attributes=("order",)), order=[1, 0])
    np.testing.assert_array_equal(run(content, X), X.T)


def test_an_executable_with_fallback_has_no_functions_either(tmp_path: Path) -> None:
    unknown = _function("odd", _node("Det", "a", "c"), _node("Relu", "c", "b"))
    builder = ModelBuilder()
    result = builder.node("local.odd", builder.input("x", (4, 4)))
    model: ModelProto = load_from_string(builder.finish(result, dtype=np.float32, version=20))
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.append(unknown)
    x = np.diag([1, 2, 3, 0.5]).astype(np.float32)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    assert qdialect.compile(path, fallback="framework")(x) == 3


def test_a_function_that_calls_itself_is_refused() -> None:
    one, other = _function("one", _node("other", "a", "b")), _function("other", _node("one", "a", "b"))
    with pytest.raises(ImportModelError, match=r"'model\.onnx': file is damaged: a function of the model calls itself"):
        import_onnx(_model("one", one, other))


def test_functions_that_double_are_counted_before_they_are_inlined() -> None:
    doubling = [_function(f"f{i}", _node(f"f{i + 1}", "a", "c"), _node(f"f{i + 1}", "c", "b")) for i in range(40)]
    with pytest.raises(
        ImportModelError, match="functions of the model must give at most 1000000 nodes, but give 1099511627776"
    ):
        import_onnx(_model("f0", *doubling, _function("f40", _node("Relu", "a", "b"))))
