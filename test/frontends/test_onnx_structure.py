"""Branches, functions, subgraphs and constants of ONNX models."""

import pickle
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, helper, numpy_helper, parser
from onnx_graphs import ModelBuilder, drawn, of_onnx_runtime, refused, run
from tolerances import assert_floats_within

import qdialect
from qdialect.arithmetic.machine import multiply_add
from qdialect.cli import import_model
from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.onnx.importer import nodes_of
from qdialect.runtime.loaded import load_content
from qdialect.support.diagnostics import ImportModelError, InputError, LoadError, QDialectError

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


SAME = _graph(output="x")


@pytest.mark.parametrize(
    ("condition", "then", "readers", "wanted"),
    [(True, NEGATED, 1, -X), (False, NEGATED, 1, X * 3), ([False], NEGATED, 2, X * 6), (True, SAME, 1, X)],
)
def test_the_branch_that_is_taken_is_there_alone(condition: Any, then: GraphProto, readers: int, wanted: Any) -> None:
    """Branches of two nodes may use the same names, and one may give what is outside of it."""
    np.testing.assert_array_equal(run(_branching(condition, then, SCALED, readers=readers), X), wanted)


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


# Conditions of run time: a network for each of their values, and one for what computes them.

CHOICES = {
    "an input": "y = If (d) <{then}, {other}>",
    "computed, between others": "a = Exp (x) p = {is_large} q = If (p) <{then}, {other}> y = Add (q, x)",
    "several with one condition": "q = If (d) <{then}, {other}> nd = Not (d) y = If (nd) <{other}, {then}>",
    "one depends on another": "a = If (d) <{then}, {other}> p = {is_large} y = If (p) <{then}, {other}>",
    "one in another": "p = {is_large} y = If (d) <{outer} {{ u = If (p) <{then}, {other}> }}, {other}>",
    "one of its own in another": "y = If (d) <{outer} {{ a = Neg (x) p = {is_large} u = {inner} }}, {other}>",
}
THEN = "then_branch = g2 () => (float[4, 3] t) { t = Tanh (x) }"
OTHER = "else_branch = g3 () => (float[4, 3] e) { e = Mul (x, three) }"
PARTS = {
    "then": THEN,
    "other": OTHER,
    "inner": f"If (p) <{THEN}, {OTHER}>",
    "outer": "then_branch = g1 () => (float[4, 3] u)",
    "is_large": "Greater (la, zero)",
}


def _choosing(text: str) -> bytes:
    """A model of x [4, 3] and a condition d; `is_large` is about the largest number of `a`, or of x."""
    source = "a" if "a = " in text else "x"
    text = text.format(**PARTS).replace("p = Greater", f"la = ReduceMax <keepdims = 0> ({source}) p = Greater")
    head = '<ir_version: 9, opset_import: ["" : 17]> g (float[4, 3] x, bool[1] d) => (float[4, 3] y)'
    constants = "<float three = {3.0}, float zero = {0.9}>"
    return parser.parse_model(f"{head} {constants} {{ {text} }}").SerializeToString()


@pytest.mark.parametrize("text", CHOICES.values(), ids=CHOICES)
def test_conditions_of_run_time(text: str, tmp_path: Path) -> None:
    content = _choosing(text)
    executable = qdialect.compile(content, fallback="none")
    assert {region.runner for region in executable.regions} == {"qdialect"}
    others: list[Any] = []
    if "{outer}" in text:
        executable.save(tmp_path / "model.so")
        others = [qdialect.load(tmp_path / "model.so"), pickle.loads(pickle.dumps(executable))]
    x, d, y = np.zeros((4, 3), np.float32), np.zeros(1, np.bool_), np.empty((4, 3), np.float32)
    bound = executable.bind([x, d], [y])
    for value, sign in product((False, True), (-1, 1)):
        x[:], d[:] = sign * (1 + np.random.default_rng(value).random((4, 3))), value
        bound()
        (wanted,) = of_onnx_runtime(content, x, d)
        np.testing.assert_allclose(y, wanted, rtol=1e-6)
        for one in (executable, *others):
            np.testing.assert_array_equal(one(x=x, d=d), y)


def test_branches_with_open_extents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As those of merged decoders: with a cache that grows, and without."""
    joined = _graph(helper.make_node("Concat", ["cache", "x"], ["t"], axis=0), output="t")
    fresh = _graph(helper.make_node("Identity", ["x"], ["t"]), output="t")
    model = ModelBuilder()
    condition = model.input("use_cache_branch", (1,), np.bool_)
    model.input("cache", ("past", 3))
    model.input("x", ("rows", 3))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.finish(model.node("If", condition, then_branch=joined, else_branch=fresh), dtype=np.float32))
    executable = qdialect.compile(path, dims={"past": 2, "rows": 1}, fallback="none")
    assert executable.outputs[0].shape == (-1, 3)
    of_one = qdialect.compile(path, dims={"past": 2, "rows": 1}, branches={"use_cache_branch": True}, fallback="none")
    assert of_one.outputs[0].shape == (3, 3)
    for past, rows, value in product((2, 5, 0), (1, 2), (True, False)):
        cache, x = (np.random.default_rng(n).random((n, 3)).astype(np.float32) for n in (past, rows))
        wanted = np.concatenate([cache, x]) if value else x
        np.testing.assert_array_equal(executable(np.array([value]), cache, x), wanted)
        if value:
            np.testing.assert_array_equal(of_one(np.array([value]), cache, x), wanted)
    assert import_model.main([str(path), "--report", "--dim=past=2", "--dim=rows=1"]) == 0
    with pytest.raises(QDialectError, match="condition 'use_cache_branch' is known at run time"):
        qdialect.compile(path, dims={"past": 2}, batch="dynamic", fallback="none")
    with pytest.raises(InputError, match="must be compiled for one branch, by the option 'branches', to be profiled"):
        executable.profile()
    cases = ["use_cache_branch = 0:", "use_cache_branch = 1:", "Concat"]
    assert re.findall(r"use_cache_branch = .:|Concat", capsys.readouterr().out)[:3] == cases
    with pytest.raises(LoadError, match="no archive of a network with branches"):
        load_content(executable.library("a")[:-30])


def test_branches_of_other_ranks_are_left_to_the_framework() -> None:
    """And a condition of two elements is refused, whoever runs it."""
    model = ModelBuilder()
    condition = model.input("b", (), np.bool_)
    model.input("x", (4, 1))
    flat = _graph(helper.make_node("Flatten", ["x"], ["s"]), helper.make_node("Squeeze", ["s"], ["t"]), output="t")
    content = model.finish(model.node("If", condition, then_branch=NEGATED, else_branch=flat), dtype=np.float32)
    with pytest.raises(ImportModelError, match=r"condition 'b' is known at run time: --branch b=0 or b=1"):
        qdialect.compile(content, fallback="none")
    executable = qdialect.compile(content, fallback="framework")
    np.testing.assert_array_equal(executable(np.array(False), X), X[:, 0])


def test_a_branch_that_gives_too_little_is_damaged() -> None:
    assert "file is damaged" in refused(_branching(True, helper.make_graph([], "branch", [], []), SCALED))


# Functions that a model defines are replaced by their nodes.

X_FUNCTIONS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
TWICE = "twice (a) => (b) { c = Add (a, a) b = Relu (c) }"


def _model(call: str, *functions: str) -> bytes:
    domains = 'opset_import: ["" : 20, "local" : 1]'
    text = f"<ir_version: 9, {domains}> g (float[4, 3] x) => (float[4, 3] y) {{ y = local.{call} (x) }}"
    defined = [f'<domain: "local", {domains}> {one}' for one in functions]
    return parser.parse_model("\n".join([text, *defined])).SerializeToString()


def test_a_function_of_functions_is_its_nodes() -> None:
    content = _model("outer", "outer (a) => (b) { c = local.twice (a) b = local.twice (c) }", TWICE)
    assert [node.kind for node in nodes_of(content)] == ["Add", "Relu", "Add", "Relu"]
    np.testing.assert_array_equal(run(content, X_FUNCTIONS), np.maximum(X_FUNCTIONS * 4, 0))


def test_a_function_takes_attributes_of_its_call() -> None:
    content = _model("turn <order = [1, 0]>", "turn <order> (a) => (b) { b = Transpose <perm: ints = @order> (a) }")
    np.testing.assert_array_equal(run(content, X_FUNCTIONS), X_FUNCTIONS.T)


def test_a_function_that_calls_itself_is_refused() -> None:
    content = _model("f", "f (a) => (b) { b = local.g (a) }", "g (a) => (b) { b = local.f (a) }")
    assert "'model.onnx': file is damaged: a function of the model calls itself" in refused(content)


def test_functions_that_double_are_counted_before_they_are_inlined() -> None:
    doubling = [f"f{i} (a) => (b) {{ c = local.f{i + 1} (a) b = local.f{i + 1} (c) }}" for i in range(40)]
    message = refused(_model("f0", *doubling, "f40 (a) => (b) { b = Relu (a) }"))
    assert "functions of the model must give at most 1000000 nodes, but give 1099511627776" in message


# Operators with graphs of their own, If, Loop and Scan: refused with the node, whatever their graphs hold.


SCAN = "<num_scan_inputs = 1, body = g (float[4] v) => (float[4] w) { w = Identity (v) }>"
LOOP = """<body = g (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
  d = Identity (c)
  w = Identity (v)
}>"""
IF = """<
  then_branch = t () => (float[4] b) { b = Neg (x) },
  else_branch = e () => (float[4] b) { b = Exp (x) }
>"""


def model(text: str) -> bytes:
    head = '<ir_version: 9, opset_import: ["" : 17]> g (float[4] x, bool condition) => (float[4] y)'
    return parser.parse_model(f"{head} {{ {text} }}").SerializeToString()


IS_CHOSEN = "condition 'condition' is known at run time: --branch condition=0 or condition=1 chooses the branch"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"y = If (condition) {IF}", f"node 0 If ('y'): {IS_CHOSEN}"),
        (f"n = Constant <value_int = 3> () y = Loop (n, , x) {LOOP}", "node 1 Loop ('y'): operator is not supported"),
        (f"y = Scan {SCAN} (x)", "node 0 Scan ('y'): operator is not supported"),
    ],
)
def test_graphs_of_an_operator_are_refused_with_it(text: str, reason: str) -> None:
    with pytest.raises(ImportModelError, match="unsupported operation") as caught:
        import_onnx(model(text))
    assert [note.message for note in caught.value.diagnostics[0].notes] == [reason]


def test_a_branch_is_taken_where_its_condition_is_said() -> None:
    content = model(f"y = If (condition) {IF}")
    assert [node.kind for node in nodes_of(content, branches={"condition": True})] == ["Neg", "Identity"]


def test_a_graph_reads_what_a_later_node_gives() -> None:
    content = model(f"y = If (condition) {IF.replace('(x)', '(later)')} later = Relu (x)")
    executable = qdialect.compile(content, fallback="framework", cache=False)
    data = np.array([-1, 0, 1, 2], np.float32)
    np.testing.assert_array_equal(np.asarray(executable(data, np.array(True))), -np.maximum(data, 0))


# A constant that goes through a DequantizeLinear is a constant of f32 values for every operator.

SCALE = np.float32(0.125)


@pytest.mark.parametrize("kind", ["Add", "Mul", "Sub"])
def test_a_function_of_constants_is_a_constant(kind: str) -> None:
    """Of dequantized ones too: the sum is a weight like another."""
    quantized = drawn((4, 3), np.int8)
    b = ModelBuilder()
    weight = b.node(kind, b.weight(quantized, float(SCALE)), b.weight(quantized[:1], 0.5))
    content = b.finish(b.node("MatMul", b.input("x", (2, 4)), weight), dtype=np.float32)
    assert "dequantize" not in str(import_onnx(content))
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    function = {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract}[kind]
    matrix = function(quantized.astype(np.float32) * SCALE, quantized[:1].astype(np.float32) * np.float32(0.5))
    wanted = np.zeros((2, 3), np.float32)
    for k in range(4):
        wanted = multiply_add(x[:, k : k + 1], matrix[k], wanted)
    np.testing.assert_array_equal(run(content, x), wanted)


@pytest.mark.parametrize("scale", [1.334e36, 1e-30])
def test_a_constant_may_have_any_scale(scale: float) -> None:
    """A mask of the smallest float is quantized with a scale beyond those of activations."""
    b = ModelBuilder()
    mask = b.weight(np.array([0, 255, 3], np.uint8), scale, zero_point=255)
    content = b.finish(b.node("Add", b.input("x", (2, 3)), mask), dtype=np.float32)
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_array_equal(run(content, x), x + np.array([-255, 0, -252], np.float32) * np.float32(scale))


@pytest.mark.parametrize(("shape", "axis"), [((1, 512), 1), ((100, 3), 0), ((2, 90, 3), 1)])
def test_elements_of_a_long_constant(shape: tuple[int, ...], axis: int) -> None:
    """As rows of token types are taken: by more elements than NumPy chooses among, and from a part of the others."""
    data = np.random.default_rng(0).integers(0, 99, shape)
    indices = np.random.default_rng(1).integers(-shape[axis], shape[axis], [min(n, 17) for n in shape])
    b = ModelBuilder()
    taken = b.node("GatherElements", b.constant(data), b.constant(indices), axis=axis)
    content = b.finish(b.node("Add", b.input("x", (1,), np.int64), taken), dtype=np.int64)
    assert "qnn.dynamic_gather" not in str(import_onnx(content))
    kept = data[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape))]
    assert np.array_equal(run(content, np.array([1])), np.take_along_axis(kept, indices, axis) + 1)


@pytest.mark.parametrize("is_by_dimension", [False, True])
@pytest.mark.parametrize("is_node", [False, True])
def test_a_sparse_constant(is_by_dimension: bool, is_node: bool) -> None:
    """Its elements are at an index of all elements each, or at one of each dimension."""
    dense = np.zeros((4, 3), np.float32)
    dense[[0, 2, 3], [1, 0, 2]] = [2.0, -3.0, 0.5]
    found = np.argwhere(dense) if is_by_dimension else np.flatnonzero(dense)
    values, indices = dense[dense != 0], found.astype(np.int64)
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(values, "w"), numpy_helper.from_array(indices), list(dense.shape)
    )
    b = ModelBuilder()
    if is_node:
        b.node("Constant", output="w", sparse_value=sparse)
    model = ModelProto.FromString(b.finish(b.node("MatMul", b.input("x", (2, 4)), "w"), dtype=np.float32))
    if not is_node:
        model.graph.sparse_initializer.append(sparse)
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    assert_floats_within(run(model.SerializeToString(), x), x @ dense, "layer")


def test_a_bias_is_quantized_along_its_one_dimension() -> None:
    """Whatever axis the node names; without one it is 1."""
    b = ModelBuilder()
    bias = drawn((3,), np.int32)
    scales = np.array([0.1, 0.2, 0.4], np.float32)
    held = b.node("DequantizeLinear", b.constant(bias), b.constant(scales))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    found = run(b.finish(b.node("Add", b.input("x", x.shape), held), dtype=np.float32), x)
    np.testing.assert_array_equal(found, x + bias.astype(np.float32) * scales)


def test_infinite_values_of_a_constant_one_hot() -> None:
    """As in masks: they are chosen, not multiplied; an index from the end, and one outside."""
    b = ModelBuilder()
    values = np.array([-np.inf, 0.0], np.float32)
    hot = b.node("OneHot", b.constant(np.array([1, -1, 9])), b.constant(np.array(3)), b.constant(values))
    x = np.zeros((3, 3), np.float32)
    wanted = np.where(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]), np.float32(0), np.float32(-np.inf))
    np.testing.assert_array_equal(run(b.finish(b.node("Add", b.input("x", x.shape), hot), dtype=np.float32), x), wanted)


@pytest.mark.parametrize(
    ("number", "attributes", "reason"),
    [
        (1.0, {"keepdims": 2}, "attribute 'keepdims' must be 0 or 1, but is 2"),
        (np.nan, {}, "constant inputs must not hold NaN"),
    ],
)
def test_constants_that_onnx_runtime_evaluates_otherwise_are_refused(
    number: float, attributes: dict[str, Any], reason: str
) -> None:
    b = ModelBuilder()
    largest = b.node("ReduceMax", b.constant(np.array([2.0, number], np.float32)), **attributes)
    assert reason in refused(b.finish(b.node("Add", b.input("x", (1,)), largest), dtype=np.float32))
