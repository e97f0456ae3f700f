"""Batches of any size: one executable, in this process and as a library, and the rules by which ops grow."""

import math
import pickle
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import HERE, STRICT, compiled, ran, tool
from compiled_ops import tensor
from onnx import TensorProto, helper
from onnx_graphs import Array, ModelBuilder, of_onnx_runtime

import qdialect
from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of, shape_of
from qdialect.driver.batching import rules
from qdialect.driver.batching.network import BatchNetwork, check_alike, fixed_batch
from qdialect.driver.batching.rules import RULES, Site
from qdialect.driver.fallback import FallbackWarning
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.qnn_to_linalg import conversions
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import SCALAR_OPS
from qdialect.lowering.qnn_to_linalg.graph.graph import has_conversion
from qdialect.reference import interpreter
from qdialect.runtime import Executable
from qdialect.support.diagnostics import CompileError, ImportModelError, InputError, ParseError, QDialectError

SIZES = (0, 1, 7, 8, 9, 64, 75)
PARAMETERS = "input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>"
# A product whose rows are the tokens of all entries, an addition to all of them, and a sum over the tokens of each.
TEXT = f"""
func.func @main(%x: tensor<2x3x8xui8> {{qnn.name = "tokens"}}) -> (tensor<2x4xui8>, tensor<6x4xui8>) {{
  %w = "qnn.constant"() {{value = dense<[[1, 2, 3, 4, 5, 6, 7, 8], [8, 7, 6, 5, 4, 3, 2, 1],
    [-1, 1, -1, 1, -1, 1, -1, 1], [9, 0, 0, 0, 0, 0, 0, 9]]> : tensor<4x8xi8>}} : () -> tensor<4x8xi8>
  %c = "qnn.constant"() {{value = dense<[[[[1, 2, 3, 4]], [[5, 6, 7, 8]], [[9, 10, 11, 12]]]]> : tensor<1x3x1x4xui8>}}
    : () -> tensor<1x3x1x4xui8>
  %0 = "qnn.reshape"(%x) {{shape = array<i64: 6, 8>}} : (tensor<2x3x8xui8>) -> tensor<6x8xui8>
  %1 = "qnn.dense"(%0, %w) {{{PARAMETERS}, weight_zero_points = array<i64: 0>}}
    : (tensor<6x8xui8>, tensor<4x8xi8>) -> tensor<6x4xi32>
  %2 = "qnn.requantize"(%1) {{input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>,
    input_zero_points = array<i64: 0>, output_scale = 16.0 : f64, output_zero_point = 3 : i64, axis = 1 : i64,
    rounding = "fixed64_up", multiplier = "f64"}} : (tensor<6x4xi32>) -> tensor<6x4xui8>
  %3 = "qnn.reshape"(%2) {{shape = array<i64: 2, 3, 1, 4>}} : (tensor<6x4xui8>) -> tensor<2x3x1x4xui8>
  %4 = "qnn.maximum"(%3, %c) {{lhs_scale = 1.0 : f64, lhs_zero_point = 0 : i64, rhs_scale = 1.0 : f64,
    rhs_zero_point = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 0 : i64, output_min = 0 : i64,
    output_max = 255 : i64}} : (tensor<2x3x1x4xui8>, tensor<1x3x1x4xui8>) -> tensor<2x3x1x4xui8>
  %5 = "qnn.transpose"(%4) {{permutation = array<i64: 1, 2, 0, 3>}} : (tensor<2x3x1x4xui8>) -> tensor<3x1x2x4xui8>
  %6 = "qnn.reduce_max"(%5) {{axes = array<i64: 0, 1>}} : (tensor<3x1x2x4xui8>) -> tensor<2x4xui8>
  return %6, %2 : tensor<2x4xui8>, tensor<6x4xui8>
}}
"""


def drawn(batch: int) -> Array:
    return np.random.default_rng(batch).integers(0, 256, (batch, 3, 8), dtype=np.uint8)


def expected(tokens: Array) -> list[Array]:
    """What the reference gives, two entries at a time."""
    module = parse(TEXT)
    even = np.concatenate([tokens, tokens[: len(tokens) % 2]])
    parts = [interpreter.run(module, [even[i : i + 2]]) for i in range(0, len(even), 2)]
    none = [np.empty((0, 4), np.uint8)]
    first, second = (np.concatenate(none + [part[i] for part in parts]) for i in range(2))
    return [first[: len(tokens)], second[: 3 * len(tokens)]]


def check(executable: Executable, batch: int) -> None:
    tokens = drawn(batch)
    for found, wanted in zip(executable(tokens), expected(tokens), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.fixture(scope="module")
def executable() -> Executable:
    return qdialect.compile(parse(TEXT), batch="dynamic")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("batch")
    return compiled(folder, TEXT, "--batch", "dynamic", "--targets", "host,x86-64", "--threads", "2")


@pytest.mark.parametrize("batch", SIZES)
def test_every_size_gives_the_reference(executable: Executable, batch: int) -> None:
    check(executable, batch)


@pytest.mark.parametrize("batch", SIZES)
def test_a_library_takes_every_size(library: Path, batch: int) -> None:
    check(qdialect.load(library), batch)


def test_a_pickled_executable_takes_every_size(executable: Executable) -> None:
    copy: Executable = pickle.loads(pickle.dumps(executable))
    for batch in SIZES:
        check(copy, batch)
    again: Executable = pickle.loads(pickle.dumps(copy))
    check(again, 9)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.zeros((2, 3, 9), np.uint8)], r"input 'tokens' must be uint8\[2, 3, 8\], but got uint8\[2, 3, 9\]"),
        ([np.zeros((2, 24), np.uint8)], r"input 'tokens' must be uint8\[\?, 3, 8\], but got uint8\[2, 24\]"),
        ([np.zeros((2, 3, 8), np.int8)], r"input 'tokens' must be uint8\[2, 3, 8\], but got int8\[2, 3, 8\]"),
        ([], "network must be called with 1 input, but got 0"),
    ],
)
def test_inputs_that_do_not_fit(executable: Executable, arrays: list[Array], message: str) -> None:
    with pytest.raises(InputError, match=message):
        executable(*arrays)


def test_outputs_that_do_not_fit(executable: Executable) -> None:
    outputs = [np.zeros((3, 4), np.uint8), np.zeros((6, 4), np.uint8)]
    with pytest.raises(InputError, match=r"output 'res0' must be uint8\[2, 4\], but got uint8\[3, 4\]"):
        executable.run([drawn(2)], outputs)


def test_a_program_in_c_says_the_size(library: Path) -> None:
    (library.parent / "main.c").write_text(
        '#include <stdio.h>\n#include <string.h>\n#include "model.h"\n'
        "static _Alignas(QDIALECT_WORKSPACE_ALIGNMENT) unsigned char workspace[MODEL_WORKSPACE_SIZE];\n"
        "int main(void) {\n"
        "  static unsigned char tokens[11 * MODEL_INPUT_0_SIZE], scores[11 * MODEL_OUTPUT_0_SIZE];\n"
        "  static unsigned char rows[12 * MODEL_OUTPUT_1_SIZE];\n"
        "  const void *const inputs[] = {tokens};\n"
        "  void *const outputs[] = {scores, rows};\n"
        "  memset(rows, 77, sizeof rows);\n"
        "  if (fread(tokens, 1, sizeof tokens, stdin) != sizeof tokens) return 2;\n"
        "  if (model_workspace_size(11) != MODEL_WORKSPACE_SIZE) return 3;\n"
        "  if (qdialect_output(model_network(), 1)->batch != 3) return 4;\n"
        "  if (qdialect_shape(model_network(), qdialect_input(model_network(), 0))[0] != -1) return 5;\n"
        "  if (model_run(inputs, outputs, workspace, -1) != QDIALECT_ERROR_BATCH) return 6;\n"
        "  if (model_run(inputs, outputs, workspace, 0) != QDIALECT_OK || rows[0] != 77) return 7;\n"
        "  if (model_run_threads(inputs, outputs, workspace, 11, 2) != QDIALECT_OK) return 8;\n"
        '  for (size_t i = 0; i < sizeof rows; i++) printf("%d ", rows[i]);\n'
        "  puts(model_strerror(QDIALECT_ERROR_BATCH));\n"
        "  return 0;\n}\n"
    )
    ran(tool("cc"), "-std=c11", *STRICT, "main.c", "./model.so", HERE, "-o", "main", folder=library.parent)
    drawn(11).tofile(library.parent / "tokens")
    printed = ran("/bin/sh", "-c", "./main < tokens", folder=library.parent)
    numbers = printed.partition("batch must")[0].split()
    assert printed.endswith("batch must be at least 0\n")
    assert list(map(int, numbers)) == [*expected(drawn(11))[1].ravel().tolist(), *[77] * 12]


X = (0.05, 128)


def open_model(folder: Path, operator: str, *shape: str | int, **attributes: int) -> Path:
    b = ModelBuilder()
    data = b.dequantize(b.input("x", shape, np.uint8), X)
    (folder / "model.onnx").write_bytes(b.finish(b.quantize(b.node(operator, data, **attributes), X)))
    return folder / "model.onnx"


def test_a_model_of_open_batch_and_sequence(tmp_path: Path) -> None:
    path = open_model(tmp_path, "Relu", "batch", "seq")
    executable = qdialect.compile(path, batch="dynamic", dims={"seq": (1, 4)})
    for shape in ((3, 4), (9, 4), (2, 3), (5, 3)):
        data = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
        np.testing.assert_array_equal(executable(data), np.maximum(data, 128))
    with pytest.raises(InputError, match="extent 'seq' must be from 1 to 4, but got 5"):
        executable(np.zeros((2, 5), np.uint8))
    assert executable.for_shape({"seq": 2}).inputs[0].shape == (-1, 2)


def agrees(path: Path, sizes: Sequence[int], **options: Any) -> Executable:
    """The executable for any batch, compared with ONNX Runtime for batches of some sizes."""
    executable = qdialect.compile(path, batch="dynamic", **options)
    for size in sizes:
        shapes = [[size if extent == -1 else extent for extent in port.shape] for port in executable.inputs]
        arrays = [np.random.default_rng(size).normal(size=shape).astype(np.float32) for shape in shapes]
        for found, wanted in zip(executable.results(arrays), of_onnx_runtime(path, *arrays), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6, strict=True)
    return executable


def mixing(b: ModelBuilder, x: str) -> list[str]:
    """Operators that mix entries, take some of them, or have one number for all of them."""
    axis, ends = b.constant(np.array([0])), b.constant(np.array([100]))
    scale, point = b.constant(np.full(1, 0.1, np.float32)), b.constant(np.full(1, 3, np.uint8))
    lines = b.node("Transpose", x, perm=[2, 0, 1])
    gathered = b.node("Gather", x, b.constant(np.array([0, -1, 0])))
    joined = b.node("Concat", gathered, x, axis=0)
    found = [
        b.node("ReduceSum", joined, axis, keepdims=0),
        *(b.node(kind, x, b.constant(np.array([0, 2])), keepdims=0) for kind in ("ReduceMean", "ReduceMax")),
        b.node("CumSum", x, b.constant(np.array(0)), reverse=1),
        b.node("Softmax", x, axis=0),
        b.node("Slice", x, b.constant(np.array([-2])), ends, axis),
        b.node("Slice", x, axis, b.constant(np.array([4])), axis),
        b.node("Reshape", x, b.constant(np.array([4, -1]))),
        b.node("Flatten", lines, axis=0),
        b.node("Pad", x, b.constant(np.array([1, 0, 0, 2, 0, 0]))),
        b.node("DequantizeLinear", b.node("QuantizeLinear", lines, scale, point, axis=0), scale, point, axis=0),
    ]
    count = b.node("Cast", b.node("Shape", x), to=TensorProto.FLOAT)
    return [*found, count, b.node("Mul", x, b.node("ReduceSum", count, keepdims=0))]


def choosing(b: ModelBuilder, x: str) -> list[str]:
    """At most four entries."""
    return [b.node("Slice", x, *(b.constant(np.array([end])) for end in (0, 4, 0)))]


def condition(b: ModelBuilder, x: str) -> list[str]:
    size = b.node("Squeeze", b.node("Shape", x, start=0, end=1))
    nodes = [helper.make_node(kind, [x], [kind]) for kind in ("Neg", "Abs")]
    infos = [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None) for node in nodes]
    then, other = (helper.make_graph([node], "g", [], [info]) for node, info in zip(nodes, infos, strict=True))
    return [b.node("If", b.node("Greater", size, b.constant(np.array(4))), then_branch=then, else_branch=other)]


def without_ones(b: ModelBuilder, x: str) -> list[str]:
    return [b.node("Squeeze", x)]


def states(b: ModelBuilder, x: str) -> list[str]:
    """Steps of all entries, and inputs that have the batch in the middle."""
    rng = np.random.default_rng(0)
    weights = [b.constant(rng.normal(size=shape).astype(np.float32)) for shape in ((1, 8, 2), (1, 8, 2))]
    first = [b.input(name, (1, "n", 2)) for name in ("h", "c")]
    b.node_of_many(
        "LSTM", [b.node("Transpose", x, perm=[1, 0, 2]), *weights, "", "", *first], ["y", "end"], hidden_size=2
    )
    return ["y", "end"]


def framework(b: ModelBuilder, x: str) -> list[str]:
    return [b.node("Hardmax", x, axis=0)]


@pytest.mark.parametrize("network", [mixing, choosing, condition, without_ones, states, framework])
def test_models_that_differ_between_batches(
    network: Callable[[ModelBuilder, str], list[str]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are compiled for each batch, and say so."""
    b = ModelBuilder()
    results = network(b, b.input("x", ("n", 1 if network is without_ones else 4, 2)))
    content = b.finish(*results, dtype=np.float32, version=18)
    (tmp_path / "model.onnx").write_bytes(content)
    with caplog.at_level("INFO", "qdialect"), warnings.catch_warnings(action="ignore", category=FallbackWarning):
        executable = agrees(tmp_path / "model.onnx", (1, 2, 5, 9))
    assert executable.inputs[0].shape[0] == -1
    assert any(record.message.startswith("'model.onnx' is compiled for ") for record in caplog.records)
    with pytest.raises(QDialectError):
        executable.save(tmp_path / "model.so")


def test_models_that_do_not_take_every_batch(tmp_path: Path) -> None:
    b = ModelBuilder()
    total = b.node("Add", b.input("x", ("n", 2)), b.constant(np.ones((3, 1), np.float32)))
    (tmp_path / "model.onnx").write_bytes(b.finish(total, dtype=np.float32))
    executable = agrees(tmp_path / "model.onnx", (1, 3), fallback="none")
    with pytest.raises(ImportModelError, match="operand shapes must broadcast"):
        executable(np.ones((2, 2), np.float32))


def test_a_slice_of_other_dimensions_keeps_one_network(tmp_path: Path) -> None:
    b = ModelBuilder()
    part = b.node("Slice", b.input("x", ("n", 4)), *(b.constant(np.array([end])) for end in (1, 3, 1)))
    (tmp_path / "model.onnx").write_bytes(b.finish(part, dtype=np.float32))
    executable = agrees(tmp_path / "model.onnx", (1, 2, 9))
    executable.save(tmp_path / "model.so")
    data = np.ones((3, 4), np.float32)
    for copy in (qdialect.load(tmp_path / "model.so"), pickle.loads(pickle.dumps(executable))):
        np.testing.assert_array_equal(copy(data), data[:, 1:3])


REFUSED = {
    '%0 = "qnn.softmax"(%x) {axis = 0 : i64, input_scale = 1.0 : f64, output_scale = 1.0 : f64, '
    'output_zero_point = 0 : i64, arithmetic = "float", beta = 1.0 : f64}': (
        "4x4xui8",
        "'qnn.softmax' op must compute each entry of a dynamic batch alone, but its elements depend on each other "
        "along dimension 0, which has the batch",
    ),
    '%0 = "qnn.reshape"(%x) {shape = array<i64: 2, 8>}': (
        "2x8xui8",
        "'qnn.reshape' op must compute each entry of a dynamic batch alone, but its result [2, 8] has parts of entries "
        "of [4, 4] in a dimension",
    ),
    '%0 = "qnn.transpose"(%x) {permutation = array<i64: 1, 0>}': (
        "4x4xui8",
        "result 0 of a dynamic batch must have it first, but has it in dimension 1",
    ),
    '%0 = "qnn.f32_min"(%x) {axes = array<i64: 0, 1>, keep_dims = true}': (
        "1x1xf32",
        "'qnn.f32_min' op must compute each entry of a dynamic batch alone, but it is of the whole batch: dynamic "
        "quantization needs a range for each row, as per-token has it",
    ),
    '%0 = "qnn.gather"(%x) {axis = 0 : i64, indices = array<i64: 3, 2, 1, 0>}': (
        "4x4xui8",
        "'qnn.gather' op must compute each entry of a dynamic batch alone, but it takes elements of dimension 0, which "
        "has the batch",
    ),
}


@pytest.mark.parametrize("op", REFUSED)
def test_ops_that_mix_entries_are_refused(op: str) -> None:
    result, message = REFUSED[op]
    given = f"tensor<4x4x{result.split('x')[-1]}>"
    text = (
        f"func.func @main(%x: {given}) -> tensor<{result}> {{\n{op} : ({given}) -> tensor<{result}>\n"
        f"return %0 : tensor<{result}>\n}}"
    )
    with pytest.raises(CompileError) as error:
        qdialect.compile(parse(text), batch="dynamic")
    assert error.value.message == message
    assert error.value.diagnostics[0].line == (2 if message.startswith("'") else 3)


ADD = """func.func @main(%x: tensor<{n}x2xi32>) -> tensor<{n}x2xi32> {{
  %c = arith.constant dense<{value}> : tensor<{n}x2xi32>
  %0 = arith.addi %x, %c : tensor<{n}x2xi32>
  return %0 : tensor<{n}x2xi32>
}}"""


def test_constants_that_differ_between_entries_are_refused() -> None:
    alike = fixed_batch(parse(ADD.format(n=2, value="[[1, 2], [1, 2]]"))).of(3)
    assert interpreter.run(alike, [np.zeros((3, 2), np.int32)])[0].tolist() == [[1, 2]] * 3
    with pytest.raises(CompileError, match=r"'arith.addi' op .*, but a constant differs between the entries"):
        fixed_batch(parse(ADD.format(n=2, value="[[1, 2], [1, 3]]"))).of(3)


MERGED = """func.func @main(%x: tensor<2x3xi32>) -> tensor<2x3xi32> {{
  %c = arith.constant dense<{value}> : tensor<6xi32>
  %0 = "qnn.transpose"(%x) {{permutation = array<i64: 1, 0>}} : (tensor<2x3xi32>) -> tensor<3x2xi32>
  %1 = "qnn.reshape"(%0) {{shape = array<i64: 6>}} : (tensor<3x2xi32>) -> tensor<6xi32>
  %2 = arith.addi %1, %c : tensor<6xi32>
  %3 = "qnn.reshape"(%2) {{shape = array<i64: 3, 2>}} : (tensor<6xi32>) -> tensor<3x2xi32>
  %4 = "qnn.transpose"(%3) {{permutation = array<i64: 1, 0>}} : (tensor<3x2xi32>) -> tensor<2x3xi32>
  return %4 : tensor<2x3xi32>
}}"""


def test_constants_of_a_batch_behind_other_dimensions() -> None:
    alike = fixed_batch(parse(MERGED.format(value="[1, 1, 2, 2, 3, 3]"))).of(4)
    assert interpreter.run(alike, [np.zeros((4, 3), np.int32)])[0].tolist() == [[1, 2, 3]] * 4
    with pytest.raises(CompileError, match=r"'arith.addi' op .*, but a constant differs between the entries"):
        fixed_batch(parse(MERGED.format(value="[1, 2, 1, 2, 1, 2]"))).of(4)
    text = MERGED.format(value="1").replace("return %4 : tensor<2x3", "return %2 : tensor<6")
    with pytest.raises(CompileError, match="result 0 of a dynamic batch must have its entries together"):
        fixed_batch(parse(text.replace("-> tensor<2x3xi32> {", "-> tensor<6xi32> {", 1))).of(4)


def test_constants_that_depend_on_the_size_are_refused() -> None:
    two, three, other = (
        BatchNetwork(parse(ADD.format(n=n, value=value)), n, (True,)) for n, value in ((2, 7), (3, 7), (3, 8))
    )
    check_alike(two, three)
    with pytest.raises(CompileError, match="must be the same for every batch, but differs between batches of 2 and 3"):
        check_alike(two, other)


def test_inputs_of_other_extents_have_no_batch() -> None:
    text = "func.func @main(%x: tensor<2x2xi8>, %y: tensor<3xi8>) -> tensor<2x2xi8> {\nreturn %x : tensor<2x2xi8>\n}"
    with pytest.raises(
        CompileError, match=r"inputs must have the same first extent .* 'arg0' has \[2, 2\], 'arg1' has"
    ):
        qdialect.compile(parse(text), batch="dynamic")


@pytest.mark.parametrize("batch", ["any", 1.5, None, True])
def test_batches_that_are_none(batch: Any) -> None:
    with pytest.raises(InputError, match="batch must be an integer or 'dynamic', but got "):
        qdialect.compile("model.onnx", batch=batch)


def test_operators_that_no_framework_may_run_are_refused(tmp_path: Path) -> None:
    b = ModelBuilder()
    (tmp_path / "model.onnx").write_bytes(b.finish(b.node("Hardmax", b.input("x", ("n", 4))), dtype=np.float32))
    with pytest.raises(ImportModelError) as refused:
        qdialect.compile(tmp_path / "model.onnx", batch="dynamic", fallback="none")
    assert not any("framework" in note.message for note in refused.value.diagnostics[0].notes)


# Where the batch of a result is, for every op: what a rule accepts is computed for each entry alone.

CONTEXT = make_context()
ROUND_TRIPS = sorted(
    path for path in (Path(__file__).parents[1] / "lit" / "dialect").glob("*.mlir") if "invalid" not in path.name
)
# What an entry is depends on the others, wherever the batch is.
DEPENDENT = {"dynamic_lstm"}
MAX_ELEMENTS, MAX_OPERANDS = 20_000, 4
assert rules.__name__


def operations(path: Path) -> Iterator[ir.Operation]:
    """The ops of a round-trip test that have a rule and are cheap to compute."""
    module = parse(path, CONTEXT)
    for function in module.body.operations:
        for op in function.regions[0].blocks[0]:
            elements = sum(math.prod(shape_of(value.type)) for value in (*op.operands, *op.results))
            if op.name in RULES and len(op.operands) <= MAX_OPERANDS and elements <= MAX_ELEMENTS:
                yield op.operation


def sites(op: ir.Operation) -> Iterator[Site]:
    """The op with the batch in any dimension of any of its operands, once or in blocks of it."""
    shapes = [shape_of(value.type) for value in op.operands]
    for axes, blocks in product(product(*([None, *range(len(shape))] for shape in shapes)), (1, 2)):
        extents = {shape[axis] for axis, shape in zip(axes, shapes, strict=True) if axis is not None}
        batch = math.gcd(*extents) // blocks
        # A batch of one has no place of its own in blocks.
        is_whole = batch * blocks == math.gcd(*extents) and (blocks == 1 or batch > 1)
        if extents and is_whole and max(extents) <= 2 * batch * blocks:
            yield Site(op, list(axes), batch, batch, blocks)


def text(op: ir.Operation, site: Site, blocks: int, result: int) -> str:
    """The op alone in a function whose arguments and result have the batch first; operands have it in `blocks`."""
    lines: list[str] = []
    arguments: list[str] = []
    for index, (value, axis) in enumerate(zip(op.operands, site.axes, strict=True)):
        element, type_ = element_of(value.type), str(value.type)
        shape, front = opened(shape_of(value.type), axis or 0, blocks if axis is not None else 1)
        argument, merged = tensor([shape[i] for i in front] if shape else [], element), tensor(shape, element)
        arguments.append(f"%a{index}: {argument}")
        lines.append(transpose(f"%t{index}", f"%a{index}", argument, np.argsort(front).tolist(), merged))
        lines.append(reshape(f"%o{index}", f"%t{index}", merged, type_))
    names = ", ".join(f"%o{index}" for index in range(len(op.operands)))
    types = ", ".join(str(value.type) for value in op.operands)
    attributes = ", ".join(f"{name} = {value}" for name, value in op.attributes.items())
    type_, element = str(op.results[0].type), element_of(op.results[0].type)
    lines.append(f'%r = "{op.name}"({names}) {{{attributes}}} : ({types}) -> {type_}')
    shape, front = opened(shape_of(op.results[0].type), result, site.blocks)
    given = tensor([shape[i] for i in front], element)
    lines.append(reshape("%s", "%r", type_, tensor(shape, element)))
    lines += [transpose("%g", "%s", tensor(shape, element), front, given), f"return %g : {given}"]
    return f"func.func @main({', '.join(arguments)}) -> {given} {{\n{chr(10).join(lines)}\n}}"


def opened(shape: Sequence[int], axis: int, blocks: int) -> tuple[list[int], list[int]]:
    """The shape with a dimension for the blocks of the batch, and the permutation that has the batch first."""
    if blocks > 1:
        shape, axis = [*shape[:axis], blocks, shape[axis] // blocks, *shape[axis + 1 :]], axis + 1
    return list(shape), [axis, *(index for index in range(len(shape)) if index != axis)]


def reshape(name: str, source: str, found: str, wanted: str) -> str:
    extents = re.findall(r"(\d+)x", wanted)
    shape = f"array<i64{':' * bool(extents)} {', '.join(extents)}>"
    return f'{name} = "qnn.reshape"({source}) {{shape = {shape}}} : ({found}) -> {wanted}'


def transpose(name: str, source: str, found: str, permutation: Sequence[int], wanted: str) -> str:
    if not len(permutation):
        permutation = [0]
    order = ", ".join(map(str, permutation))
    if "x" not in found:
        return f'{name} = "qnn.reshape"({source}) {{shape = array<i64>}} : ({found}) -> {wanted}'
    return f'{name} = "qnn.transpose"({source}) {{permutation = array<i64: {order}>}} : ({found}) -> {wanted}'


def drawn_rules(value: ir.BlockArgument, rng: np.random.Generator) -> Array:
    dtype = NUMPY_DTYPES[element_of(value.type)]
    shape = shape_of(value.type)
    if dtype.kind == "f":
        return np.asarray(rng.normal(size=shape), dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    info = np.iinfo(dtype.name)
    return rng.integers(info.min // 8, info.max // 8, shape).astype(dtype)


def check_entries(source: str, has_batch: Sequence[bool], batch: int) -> None:
    """The network of one entry gives each entry of the result, and that of two batches gives both."""
    try:
        module = parse(source, CONTEXT)
    except ParseError:
        # With padding a zero point must be constant, and here it is an argument.
        return
    network = BatchNetwork(module, batch, tuple(has_batch))
    block = module.body.operations[0].regions[0].blocks[0]
    rng = np.random.default_rng(batch)
    inputs = [drawn_rules(argument, rng) for argument in block.arguments]
    (expected,) = interpreter.run(module, inputs)
    one, twice = network.of(1), network.of(2 * batch)
    doubled = [np.concatenate([a, a]) if has else a for a, has in zip(inputs, has_batch, strict=True)]
    np.testing.assert_array_equal(interpreter.run(twice, doubled)[0], np.concatenate([expected, expected]), source)
    for entry, wanted in enumerate(np.split(expected, batch)):
        own = [np.split(a, batch)[entry] if has else a for a, has in zip(inputs, has_batch, strict=True)]
        np.testing.assert_array_equal(interpreter.run(one, own)[0], wanted, source)


def test_every_op_that_is_lowered_has_a_rule() -> None:
    assert conversions.__name__
    known = {path.stem for path in ROUND_TRIPS}
    lowered = {f"qnn.{name}" for name in known if has_conversion(f"qnn.{name}")}
    assert lowered - set(RULES) - set(CONSTANT_OPS) == set()
    assert set(SCALAR_OPS) <= set(RULES)


def batch_of_result(site: Site) -> int | str:
    """The dimension that has it, or why there is none."""
    with site.op.context, ir.Location.unknown():
        try:
            return RULES[site.op.name](site)
        except CompileError as error:
            return error.message


@pytest.mark.parametrize("path", ROUND_TRIPS, ids=lambda path: path.stem)
def test_ops_that_a_rule_accepts_are_computed_for_each_entry_alone(path: Path) -> None:
    accepted = tried = 0
    for op in operations(path):
        for site in sites(op):
            tried += 1
            blocks, result = site.blocks, batch_of_result(site)
            if isinstance(result, str):
                assert result.startswith(f"'{op.name}' op must compute each entry of a dynamic batch alone, but ")
                continue
            if any(shape_of(op.operands[index].type)[axis] > 1 for index, axis in site.grown.items()):
                # What is repeated must be constant: the arguments of this function are not.
                continue
            accepted += 1
            check_entries(text(op, site, blocks, result), [axis is not None for axis in site.axes], site.batch)
    assert bool(accepted) == (bool(tried) and path.stem not in DEPENDENT), f"{accepted} of {tried} are accepted"
