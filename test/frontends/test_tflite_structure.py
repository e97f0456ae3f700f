"""Composites, shapes and signatures of .tflite models."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from drawn_graphs import op_names
from numpy.typing import NDArray
from tflite_graphs import HALF, SCHEMA, i32, opened, options_of, packed, reference, refused, table

import qdialect
from qdialect.cli.import_model import main
from qdialect.frontends.tflite import import_tflite, nodes_of
from qdialect.frontends.tflite.flatbuffer.reader import read_graph, read_inputs
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Signature, Subgraph, write_model
from qdialect.frontends.tflite.folding import fold_constants
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

KIND = tflite.BuiltinOperator
SHAPE = (2, 5)
X = np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)


def _body(kind: int, inner: bool) -> Subgraph:
    """``(f(x) - x)^2``, or the composite of the next subgraph of f(x)."""
    writer = ModelWriter("decomposition")
    x, f, y = (writer.tensor(name, SHAPE, np.float32) for name in "xfy")
    writer.operator(kind, [x, x] if kind == KIND.ATAN2 else [x], f)
    if inner:
        writer.operator(KIND.STABLEHLO_COMPOSITE, [f], y)
    else:
        writer.operator(KIND.SQUARED_DIFFERENCE, [f, x], y)
    return Subgraph(writer, [x], [y])


def content(bodies: Sequence[int], decompositions: Sequence[int]) -> bytes:
    """``composite(-x)``; a subgraph for each of `bodies`, which name the next one, the last one excepted."""
    main = ModelWriter("a composite")
    x, n, y = (main.tensor(name, SHAPE, np.float32) for name in "xny")
    main.operator(KIND.NEG, [x], n)
    main.operator(KIND.STABLEHLO_COMPOSITE, [n], y)
    parts = [_body(kind, kind is not bodies[-1]) for kind in bodies]
    return _with_options(write_model([Subgraph(main, [x], [y]), *parts]), decompositions)


def _with_options(plain: bytes, decompositions: Sequence[int]) -> bytes:
    model = opened(plain)
    kinds = [entry.builtinCode for entry in model.operatorCodes]
    operators = [one for subgraph in model.subgraphs for one in subgraph.operators]
    composites = [one for one in operators if kinds[one.opcodeIndex] == KIND.STABLEHLO_COMPOSITE]
    for operator, index in zip(composites, decompositions, strict=True):
        operator.builtinOptions2Type = SCHEMA.BuiltinOptions2.StableHLOCompositeOptions
        attributes = list(import_module("flatbuffers.flexbuffers").Dumps({}))
        fields = {"decompositionSubgraphIndex": index, "compositeAttributes": attributes}
        operator.builtinOptions2 = table("StableHLOCompositeOptions", name="odml.square", **fields)
    return packed(model)


@pytest.mark.parametrize("bodies", [[KIND.RELU], [KIND.RELU6, KIND.ABS]])
def test_a_decomposition_takes_the_composites_stead(bodies: list[int]) -> None:
    model = content(bodies, range(1, 1 + len(bodies)))
    (wanted,) = reference(model, [X])
    np.testing.assert_array_equal(compile_module(import_tflite(model))(X), wanted)


def test_missing_operators_are_named_by_the_nodes_of_a_decomposition() -> None:
    assert "node 1 WHERE ('f'): operator is not supported: the shape" in refused(content([KIND.WHERE], [1]))


@pytest.mark.parametrize("decomposition", [0, 9, -1])
def test_one_without_a_decomposition_is_refused(decomposition: int) -> None:
    """One that names itself or nothing."""
    message = refused(content([KIND.RELU], [decomposition]))
    assert "node 1 STABLEHLO_COMPOSITE ('y'): operator is not supported" in message


def test_a_composite_of_itself_ends() -> None:
    assert "STABLEHLO_COMPOSITE" in refused(content([KIND.RELU, KIND.ABS], [1, 1]))


def test_litert_runs_one_that_is_not_compiled(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    model = content([KIND.ATAN2], [1])
    path.write_bytes(model)
    executable = qdialect.compile(path, fallback="framework", cache=False)
    assert executable.regions[-1].runner == "LiteRT"
    np.testing.assert_array_equal(executable(X), reference(model, [X])[0])


# Shape arithmetic is done when a model is read.


def reshaped(by: int = 7) -> bytes:
    """The rows of the shape that a graph computes from another tensor's: [extent 0, `by`, 2]."""
    writer = ModelWriter("shapes")
    x = writer.tensor("x", (3, 14), np.int8, HALF)
    shape, row = writer.tensor("shape", (2,), np.int32), writer.tensor("row", (), np.int32)
    packed, y = writer.tensor("packed", (3,), np.int32), writer.tensor("y", (3, by, 2), np.int8, HALF)
    begin, end = writer.constant("begin", i32([0])), writer.constant("end", i32([1]))
    writer.operator(KIND.SHAPE, [x], shape, *options_of("Shape", 2))
    writer.operator(KIND.STRIDED_SLICE, [shape, begin, end, end], row, *options_of("StridedSlice", 0, 0, 0, 0, 1))
    parts = [row, writer.constant("by", i32(by)), writer.constant("two", i32(2))]
    writer.operator(KIND.PACK, parts, packed, *options_of("Pack", 3, 0))
    writer.operator(KIND.RESHAPE, [x, packed], y)
    return writer.finish([x], [y])


def test_a_computed_shape_leaves_nothing_behind() -> None:
    module = import_tflite(reshaped())
    assert op_names(module) == ["qnn.reshape"]
    values = np.arange(42, dtype=np.int8).reshape(3, 14)
    assert np.array_equal(interpreter.run(module, [values])[0], values.reshape(3, 7, 2))


def test_a_computed_shape_that_does_not_fit_is_told() -> None:
    assert "node 3 RESHAPE ('y'): output must have 42 elements, but got 30" in refused(reshaped(5))


def arithmetic(kind: int, inputs: Sequence[NDArray[Any]], shape: Sequence[int], *option: Any) -> bytes:
    writer = ModelWriter("arithmetic")
    constants = [writer.constant(f"c{i}", array) for i, array in enumerate(inputs)]
    out = writer.tensor("out", shape, np.int32)
    x, y = (writer.tensor(name, (4,), np.int8, HALF) for name in "xy")
    writer.operator(kind, constants, out, *option)
    writer.operator(KIND.RESHAPE, [x], y)
    return writer.finish([x], [y])


A, C = i32([[7, -7], [3, 2]]), i32([2, -3])
FOLDED: dict[str, tuple[int, Sequence[NDArray[Any]], Any, tuple[Any, ...]]] = {
    "add": (KIND.ADD, (A, C), A + C, options_of("Add", 0)),
    "sub": (KIND.SUB, (A, C), A - C, options_of("Sub", 0)),
    "mul": (KIND.MUL, (A, C), A * C, options_of("Mul", 0)),
    "div": (KIND.DIV, (A, C), [[3, 2], [1, 0]], options_of("Div", 0)),
    "floor_div": (KIND.FLOOR_DIV, (A, C), A // C, ()),
    "floor_mod": (KIND.FLOOR_MOD, (A, C), np.mod(A, C), ()),
    "abs": (KIND.ABS, (A,), np.abs(A), ()),
    "neg": (KIND.NEG, (A,), -A, ()),
    "sign": (KIND.SIGN, (A,), np.sign(A), ()),
    "slice": (KIND.SLICE, (A, i32([0, 1]), i32([-1, 1])), A[:, 1:], ()),
    "select": (KIND.SELECT, (A > 0, A, -A), np.abs(A), ()),
    "select_v2": (KIND.SELECT_V2, (A > 0, A, C), np.where(A > 0, A, C), ()),
    "sum": (KIND.SUM, (A, i32([1])), A.sum(1), options_of("Reducer", 0)),
    "reduce_max": (KIND.REDUCE_MAX, (A, i32([0])), A.max(0), options_of("Reducer", 0)),
    "reduce_min": (KIND.REDUCE_MIN, (A, i32([0, 1])), A.min(), options_of("Reducer", 0)),
    "maximum": (KIND.MAXIMUM, (A, C), np.maximum(A, C), ()),
    "minimum": (KIND.MINIMUM, (A, C), np.minimum(A, C), ()),
    "cast": (KIND.CAST, (A.astype(np.int64),), A, ()),
    "concatenation": (KIND.CONCATENATION, (A, A), np.concatenate([A, A], 1), options_of("Concatenation", 1)),
    "gather": (KIND.GATHER, (A, i32([1, 0, 1])), A[:, [1, 0, 1]], options_of("Gather", 1)),
    "reduce_prod": (KIND.REDUCE_PROD, (A, i32([0])), A.prod(0), options_of("Reducer", 0)),
    "squeeze": (KIND.SQUEEZE, (A[None],), A, ()),
    "expand_dims": (KIND.EXPAND_DIMS, (C, i32(0)), C[None], ()),
    "strided_slice": (
        KIND.STRIDED_SLICE,
        (A, i32([1, 1]), i32([0, 5]), i32([-1, 1])),
        A[::-1, 1:],
        options_of("StridedSlice", 0, 1),
    ),
}


@pytest.mark.parametrize("case", FOLDED)
def test_arithmetic_on_known_integers(case: str) -> None:
    kind, inputs, wanted, option = FOLDED[case]
    graph = fold_constants(read_graph(arithmetic(kind, inputs, np.shape(wanted), *option)))
    assert [operator.kind for operator in graph.operators] == ["RESHAPE"]
    found = graph.tensors[len(inputs)].data
    assert found is not None
    assert found.dtype == np.int32
    assert np.array_equal(found, wanted)


LEFT: dict[str, bytes] = {
    "division by zero": arithmetic(KIND.DIV, (A, i32([1, 0])), A.shape, *options_of("Div", 0)),
    "floor division by zero": arithmetic(KIND.FLOOR_DIV, (A, i32([1, 0])), A.shape),
    "a remainder by zero": arithmetic(KIND.FLOOR_MOD, (A, i32([1, 0])), A.shape),
    "a slice that ends outside": arithmetic(KIND.SLICE, (A, i32([0, 1]), i32([2, 2])), A.shape),
    "another shape": arithmetic(KIND.FLOOR_DIV, (A, C), (4,)),
    "shapes that do not broadcast": arithmetic(KIND.MAXIMUM, (A, i32([1, 2, 3])), A.shape),
    "an operand too few": arithmetic(KIND.MAXIMUM, (A,), A.shape),
    "an index outside": arithmetic(KIND.GATHER, (C, i32([2])), (1,), *options_of("Gather", 0)),
    "a negative index": arithmetic(KIND.GATHER, (C, i32([-1])), (1,), *options_of("Gather", 0)),
    "floats": arithmetic(KIND.FLOOR_DIV, (np.ones(3, np.float32),) * 2, (3,)),
    "many entries": arithmetic(KIND.FLOOR_DIV, (np.ones(1025, np.int64),) * 2, (1025,)),
    "a clamp": arithmetic(KIND.ADD, (A, C), A.shape, *options_of("Add", 1)),
    "a condition for each row": arithmetic(
        KIND.SELECT, (np.array([True, False]), A, -A), A.shape, *options_of("Select")
    ),
}


@pytest.mark.parametrize("case", LEFT)
def test_operators_that_do_not_fit_stay_nodes(case: str) -> None:
    assert len(fold_constants(read_graph(LEFT[case])).operators) == 2
    if case != "a condition for each row":
        refused(LEFT[case])


def with_open_extents() -> bytes:
    """Rows of `x` behind a run-time SLICE whose size is only known when shapes are; the file has 1 for each extent."""
    writer = ModelWriter("open extents")
    x = writer.tensor("x", (5, 6), np.float32)
    shape, size = writer.tensor("shape", (2,), np.int32), writer.tensor("size", (2,), np.int32)
    rows = writer.tensor("rows", (1, 1), np.float32, signature=(-1, -1))
    square = writer.tensor("square", (1, 1), np.float32, signature=(-1, 6))
    y = writer.tensor("y", (1, 1), np.float32, signature=(-1, -1))
    writer.operator(KIND.SHAPE, [x], shape, *options_of("Shape", 2))
    writer.operator(KIND.SUB, [shape, writer.constant("two", i32([2, 0]))], size, *options_of("Sub", 0))
    writer.operator(KIND.SLICE, [x, writer.constant("begin", i32([1, 0])), size], rows)
    writer.operator(KIND.SQUARE, [rows], square)
    writer.operator(KIND.CONCATENATION, [square, rows], y, *options_of("Concatenation", 1))
    return writer.finish([x], [y])


def test_extents_that_the_file_leaves_open_are_those_of_the_operators() -> None:
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    (found,) = interpreter.run(import_tflite(with_open_extents()), [x])
    np.testing.assert_array_equal(found, np.concatenate([np.square(x[1:4]), x[1:4]], axis=1))


def test_an_extent_below_zero_is_told() -> None:
    """Windows that do not fit into an image whose extents the file leaves open."""
    writer = ModelWriter("windows")
    x = writer.tensor("x", (1, 1, 1, 2), np.float32)
    weight = writer.constant("weight", np.ones((2, 3, 3, 2), np.float32))
    y = writer.tensor("y", (1, 1, 1, 2), np.float32, signature=(1, -1, -1, 2))
    z = writer.tensor("z", (1, 1, 1, 2), np.float32, signature=(1, -1, -1, 2))
    bias = writer.constant("bias", np.zeros(2, np.float32))
    writer.operator(KIND.CONV_2D, [x, weight, bias], y, *options_of("Conv2D", 1, 1, 1))
    writer.operator(KIND.SQUARE, [y], z)
    refused(writer.finish([x], [z]))


# Files of several subgraphs, and the signatures by which a model is called.

CODE = tflite.BuiltinOperator
X_SIGNATURES = np.array([-1.5, 0.25, 4.0], np.float32)


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
    np.testing.assert_array_equal(interpreter.run(module, [X_SIGNATURES])[0], np.maximum(X_SIGNATURES, 1))
    assert names_of(module) == ["x:0", "y:0"]


@pytest.mark.parametrize(
    ("signature", "wanted", "names"),
    [
        ("upper", np.maximum(X_SIGNATURES, 1), ["value", "result"]),
        ("lower", np.minimum(X_SIGNATURES, 2), ["number", "limited"]),
    ],
)
def test_a_signature_chooses_a_subgraph_and_names_its_ends(signature: str, wanted: object, names: list[str]) -> None:
    module = import_tflite(two_graphs(), signature=signature)
    np.testing.assert_array_equal(interpreter.run(module, [X_SIGNATURES])[0], wanted)
    assert names_of(module) == names


def test_compile_and_the_commands_take_a_signature(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.tflite"
    path.write_bytes(two_graphs())
    np.testing.assert_array_equal(qdialect.compile(path, signature="lower")(X_SIGNATURES), np.minimum(X_SIGNATURES, 2))
    assert main([str(path), "--signature", "lower"]) == 0
    assert 'qnn.name = "limited"' in capsys.readouterr().out


def test_nodes_are_those_of_the_signature() -> None:
    assert [node.kind for node in nodes_of(two_graphs(), signature="lower")] == ["MINIMUM"]


def test_an_input_that_is_not_there_is_damage_where_inputs_are_read_alone() -> None:
    one = graph_of(CODE.MAXIMUM, 1.0)
    content = write_model([Subgraph(one.writer, [9], one.outputs)])
    with pytest.raises(ImportModelError, match="the graph's inputs must name existing tensors, but got 9"):
        read_inputs(content)


def test_an_unknown_signature_names_those_of_the_model() -> None:
    message = refused(two_graphs(), signature="x")
    assert "signature must be one of the model's ['upper', 'lower'], but got 'x'" in message


def test_a_signature_of_a_subgraph_that_is_not_there_is_damage() -> None:
    message = refused(two_graphs(2), signature="lower")
    assert "file is damaged: signature 'lower' has no subgraph 2" in message


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
    found = executable(X_SIGNATURES)
    (wanted,) = reference(write_model([with_unsupported(CODE.MINIMUM)]), [X_SIGNATURES])
    np.testing.assert_array_equal(found, wanted)
