"""Files that grow, run on or crash when they are read; and what is left out of a file that is whole."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tflite
from bounds import deadline, memory_at_most
from flatbuffers import Builder
from numpy.typing import NDArray
from tflite_graphs import (
    HALF,
    Array,
    Given,
    Option,
    Result,
    check_operator,
    i32,
    one_operator,
    options,
    options_of,
    refused,
)

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization, table, table_vector
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

CODE, KIND = tflite.BuiltinOperator, tflite.BuiltinOptions
Operand = tuple[int, ...] | NDArray[Any]
"""The shape of an input, or a constant."""


def integers(builder: Builder, values: Sequence[int]) -> int:
    return builder.CreateNumpyVector(np.array(values, np.int32))


def assembled(
    tensors: int, content: int, operators: int = 0, inputs: int = 0, empty: int = 0, scales: int = 0
) -> bytes:
    """As many tensors, all one table with one buffer, and as many operators, all one table with as many inputs."""
    b = Builder(1024)
    data = b.CreateByteVector(bytes(content))
    name, shape = b.CreateString("t"), integers(b, [content])
    factors = b.CreateNumpyVector(np.full(scales, 0.5, np.float32)) if scales else None
    quantization = None if factors is None else table(b, "QuantizationParameters", Scale=factors)
    buffers = [table(b, "Buffer", Data=held) for held in (None, data)]
    known = {"Shape": shape, "Type": tflite.TensorType.INT8, "Buffer": 0 if empty else 1, "Name": name}
    tensor = table(b, "Tensor", **known, Quantization=quantization)
    many, one = integers(b, [0] * inputs), integers(b, [0])
    operator = table(b, "Operator", Inputs=many, Outputs=many)
    listed, nodes = table_vector(b, [tensor] * tensors), table_vector(b, [operator] * operators)
    graphs = table_vector(b, [table(b, "SubGraph", Tensors=listed, Inputs=one, Outputs=one, Operators=nodes)])
    kinds, held = table_vector(b, [table(b, "OperatorCode")]), table_vector(b, buffers)
    b.Finish(table(b, "Model", Version=3, OperatorCodes=kinds, Subgraphs=graphs, Buffers=held), b"TFL3")
    return bytes(b.Output())


def message_of(content: bytes) -> str:
    with deadline():
        return refused(content)


def test_a_buffer_that_many_tensors_name_is_held_once() -> None:
    content = assembled(20_000, 500_000)
    with memory_at_most(200 << 20):
        graph = read_graph(content)
    assert len(graph.tensors) == 20_000


@pytest.mark.parametrize("content", [assembled(1, 4, 20_000, 20_000), assembled(20_000, 20_000, scales=20_000)])
def test_vectors_that_many_tables_name_are_refused(content: bytes) -> None:
    message = message_of(content)
    assert "tables must have their contents to themselves" in message


def test_an_empty_buffer_means_that_a_tensor_is_computed() -> None:
    content = assembled(85, 0)
    assert all(tensor.data is None for tensor in read_graph(content).tensors)


def test_indices_that_many_nodes_name_stay_in_the_budget() -> None:
    writer = ModelWriter("gather")
    x = writer.tensor("x", (4,), np.int8, HALF)
    indices = writer.constant("indices", i32([1] * 2**19))
    outputs = [writer.tensor(f"y{i}", (2**19,), np.int8, HALF) for i in range(64)]
    for y in outputs:
        writer.operator(CODE.GATHER, [x, indices], y, *options_of("Gather", 0, 0))
    assert "are left for 524288 indices" in message_of(writer.finish([x], outputs))


@pytest.mark.parametrize(
    ("code", "constant", "option", "op"),
    [
        (CODE.TILE, i32([1, 2, 2, 2]), None, "qnn.broadcast"),
        (CODE.BROADCAST_TO, i32([9, 20000, 20000, 4]), None, "qnn.broadcast"),
        (CODE.PAD, i32([[0, 0], [0, 20000], [0, 20000], [0, 0]]), None, "qnn.pad"),
        (CODE.RESIZE_BILINEAR, i32([40000, 40000]), options_of("ResizeBilinear", 0, 0), "qnn.resize_bilinear"),
        (CODE.RESIZE_NEAREST_NEIGHBOR, i32([40000, 40000]), options_of("ResizeNearestNeighbor"), "qnn.gather"),
    ],
)
def test_results_of_too_many_elements_name_the_node(code: int, constant: Array, option: Option | None, op: str) -> None:
    huge = Given(np.broadcast_to(np.int8(0), (1, 20000, 20000, 4)), False, HALF)
    message = message_of(one_operator(code, [huge, Given(constant, True)], [Result((4,), np.int8, HALF)], option))
    assert "'model.tflite': node 0 " in message
    assert f"'{op}' op result 'output' must be" in message
    assert "with at most 2147483647 elements" in message


def test_a_tensor_of_too_many_elements_is_not_called_damaged() -> None:
    writer = ModelWriter("huge")
    x = writer.tensor("x", (2**31 - 1, 2), np.int8, HALF)
    message = message_of(writer.finish([x], [x]))
    assert message == (
        "error: 'model.tflite': tensor 'x' must have at most 2147483647 elements, but has the shape [2147483647, 2]"
    )


def inferred(
    code: int, operands: Sequence[Operand], kind: int = 0, entries: Sequence[int] = (), outputs: int = 1
) -> list[tuple[int, ...]]:
    """The shapes of the results of an operator whose outputs have none in the file."""
    writer = ModelWriter("open")
    names: list[int] = []
    graph_inputs: list[int] = []
    for index, operand in enumerate(operands):
        if isinstance(operand, tuple):
            names.append(writer.tensor(f"x{index}", operand, np.int8, HALF))
            graph_inputs.append(names[-1])
        else:
            quantization = Quantization((0.5,), (0,)) if operand.dtype == np.int8 else None
            names.append(writer.constant(f"c{index}", operand, quantization))
    results = [writer.tensor(f"y{i}", (), np.int8, HALF) for i in range(outputs)]
    writer.operator(code, names, results, kind, options(*entries))
    # A second node reads what the first one gives.
    last = writer.tensor("last", (), np.int8, HALF)
    writer.operator(CODE.RELU, [results[0]], last)
    module = import_tflite(writer.finish(graph_inputs, [*results, last]))
    arrays = [np.zeros(operand, np.int8) for operand in operands if isinstance(operand, tuple)]
    *found, final = interpreter.run(module, arrays)
    assert final.shape == found[0].shape
    return [array.shape for array in found]


IMAGE = (1, 8, 6, 4)


@pytest.mark.parametrize(
    ("expected", "code", "operands", "kind", "entries"),
    [
        ((1, 8, 6, 4), CODE.ADD, [IMAGE, (4,)], KIND.AddOptions, ()),
        ((1, 8, 6, 4), CODE.RELU, [IMAGE], 0, ()),
        ((1, 192), CODE.RESHAPE, [IMAGE, i32([1, -1])], 0, ()),
        ((8, 6, 4), CODE.SQUEEZE, [IMAGE], KIND.SqueezeOptions, ()),
        ((1, 8, 1, 6, 4), CODE.EXPAND_DIMS, [IMAGE, i32([2])], 0, ()),
        ((1, 6, 8, 4), CODE.TRANSPOSE, [IMAGE, i32([0, 2, 1, 3])], 0, ()),
        ((1, 9, 6, 4), CODE.PAD, [IMAGE, i32([[0, 0], [0, 1], [0, 0], [0, 0]])], 0, ()),
        ((1, 8, 12, 4), CODE.CONCATENATION, [IMAGE, IMAGE], KIND.ConcatenationOptions, (2,)),
        ((1, 2, 6, 4), CODE.SLICE, [IMAGE, i32([0, 1, 0, 0]), i32([1, 2, 6, 4])], 0, ()),
        ((1, 4), CODE.MEAN, [IMAGE, i32([1, 2])], KIND.ReducerOptions, (0,)),
        ((1, 8, 6, 3), CODE.CONV_2D, [IMAGE, np.ones((3, 3, 3, 4), np.int8)], KIND.Conv2DOptions, (0, 1, 1)),
        ((1, 4, 3, 3), CODE.CONV_2D, [IMAGE, np.ones((3, 1, 1, 4), np.int8)], KIND.Conv2DOptions, (0, 2, 2)),
        ((48, 2), CODE.FULLY_CONNECTED, [IMAGE, np.ones((2, 4), np.int8)], KIND.FullyConnectedOptions, ()),
        ((1, 8, 6, 2), CODE.FULLY_CONNECTED, [IMAGE, np.ones((2, 4), np.int8)], KIND.FullyConnectedOptions, (0, 0, 1)),
        ((1, 4, 3, 4), CODE.MAX_POOL_2D, [IMAGE], KIND.Pool2DOptions, (0, 2, 2, 2, 2)),
        ((1, 16, 12, 4), CODE.RESIZE_BILINEAR, [IMAGE, i32([16, 12])], KIND.ResizeBilinearOptions, ()),
        ((1, 8, 8), CODE.BATCH_MATMUL, [(1, 8, 6), (1, 6, 8)], KIND.BatchMatMulOptions, ()),
    ],
)  # fmt: skip
def test_shapes_left_out_are_those_that_the_operator_gives(
    expected: tuple[int, ...], code: int, operands: Sequence[Operand], kind: int, entries: Sequence[int]
) -> None:
    assert inferred(code, operands, kind, entries) == [expected]


def test_shapes_of_several_outputs_that_are_left_out() -> None:
    assert inferred(CODE.SPLIT, [i32([2]), IMAGE], KIND.SplitOptions, (2,), outputs=2) == [(1, 8, 3, 4)] * 2


def test_an_operator_that_is_not_supported_is_named_where_shapes_are_left_out() -> None:
    content = one_operator(CODE.COS, [Given(np.zeros((1, 4), np.int8), False, HALF)], [Result((), np.int8, HALF)])
    assert "node 0 COS ('y0'): operator is not supported" in message_of(content)


def test_scales_by_channel_go_down_to_zero() -> None:
    data = Given(np.full((1, 2, 2, 4), 7, np.int8), False, HALF)
    weight = Given(np.ones((3, 1, 1, 4), np.int8), True, Quantization((0.5, 1e-30, 1e-38), (0, 0, 0), 0))
    output, option = Result((1, 2, 2, 3), np.int8, HALF), options_of("Conv2D", 0, 1, 1)
    module = import_tflite(one_operator(CODE.CONV_2D, [data, weight], [output], option))
    (result,) = interpreter.run(module, [data.data])
    assert result[0, 0, 0].tolist() == [11, 3, 3]


def test_a_name_that_is_longer_than_the_file_is_damage() -> None:
    content = bytearray(assembled(1, 4, operators=0))
    read_graph(bytes(content))
    begin = content.index(b"t\0") - 4
    content[begin : begin + 4] = len(content).to_bytes(4, "little")
    expected = rf"file is damaged: tensor 0 has a name of {len(content)} bytes, but the file has {len(content)}"
    with pytest.raises(ImportModelError, match=expected):
        read_graph(bytes(content))


# Scales around 1e36, which masks of attention bring along, compared with LiteRT's reference kernels.

WIDE = Quantization((9.3e35,), (127,))
SHARES = Quantization((1 / 256,), (-128,))


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(-128, 128, shape, dtype=np.int8)


def _scores(scale: float) -> list[Given]:
    numbers = Given(drawn(1, 3, 20), quantization=Quantization((scale,), (2,)))
    return [numbers, Given(drawn(2, 1, 20), quantization=Quantization((0.0014,), (-128,)))]


def test_products_far_below_the_scale_vanish() -> None:
    option = options_of("Mul")
    (found,) = check_operator(CODE.MUL, _scores(0.092), [Result((3, 20), np.int8, WIDE)], option)
    assert np.all(found == 127)


def test_products_that_do_not_vanish_are_refused() -> None:
    content = one_operator(CODE.MUL, _scores(1e3), [Result((3, 20), np.int8, WIDE)], options_of("Mul"))
    assert "output scale must be in [2^-60, 2^30], but got 9." in refused(content)


def test_choices() -> None:
    condition = Given(drawn(3, 3, 20) > 0)
    sides = [Given(drawn(seed, *shape), quantization=WIDE) for seed, shape in ((4, (3, 20)), (5, (1, 20)))]
    option = options_of("SelectV2")
    check_operator(CODE.SELECT_V2, [condition, *sides], [Result((3, 20), np.int8, WIDE)], option)


@pytest.mark.parametrize("scale", [1e10, 9.3e35])
def test_shares_of_masked_scores(scale: float) -> None:
    """The largest of a row has all, and equal ones have as much."""
    values = np.where(drawn(6, 5, 20) > 0, 127, drawn(7, 5, 20)).astype(np.int8)
    given = Given(values, quantization=Quantization((scale,), (127,)))
    check_operator(CODE.SOFTMAX, [given], [Result((5, 20), np.int8, SHARES)], options_of("Softmax", 1.0))
