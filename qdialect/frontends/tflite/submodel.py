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
    shapes: Mapping[int, Sequence[int]],
    subgraph_index: int = 0,
) -> bytes:
    """The model of `operators` of a subgraph, all by their numbers in the file.

    Tensors keep their numbers, and operators their options, versions and custom names.  `constants` are tensors that
    other operators compute in the file, `shapes` those of `inputs`, which the file may leave open.  Raises
    `ImportModelError` where the schema cannot read the file.
    """
    schema = litert.schema()
    try:
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    # On a damaged file accessors raise whatever the broken bytes lead to.
    except Exception as error:
        raise ImportModelError(f"file is damaged: {type(error).__name__}") from error
    _take_in(model, content)
    # The first is what an interpreter runs; the others stay where operators such as WHILE find them.
    subgraph: Any = model.subgraphs[subgraph_index]
    model.subgraphs[0] = subgraph
    subgraph.operators = [subgraph.operators[index] for index in operators]
    subgraph.inputs, subgraph.outputs = list(inputs), list(outputs)
    _add_biases(schema, model, subgraph)
    # Both name tensors of the whole.
    model.signatureDefs, model.metadata = [], []
    _drop_unread(schema, model, {*inputs, *outputs, *_tensors_of(subgraph.operators)})
    for index, shape in shapes.items():
        subgraph.tensors[index].shape = list(shape)
    for index, array in constants.items():
        buffer = schema.BufferT()
        buffer.data = memoryview(array.tobytes())
        subgraph.tensors[index].buffer = len(model.buffers)
        subgraph.tensors[index].shape = list(array.shape)
        model.buffers.append(buffer)
    builder = Builder(len(content))
    builder.Finish(model.Pack(builder), _IDENTIFIER)
    return bytes(builder.Output())


def _take_in(model: Any, content: bytes) -> None:
    """Buffers and options that lie behind the tables become parts of these, where a shorter file has them."""
    for buffer in model.buffers:
        if buffer.offset > 1 or buffer.size > 1:
            buffer.data = memoryview(content)[buffer.offset : buffer.offset + buffer.size]
            buffer.offset = buffer.size = 0
    for operator in (operator for subgraph in model.subgraphs for operator in subgraph.operators or ()):
        begin, size = operator.largeCustomOptionsOffset, operator.largeCustomOptionsSize
        if begin > 1 or size > 1:
            operator.customOptions = list(content[begin : begin + size])
            operator.largeCustomOptionsOffset = operator.largeCustomOptionsSize = 0


def _add_biases(schema: Any, model: Any, subgraph: Any) -> None:
    """Biases of zero, where LiteRT's kernel of f32 data and 8-bit weights reads one that is left out."""
    for operator in subgraph.operators:
        code = model.operatorCodes[operator.opcodeIndex]
        kind = max(code.builtinCode, code.deprecatedBuiltinCode)
        inputs = [int(index) for index in operator.inputs]
        if kind != schema.BuiltinOperator.DEPTHWISE_CONV_2D or (len(inputs) > 2 and inputs[2] != -1):
            continue
        weight = subgraph.tensors[inputs[1]]
        if subgraph.tensors[inputs[0]].type == schema.TensorType.FLOAT32 != weight.type:
            bias, buffer, channels = schema.TensorT(), schema.BufferT(), int(weight.shape[-1])
            bias.name, bias.shape, bias.type = b"zero", [channels], schema.TensorType.FLOAT32
            buffer.data = memoryview(bytes(4 * channels))
            bias.buffer = len(model.buffers)
            model.buffers.append(buffer)
            operator.inputs = [*inputs[:2], len(subgraph.tensors)]
            subgraph.tensors.append(bias)


def _tensors_of(operators: Sequence[Any]) -> set[int]:
    lists = (getattr(operator, name) for operator in operators for name in ("inputs", "outputs", "intermediates"))
    return {int(index) for held in lists if held is not None for index in held}


def _drop_unread(schema: Any, model: Any, read: set[int]) -> None:
    """Empty the buffers that no tensor of the part has; what runs the other subgraphs may be in it."""
    part, *others = model.subgraphs
    held = [part.tensors[index] for index in read if index >= 0]
    # Scales of blocks lie in tensors that no operator names.
    details = [tensor.quantization.details for tensor in held if tensor.quantization is not None]
    named = {getattr(one, name, -1) for one in details for name in ("scales", "zeroPoints")}
    kept = {tensor.buffer for tensor in [*held, *(part.tensors[index] for index in named if index >= 0)]}
    kept |= {tensor.buffer for other in others if other is not part for tensor in other.tensors}
    model.buffers = [buffer if index in kept else schema.BufferT() for index, buffer in enumerate(model.buffers)]
