"""The ways in which a .tflite file may say one thing: fields, buffers and options where other writers put them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from flatbuffers import Builder
from litert import reference
from tflite_graphs import small_network

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.reader import read_graph
from qdialect.frontends.tflite.submodel import extract

SCHEMA: Any = import_module("ai_edge_litert.schema_py_generated")
IMAGE = np.arange(-4, 4, dtype=np.int8).reshape(1, 2, 2, 2)
_FIRST = 16


def opened(content: bytes) -> Any:
    return SCHEMA.ModelT.InitFromObj(SCHEMA.Model.GetRootAs(content, 0))


def packed(model: Any) -> bytes:
    builder = Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def with_recent_codes(content: bytes) -> bytes:
    """Operator codes in the newer field alone, as Google's quantizer adds them."""
    model = opened(content)
    for code in model.operatorCodes:
        code.deprecatedBuiltinCode = 0
    return packed(model)


def with_old_codes(content: bytes) -> bytes:
    model = opened(content)
    for code in model.operatorCodes:
        code.builtinCode = 0
    return packed(model)


def without_zero_options(content: bytes) -> bytes:
    """ADD, whose options are all zero, without any."""
    model = opened(content)
    adds = [
        operator for operator in model.subgraphs[0].operators if isinstance(operator.builtinOptions, SCHEMA.AddOptionsT)
    ]
    (add,) = adds
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


WAYS = [with_recent_codes, with_old_codes, without_zero_options, with_buffers_behind]


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


def test_a_part_for_litert_takes_in_what_lies_behind() -> None:
    other = with_buffers_behind(small_network())
    graph = read_graph(other)
    inputs, outputs = ([tensor.index for tensor in tensors] for tensors in (graph.inputs, graph.outputs))
    part = extract(other, [0, 1, 2], inputs, outputs, {}, {})
    np.testing.assert_array_equal(reference(part, [IMAGE]), reference(small_network(), [IMAGE]))
