"""Parts of a .tflite model written back as flatbuffers, for LiteRT to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flatbuffers import Builder

from qdialect.diagnostics import ImportModelError
from qdialect.frameworks import litert
from qdialect.frontends.common import Array

_IDENTIFIER = b"TFL3"


def extract(
    content: bytes,
    operators: Sequence[int],
    inputs: Sequence[int],
    outputs: Sequence[int],
    constants: Mapping[int, Array],
) -> bytes:
    """The model of `operators` of the only subgraph, all by their numbers in the file.

    Tensors keep their numbers, and operators their options, versions and custom codes.  `constants` are tensors that
    other operators compute in the file.  Raises `ImportModelError` where the schema cannot read the file.
    """
    schema = litert.schema()
    try:
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    # On a damaged file accessors raise whatever the broken bytes lead to.
    except Exception as error:
        raise ImportModelError(f"file is damaged: {type(error).__name__}") from error
    subgraph: Any = model.subgraphs[0]
    subgraph.operators = [subgraph.operators[index] for index in operators]
    subgraph.inputs, subgraph.outputs = list(inputs), list(outputs)
    # Both name tensors of the whole.
    model.signatureDefs, model.metadata = [], []
    _drop_unread(schema, model, {*inputs, *outputs, *_tensors_of(subgraph.operators)})
    for index, array in constants.items():
        buffer = schema.BufferT()
        buffer.data = memoryview(array.tobytes())
        subgraph.tensors[index].buffer = len(model.buffers)
        subgraph.tensors[index].shape = list(array.shape)
        model.buffers.append(buffer)
    builder = Builder(len(content))
    builder.Finish(model.Pack(builder), _IDENTIFIER)
    return bytes(builder.Output())


def _tensors_of(operators: Sequence[Any]) -> set[int]:
    lists = (getattr(operator, name) for operator in operators for name in ("inputs", "outputs", "intermediates"))
    return {int(index) for held in lists if held is not None for index in held}


def _drop_unread(schema: Any, model: Any, read: set[int]) -> None:
    """Empty the buffers that no tensor of the part has."""
    tensors = model.subgraphs[0].tensors
    kept = {tensor.buffer for index, tensor in enumerate(tensors) if index in read}
    model.buffers = [buffer if index in kept else schema.BufferT() for index, buffer in enumerate(model.buffers)]
