"""Files that exhaust, crash or run on: each ends soon, in a module or in an error that says what was found."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounds import deadline
from onnx import GraphProto, ModelProto, SparseTensorProto, TensorProto, numpy_helper
from onnx_graphs import ModelBuilder

import qdialect
from qdialect.cli import import_model
from qdialect.frontends.onnx import import_onnx
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import ImportModelError

X = (0.1, 0)


def chain(kinds: Sequence[str], count: int) -> ModelBuilder:
    b = ModelBuilder()
    value = b.dequantize(b.input("x", (1, 4), np.int8), X, np.int8)
    for index in range(count):
        value = b.node(kinds[index % len(kinds)], value)
    b.node("QuantizeLinear", value, *b.parameters(X, np.int8), output="y")
    return b


def notes_of(content: bytes) -> str:
    with pytest.raises(ImportModelError) as caught:
        import_onnx(content)
    return "\n".join(caught.value.render().split("\n")[1:]) or caught.value.render()


def evaluated(kind: str, *operands: Any, **attributes: Any) -> bytes:
    """A node on constants, whose result is the model's."""
    b = ModelBuilder()
    b.input("x", (1,), np.uint8)
    b.node(kind, *(b.constant(np.asarray(operand)) for operand in operands), output="y", **attributes)
    return b.finish("y", dtype=np.int64)


def timed(work: Callable[[], object]) -> None:
    with deadline():
        work()


@pytest.mark.parametrize("count", [40, 2000])
def test_operands_named_twice_are_computed_once(count: int) -> None:
    b = ModelBuilder()
    value = b.dequantize(b.input("x", (1, 4), np.int8), X, np.int8)
    for _ in range(count):
        value = b.node("Add", value, value)
    b.node("QuantizeLinear", value, *b.parameters(X, np.int8), output="y")
    timed(lambda: import_onnx(b.finish("y", dtype=np.int8)))


def test_parts_joined_and_cut_again_and_again() -> None:
    b = ModelBuilder()
    value = b.node("Relu", b.dequantize(b.input("x", (1, 4), np.int8), X, np.int8))
    bounds = [b.constant(np.array([entry], np.int64)) for entry in (0, 4, 1)]
    for _ in range(60):
        value = b.node("Slice", b.node("Concat", value, value, axis=1), *bounds)
    b.node("QuantizeLinear", value, *b.parameters(X, np.int8), output="y")
    timed(lambda: import_onnx(b.finish("y", dtype=np.int8)))


@pytest.mark.parametrize("kinds", [["Relu", "Identity", "Abs"], ["HardSwish", "Relu"]])
def test_a_long_chain_is_imported_and_compiled(kinds: list[str]) -> None:
    module = import_onnx(chain(kinds, 2000).finish("y", dtype=np.int8))
    (result,) = (qdialect.compile(module)(np.array([[-100, 0, 5, 100]], np.int8)),)
    assert isinstance(result, np.ndarray)


def test_a_chain_of_twenty_thousand() -> None:
    timed(lambda: import_onnx(chain(["Relu"], 20000).finish("y", dtype=np.int8)))


@pytest.mark.parametrize(
    ("reason", "content"),
    [
        ("attribute 'value_ints' must be of type INTS, but got STRING", evaluated("Constant", value_ints="abc")),
        ("attribute 'value' must be of type TENSOR, but got STRING", evaluated("Constant", value="abc")),
        ("attribute 'value' must be of type TENSOR, but got GRAPH", evaluated("Constant", value=GraphProto(name="g"))),
        ("attribute 'value' must be of type TENSOR, but got INT", evaluated("ConstantOfShape", [2], value=3)),
        ("attribute 'axis' must be of type INT, but got FLOAT", evaluated("Concat", [2], axis=1.5)),
        ("attribute 'axis' must be of type INT, but got STRING", evaluated("Gather", [2], [0], axis="a")),
        ("axes must be in [-2, 2), but got [1073741824]", evaluated("Unsqueeze", [2], [2**30])),
        ("axes must be in [-2, 2), but got [140737488355328]", evaluated("Unsqueeze", [2], [2**47])),
        ("axes must be in [-1, 1), but got [4611686018427387904]", evaluated("Squeeze", [2], [2**62])),
        ("axis must be in [-1, 1), but got 7", evaluated("Gather", [2], [0], axis=7)),
        ("extents and axes must be integers, but got float32", evaluated("ConstantOfShape", np.ones(1, np.float32))),
        ("extents of at least 0, but got [-3]", evaluated("ConstantOfShape", [-3])),
        ("at most 2147483647 elements, but has the shape [4611686018427387904]", evaluated("ConstantOfShape", [2**62])),
        ("but 268437376 are left for a constant of shape [1073741824]", evaluated("ConstantOfShape", [2**30])),
        ("must span a range, but got 0.0, 10.0 and 0.0", evaluated("Range", 0, 10, 0)),
        ("at most 2147483647 elements", evaluated("Range", 0, 2**62, 1)),
        ("must broadcast, but have the shapes [2] and [3]", evaluated("Add", [1, 2], [1, 2, 3])),
        ("must have 2 inputs, but got 1", evaluated("Add", [1, 2])),
        ("constant inputs must fit the operator", evaluated("Concat", [1], 2, axis=0)),
    ],
)  # fmt: skip
def test_constants_and_attributes_of_a_wrong_kind(reason: str, content: bytes) -> None:
    assert reason in notes_of(content)


@pytest.mark.parametrize(
    ("reason", "attribute"),
    [("attribute 'start' must be of type INT, but got FLOAT", 1.5), ("must be of type INT, but got STRING", "a")],
)
def test_a_shape_from_a_wrong_start(reason: str, attribute: object) -> None:
    b = ModelBuilder()
    b.node("Shape", b.input("x", (1, 4), np.uint8), output="y", start=attribute)
    assert reason in notes_of(b.finish("y", dtype=np.int64, version=15))


@pytest.mark.parametrize(
    ("kind", "operands"),
    [
        ("Expand", [np.array([2**15, 2**15])]),
        ("Tile", [np.array([2**15, 2**15])]),
        ("Pad", [np.array([0, 0, 2**15, 2**15])]),
    ],
)
def test_constants_that_are_moved_stay_in_the_budget(kind: str, operands: list[Any]) -> None:
    content = evaluated(kind, np.ones((1, 1), np.float32), *operands)
    timed(lambda: notes_of(content))
    assert "constants that a model makes must have at most" in notes_of(content)


def test_many_lists_of_indices_stay_in_the_budget() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 2**19), np.uint8)
    pads = b.constant(np.array([0, 2**18, 0, 2**18 - 8], np.int64))
    names = [b.node("Pad", x, pads, mode="reflect") for _ in range(200)]
    content = b.finish(*names)
    timed(lambda: notes_of(content))
    assert "are left for 1048568 indices" in notes_of(content)


def test_results_of_any_size_are_named() -> None:
    b = ModelBuilder()
    value = b.dequantize(b.input("x", (1, 4, 40000, 8000), np.uint8), X)
    b.node("Tile", value, b.constant(np.array([2, 2, 2, 2], np.int64)), output="y", name="huge")
    assert "node 1 Tile ('huge'): result must have at most 2147483647 elements" in notes_of(b.finish("y"))


def test_a_float_operator_on_a_large_tensor_needs_no_constant_of_its_size() -> None:
    b = ModelBuilder()
    b.node("LeakyRelu", b.input("x", (1, 4, 20000, 20000)), output="y")
    timed(lambda: import_onnx(b.finish("y", dtype=np.float32)))


def test_strings_and_large_sparse_constants_are_named() -> None:
    b = ModelBuilder()
    b.node("Mul", b.input("x", (1,)), "k", output="y")
    b.constants.append(TensorProto(name="k", data_type=TensorProto.STRING, dims=[1], string_data=[b"9" * 400]))
    assert "constant 'k' must hold numbers, but holds elements of type STRING" in notes_of(b.finish("y"))
    model = ModelProto.FromString(b.finish("y"))
    del model.graph.initializer[:]
    values, indices = (
        numpy_helper.from_array(np.ones(1, np.float32), "k"),
        numpy_helper.from_array(np.zeros(1, np.int64)),
    )
    for dims, reason in (([2**40], "constant must have at most"), ([0], "sparse constant must hold elements of [0]")):
        del model.graph.sparse_initializer[:]
        model.graph.sparse_initializer.append(SparseTensorProto(values=values, indices=indices, dims=dims))
        assert reason in notes_of(model.SerializeToString())


def test_a_constant_that_is_larger_than_its_data() -> None:
    b = ModelBuilder()
    b.node("Mul", b.input("x", (1,)), "k", output="y")
    b.constants.append(TensorProto(name="k", data_type=TensorProto.FLOAT, dims=[2**40], raw_data=b"1234"))
    assert "file is damaged: constant 'k' cannot be read" in notes_of(b.finish("y"))


def test_names_that_are_no_text_or_not_unique() -> None:
    b = ModelBuilder()
    b.node("Relu", b.input("x", (1,), np.uint8), output="yyyy")
    content = b.finish("yyyy")
    assert "names in it must be UTF-8" in notes_of(content.replace(b"yyyy", b"\xff\xfe\xfd\xfc"))
    twice = ModelProto.FromString(content)
    twice.graph.input.append(twice.graph.input[0])
    assert "inputs must have names of their own, but two are called 'x'" in notes_of(twice.SerializeToString())


def test_a_node_that_reads_itself_and_a_cycle() -> None:
    b = ModelBuilder()
    b.input("x", (1,), np.uint8)
    b.node("Relu", "y", output="y")
    assert "node 0 Relu ('y') reads 'y', which nothing before it gives" in notes_of(b.finish("y"))
    b = ModelBuilder()
    b.node("Max", b.input("x", (1,), np.uint8), "z", output="y")
    b.node("Relu", "y", output="z")
    assert "node 0 Max ('y') reads 'z', which nothing before it gives" in notes_of(b.finish("y"))


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "a/../../secret.bin", "link.bin"])
def test_external_data_stays_in_the_folder_of_the_model(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    (folder / "a").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(b"1234")
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    b = ModelBuilder()
    b.node("Mul", b.input("x", (1,)), "k", output="y")
    tensor = TensorProto(name="k", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    b.constants.append(tensor)
    path = folder / "model.onnx"
    path.write_bytes(b.finish("y", dtype=np.float32))
    with pytest.raises(ImportModelError, match="constant 'k'"):
        import_onnx(path)


def test_a_report_of_a_refused_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(evaluated("Constant", value_ints="abc"))
    assert import_model.main([str(path), "--report"]) == 1
    assert "attribute 'value_ints' must be of type INTS" in capsys.readouterr().out


def test_one_number_that_fills_a_tensor_is_held_once() -> None:
    b = ModelBuilder()
    b.node("LeakyRelu", b.input("x", (4, 4)), output="y", alpha=0.5)
    module = import_onnx(b.finish("y", dtype=np.float32))
    function = module.body.operations[0].regions[0].blocks[0].operations
    constants = [op.attributes["value"] for op in function if op.operation.name == "qnn.constant"]
    assert constants
    assert all(isinstance(value, ir.DenseElementsAttr) and value.is_splat for value in constants)


def test_a_constant_of_strings_is_refused_where_it_is_read() -> None:
    """By a node, or as a result."""
    b = ModelBuilder()
    model = ModelProto.FromString(b.finish(b.node("Relu", b.input("x", (2,))), dtype=np.float32))
    model.graph.initializer.append(
        TensorProto(name="labels", data_type=TensorProto.STRING, dims=[2], string_data=[b"cat", b"dog"])
    )
    assert "qnn" not in str(import_onnx(model.SerializeToString())).split("func.func")[0]
    model.graph.output[0].name = "labels"
    assert "output 'labels': constant 'labels' must hold numbers" in notes_of(model.SerializeToString())
    model.graph.output[0].name, model.graph.node[0].input[0] = model.graph.node[0].output[0], "labels"
    refused = "node 0 Relu.*constant 'labels' must hold numbers, but holds elements of type STRING"
    assert re.search(refused, notes_of(model.SerializeToString()))
