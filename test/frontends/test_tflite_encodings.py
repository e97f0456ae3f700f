"""The ways in which a .tflite file may say one thing, and the numbers of its operators."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from recurrent_models import Loop
from tflite_graphs import (
    SCHEMA,
    Given,
    Result,
    add_operator,
    added,
    model_of,
    one_operator,
    opened,
    packed,
    reference,
    refused,
    small_network,
)

from qdialect.frontends import tflite as frontend
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.division import extract
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from qdialect.frontends.tflite.operators import supported_operators
from qdialect.frontends.tflite.operators.registry import UNNAMED, reason_of
from qdialect.support.diagnostics import ImportModelError

IMAGE = np.arange(-4, 4, dtype=np.int8).reshape(1, 2, 2, 2)
_FIRST = 16


def with_recent_numbers(content: bytes) -> bytes:
    """Numbers of operators in the newer field alone, as Google's quantizer adds them."""
    model = opened(content)
    for code in model.operatorCodes:
        code.deprecatedBuiltinCode = 0
    return packed(model)


def with_old_numbers(content: bytes) -> bytes:
    model = opened(content)
    for code in model.operatorCodes:
        code.builtinCode = 0
    return packed(model)


def without_zero_options(content: bytes) -> bytes:
    """ADD, whose options are all zero, without any."""
    model = opened(content)
    (add,) = (one for one in model.subgraphs[0].operators if isinstance(one.builtinOptions, SCHEMA.AddOptionsT))
    add.builtinOptions, add.builtinOptionsType = None, 0
    return packed(model)


def with_a_bias_along(axis: int) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        model = opened(content)
        (bias,) = [tensor for tensor in model.subgraphs[0].tensors if tensor.name == b"b"]
        bias.quantization.quantizedDimension = axis
        return packed(model)

    return changed


def with_buffers_behind(content: bytes) -> bytes:
    """Buffers after the tables, as writers put them where all would be over 2 GB."""
    model = opened(content)
    held = [(buffer, bytes(buffer.data)) for buffer in model.buffers if buffer.data is not None and len(buffer.data)]
    for buffer, data in held:
        buffer.data, buffer.offset, buffer.size = None, 2, len(data)
    offset = -len(packed(model)) % _FIRST + len(packed(model))
    behind = b""
    for buffer, data in held:
        buffer.offset = offset + len(behind)
        behind += data + bytes(-len(data) % _FIRST)
    return packed(model).ljust(offset, b"\0") + behind


WAYS = [with_recent_numbers, with_old_numbers, without_zero_options, with_buffers_behind]


@pytest.mark.parametrize("changed", WAYS)
def test_another_way_to_say_it(changed: Callable[[bytes], bytes]) -> None:
    other = changed(small_network())
    assert str(import_tflite(other)) == str(import_tflite(small_network()))
    np.testing.assert_array_equal(reference(other, [IMAGE]), reference(small_network(), [IMAGE]))


@pytest.mark.parametrize("axis", [1, 3, -1])
def test_a_vector_with_the_axis_of_other_weights(axis: int) -> None:
    """LiteRT refuses this from some version on."""
    other = with_a_bias_along(axis)(small_network())
    assert str(import_tflite(other)) == str(import_tflite(small_network()))


def test_a_buffer_that_ends_behind_the_file() -> None:
    cut = with_buffers_behind(small_network())[:-_FIRST]
    with pytest.raises(ImportModelError, match=r"buffer \d+ must end within \d+ bytes"):
        read_graph(cut)


def test_more_subgraphs_than_a_converter_writes_are_refused() -> None:
    model = opened(Loop().content())
    model.subgraphs = [*model.subgraphs, *[model.subgraphs[1]] * 70]
    with pytest.raises(ImportModelError, match="model must have at most 64 subgraphs, but got 73"):
        import_tflite(packed(model))


def test_a_part_for_litert_takes_in_buffers_behind_the_tables() -> None:
    other = with_buffers_behind(small_network())
    graph = read_graph(other)
    inputs, outputs = ([tensor.index for tensor in tensors] for tensors in (graph.inputs, graph.outputs))
    part = extract(other, [0, 1, 2], inputs, outputs, {}, {})
    np.testing.assert_array_equal(reference(part, [IMAGE]), reference(small_network(), [IMAGE]))


def network(kind: str, options: str, shapes: Sequence[Sequence[int]], element: str = "FLOAT32", **fields: Any) -> bytes:
    """One operator on tensors of ones, of which the first is an input and the last the result."""
    model = model_of(*(np.ones(shape, np.float32 if shape else np.int32) for shape in shapes[1:-1]))
    (graph,), last = model.subgraphs, len(shapes) - 1
    for index, shape in enumerate(shapes):
        own = element if index == last else "FLOAT32" if shape else "INT32"
        added(graph, f"t{index}", shape, own, buffer=index if index < last else 0)
    add_operator(model, kind, [*range(last)], [last], options, **fields)
    graph.inputs, graph.outputs = [0], [last]
    return packed(model)


DENSE = ("FULLY_CONNECTED", "FullyConnected")
INT64 = SCHEMA.TensorType.INT64
REFUSED = {
    "output must have the shape [6, 4], but got [2, 3, 4]": network(*DENSE, [(2, 3, 5), (4, 5), (2, 3, 4)]),
    "output must have the shape [2, 3, 4], but got [6, 4]": network(
        *DENSE, [(2, 3, 5), (4, 5), (6, 4)], keepNumDims=True
    ),
    "weights format 1 is not supported": network(*DENSE, [(3, 5), (4, 5), (3, 4)], weightsFormat=1),
    "FullyConnectedOptions has a field that this version does not know": network(
        *DENSE, [(3, 5), (4, 5), (3, 4)], quantSpec=[1, 2]
    ),
    "output must be i64, but got i32": network("ARG_MAX", "ArgMax", [(3, 5), (), (3,)], "INT32", outputType=INT64),
    "its result must be known": network("SHAPE", "Shape", [(3, 5), (2,)], "INT32", outType=INT64),
}


@pytest.mark.parametrize("wanted", REFUSED)
def test_options_that_say_something_else(wanted: str) -> None:
    assert wanted in refused(REFUSED[wanted])


# LiteRT finds these in tensors, or has no use for them.
_WITHOUT_USE = frozenset(
    (
        *("CastOptions.InDataType", "CastOptions.OutDataType", "DepthwiseConv2DOptions.DepthMultiplier"),
        "SparseToDenseOptions.ValidateIndices",
    )
)
# Of operators that are left to LiteRT.
_LEFT = frozenset(
    f"{name}Options"
    for name in (
        *("Bucketize", "Call", "CallOnce", "ConcatEmbeddings", "EmbeddingLookupSparse", "FakeQuant", "Hashtable", "If"),
        *("LSHProjection", "LSTM", "Random", "SkipGram", "Unique", "VarHandle"),
    )
)


def test_every_option_is_read() -> None:
    """By a front end that names all fields of the schema."""
    folder = Path(frontend.__file__).parent
    text = "\n".join(path.read_text() for path in sorted(folder.rglob("*.py")))
    unread: set[str] = set()
    for name in vars(tflite.BuiltinOptions):
        table: type | None = getattr(tflite, name, None)
        if not name.endswith("Options") or table is None or name in _LEFT:
            continue
        fields = {
            field.removesuffix("AsNumpy").removesuffix("Length").removesuffix("IsNone")
            for field in vars(table)
            if field[0].isupper() and field != "Init" and not field.startswith(("GetRoot", name))
        }
        unread |= {f"{name}.{field}" for field in fields if not re.search(rf"[.\"]{field}(Length)?[(\"]", text)}
    assert unread == _WITHOUT_USE


# Every operator of the schema is imported, or is left to LiteRT for a reason; none ends in a traceback.

BUILTIN = {
    name: kind
    for name, kind in vars(tflite.BuiltinOperator).items()
    if isinstance(kind, int) and not name.startswith("PLACEHOLDER")
}
TENSORS = [
    Given(np.zeros((1, 4, 4, 2), np.float32)),
    Given(np.zeros((1, 4, 4, 2), np.int8), quantization=Quantization((0.1,), (1,))),
    Given(np.zeros((1, 4, 4, 2), np.int16), quantization=Quantization((0.1,), (0,))),
    Given(np.zeros((3,), np.int32)),
    Given(np.array([1, 0], np.int32), is_constant=True),
    Given(np.zeros((2, 2), np.bool_)),
]


def test_every_operator_is_supported_or_has_a_reason() -> None:
    supported, left = set(supported_operators()), {kind for kind in BUILTIN if reason_of(kind) != UNNAMED}
    assert BUILTIN.keys() == supported | left
    assert not supported & left


def test_reasons_are_part_of_the_message() -> None:
    content = one_operator(BUILTIN["ATAN2"], TENSORS[:1] * 2, [Result((1, 4, 4, 2), np.float32)])
    with pytest.raises(
        ImportModelError, match=r"node 0 ATAN2 \('y0'\): operator is not supported: converters write it"
    ):
        import_tflite(content)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_operators_without_options_and_with_tensors_of_any_type(count: int) -> None:
    """A node that is wrong ends in an error of the import, whatever its tensors are."""
    for kind in BUILTIN.values():
        inputs = [TENSORS[(kind + i) % len(TENSORS)] for i in range(count)]
        outputs = [Result((1, 4, 4, 2), inputs[0].data.dtype.type if inputs else np.float32)]
        with suppress(ImportModelError):
            import_tflite(one_operator(kind, inputs, outputs))
