"""What the author of a model noted in its file, on the way to executables, files and headers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from cached import kept
from flatbuffers import Builder
from onnx import TensorProto, helper

import qdialect
from qdialect.cache.store import Store
from qdialect.cli import compile as compile_command
from qdialect.frontends.tflite.flatbuffer.reader import metadata
from qdialect.frontends.tflite.flatbuffer.writer import table, table_vector

ONNX: Any = onnx

__all__ = ["kept"]
NOTED = {"author": "me\nyou", "labels": '["a*/", "b"]'}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("n", 4)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "graph", ports[:1], ports[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    helper.set_model_props(made, {**NOTED, "": "no name"})
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def test_properties_of_onnx_models(model: Path, tmp_path: Path, kept: Store) -> None:
    ways: list[dict[str, Any]] = [{}, {}, {"cache": False}, {"batch": "dynamic"}]
    found = [qdialect.compile(model, **options) for options in ways]
    found[-1].save(tmp_path / "saved.so")
    assert compile_command.main([str(model), "-o", str(tmp_path / "network.so"), "--mcpu", "x86-64"]) == 0
    found += [qdialect.load(tmp_path / name) for name in ("saved.so", "network.so")]
    assert [dict(one.metadata) for one in found] == [NOTED] * len(found)
    assert "model  author: me\\nyou" in repr(found[0])
    assert '"labels": "[\\042a\\052/\\042, \\042b\\042]"' in (tmp_path / "network.h").read_text()
    (tmp_path / "module.mlir").write_text(str(qdialect.read_model(model)))
    assert dict(qdialect.compile(tmp_path / "module.mlir").metadata) == NOTED


def test_a_model_in_parts(model: Path) -> None:
    made: Any = ONNX.load(model)
    made.graph.node[0].op_type = "Hardmax"
    assert dict(qdialect.compile(made, fallback="framework").metadata) == NOTED


def described() -> bytes:
    """A table of the schema of metadata."""
    builder: Any = Builder(64)
    texts = {slot: builder.CreateString(text) for slot, text in ((0, "classifier"), (4, "someone"))}
    builder.StartObject(8)
    for slot, text in texts.items():
        builder.PrependUOffsetTRelativeSlot(slot, text, 0)
    builder.Finish(builder.EndObject(), b"M001")
    return bytes(builder.Output())


def tflite_model() -> bytes:
    """Metadata alone: a text, a description, and what is no text."""
    builder: Any = Builder(1024)
    contents = {"version": b"1.14.0\0\0", "TFLITE_METADATA": described(), "blob": b"\xff\xfe", "zeros": b"a\0b"}
    buffers = [table(builder, "Buffer", Data=builder.CreateByteVector(content)) for content in contents.values()]
    names = [builder.CreateString(name) for name in contents]
    entries = [table(builder, "Metadata", Name=name, Buffer=index) for index, name in enumerate(names)]
    held, noted = table_vector(builder, buffers), table_vector(builder, entries)
    builder.Finish(table(builder, "Model", Version=3, Buffers=held, Metadata=noted), b"TFL3")
    return bytes(builder.Output())


def test_metadata_of_tflite_models() -> None:
    content = tflite_model()
    assert metadata(content) == {"version": "1.14.0", "name": "classifier", "author": "someone"}
    # Damage leaves something out, and never is an error: the graph is as it was.
    for index in range(len(content)):
        for bits in (0xFF, 0x80, 1):
            metadata(content[:index] + bytes([content[index] ^ bits]) + content[index + 1 :])
        metadata(content[:index])
