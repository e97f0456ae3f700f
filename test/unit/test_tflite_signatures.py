"""Files of several subgraphs, and the signatures by which a model is called."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tflite
from litert import reference

import qdialect
from qdialect.cli.import_model import main
from qdialect.frontends.tflite import import_tflite, nodes_of
from qdialect.frontends.tflite.flatbuffer.reader import read_graph, read_inputs
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Signature, Subgraph, write_model
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

CODE = tflite.BuiltinOperator
X = np.array([-1.5, 0.25, 4.0], np.float32)


def graph_of(code: int, added: float) -> Subgraph:
    """An operator of what the graph is given and `added`."""
    writer = ModelWriter("a graph of two")
    x = writer.tensor("x:0", (3,), np.float32)
    constant = writer.constant("added", np.full(3, added, np.float32))
    y = writer.tensor("y:0", (3,), np.float32)
    writer.operator(code, [x, constant], y)
    return Subgraph(writer, [x], [y])


def two_graphs(subgraph: int = 1) -> bytes:
    graphs = [graph_of(CODE.MAXIMUM, 1.0), graph_of(CODE.MINIMUM, 2.0)]
    signatures = [
        Signature("upper", 0, {"value": 0}, {"result": 2}),
        Signature("lower", subgraph, {"number": 0}, {"limited": 2}),
    ]
    return write_model(graphs, signatures)


def names_of(module: ir.Module) -> list[str]:
    function = module.body.operations[0]
    entries = [*ir.ArrayAttr(function.attributes["arg_attrs"]), *ir.ArrayAttr(function.attributes["res_attrs"])]
    return [ir.StringAttr(ir.DictAttr(entry)["qnn.name"]).value for entry in entries]


def test_the_first_subgraph_is_the_model() -> None:
    module = import_tflite(two_graphs())
    np.testing.assert_array_equal(interpreter.run(module, [X])[0], np.maximum(X, 1))
    assert names_of(module) == ["x:0", "y:0"]


@pytest.mark.parametrize(
    ("signature", "wanted", "names"),
    [("upper", np.maximum(X, 1), ["value", "result"]), ("lower", np.minimum(X, 2), ["number", "limited"])],
)
def test_a_signature_chooses_a_subgraph_and_names_its_ends(signature: str, wanted: object, names: list[str]) -> None:
    module = import_tflite(two_graphs(), signature=signature)
    np.testing.assert_array_equal(interpreter.run(module, [X])[0], wanted)
    assert names_of(module) == names


def test_compile_and_the_commands_take_a_signature(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.tflite"
    path.write_bytes(two_graphs())
    np.testing.assert_array_equal(qdialect.compile(path, signature="lower")(X), np.minimum(X, 2))
    assert main([str(path), "--signature", "lower"]) == 0
    assert 'qnn.name = "limited"' in capsys.readouterr().out


def test_nodes_are_those_of_the_signature() -> None:
    assert [node.kind for node in nodes_of(two_graphs(), signature="lower")] == ["MINIMUM"]


@pytest.mark.parametrize("signature", ["", "upper", "lower"])
def test_inputs_are_read_alone_as_with_the_graph(signature: str) -> None:
    alone, whole = (read(two_graphs(), signature) for read in (read_inputs, read_graph))
    assert alone.inputs == tuple(replace(tensor, data=None) for tensor in whole.inputs)
    assert [alone.name_of(tensor) for tensor in alone.inputs] == [whole.name_of(tensor) for tensor in whole.inputs]


def test_an_input_that_is_not_there_is_damage_where_inputs_are_read_alone() -> None:
    one = graph_of(CODE.MAXIMUM, 1.0)
    content = write_model([Subgraph(one.writer, [9], one.outputs)])
    with pytest.raises(ImportModelError, match="the graph's inputs must name existing tensors, but got 9"):
        read_inputs(content)


def test_an_unknown_signature_names_those_of_the_model() -> None:
    with pytest.raises(
        ImportModelError, match=r"signature must be one of the model's \['upper', 'lower'\], but got 'x'"
    ):
        import_tflite(two_graphs(), signature="x")


def test_a_model_without_signatures_refuses_one() -> None:
    with pytest.raises(ImportModelError, match=r"signature must be one of the model's \[\], but got 'x'"):
        import_tflite(write_model([graph_of(CODE.MAXIMUM, 1.0)]), signature="x")


def test_a_signature_of_a_subgraph_that_is_not_there_is_damage() -> None:
    with pytest.raises(ImportModelError, match="file is damaged: signature 'lower' has no subgraph 2"):
        import_tflite(two_graphs(2), signature="lower")


def with_unsupported(code: int) -> Subgraph:
    """An arc tangent, which LiteRT runs, behind an operator of ours."""
    one = graph_of(code, 1.0)
    writer = one.writer
    image, angle = (writer.tensor(name, (1, 1, 1, 3), np.float32) for name in ("image", "angle"))
    shape = writer.constant("shape", np.array([1, 1, 1, 3], np.int32))
    writer.operator(CODE.RESHAPE, [*one.outputs, shape], image)
    writer.operator(CODE.ATAN2, [image, image], angle)
    return Subgraph(writer, one.inputs, [angle])


def test_a_signature_is_compiled_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "two.tflite"
    graphs = [graph_of(CODE.MAXIMUM, 1.0), with_unsupported(CODE.MINIMUM)]
    path.write_bytes(write_model(graphs, [Signature("lower", 1, {"number": 0}, {"normal": 4})]))
    executable = qdialect.compile(path, signature="lower", fallback="framework")
    found = executable(X)
    (wanted,) = reference(write_model([with_unsupported(CODE.MINIMUM)]), [X])
    np.testing.assert_array_equal(found, wanted)
