"""From a .tflite model to a `qnn` module with the arithmetic of the reference kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qdialect._mlir import func, ir
from qdialect.context import make_context, verify
from qdialect.diagnostics import Diagnostic, ImportModelError, Severity, VerificationError
from qdialect.dialect import ConstraintError
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Graph, Operator, Tensor
from qdialect.frontends.tflite.operators import Emission, UnsupportedError, plan
from qdialect.frontends.tflite.reader import read_graph

_ELEMENTS = ("i8", "ui8", "f32")
TENSOR_ATTRIBUTE = "qnn.tensor"
"""On the op that produces a tensor of the model: the tensor's index, an i64."""


def import_tflite(source: str | Path | bytes, context: ir.Context | None = None) -> ir.Module:
    """A verified module with one public function ``@main`` from a .tflite file, or from its content.

    Arguments and results keep the model's order, shapes and types; their attributes are `qnn.name` and, where they are
    quantized, `qnn.scale` and `qnn.zero_point`.  Every op is located at the name of its node's output tensor, and the
    op that produces a tensor carries the tensor's index as `qnn.tensor`.

    Raises `ImportModelError` for a file that is damaged, and for one with nodes that the dialect cannot express; then
    every such node is a note.
    """
    content, name = _content_of(source)
    try:
        graph = read_graph(content)
    except ImportModelError as error:
        raise ImportModelError(f"'{name}': {error}") from error
    emissions = _plan_all(graph, name)
    context = context or make_context()
    with context, ir.Location.file(name, 0, 0):
        try:
            module = _build(graph, emissions, name)
            verify(module)
        except VerificationError as error:
            raise ImportModelError(f"'{name}': model is damaged: {error}", error.diagnostics) from error
    return module


def _content_of(source: str | Path | bytes) -> tuple[bytes, str]:
    if isinstance(source, bytes):
        return source, "model.tflite"
    try:
        return Path(source).read_bytes(), Path(source).name
    except OSError as error:
        raise ImportModelError(f"cannot read '{source}': {error.strerror}") from error


def _plan_all(graph: Graph, name: str) -> list[Emission]:
    emissions: list[Emission] = []
    offences: list[str] = []
    for operator in graph.operators:
        try:
            emissions.append(plan(operator))
        except UnsupportedError as error:
            offences.append(f"{operator.title}: {error}")
    offences += _interface_offences("input", graph.inputs) + _interface_offences("output", graph.outputs)
    if offences:
        notes = tuple(Diagnostic(Severity.NOTE, offence) for offence in offences)
        message = f"'{name}' uses what is not supported, in {len(offences)} place{'s' * (len(offences) != 1)}"
        raise ImportModelError(message, (Diagnostic(Severity.ERROR, message, notes=notes),))
    return emissions


def _interface_offences(what: str, tensors: Sequence[Tensor]) -> list[str]:
    offences: list[str] = []
    for tensor in tensors:
        if tensor.element not in _ELEMENTS:
            offences.append(f"{what} '{tensor.name}': type must be i8, ui8 or f32, but got {tensor.element}")
        if 0 in tensor.shape:
            offences.append(f"{what} '{tensor.name}': shape must not be empty, but got {list(tensor.shape)}")
    return offences


def _build(graph: Graph, emissions: Sequence[Emission], name: str) -> ir.Module:
    module = ir.Module.create()
    emitter = Emitter(name)
    with ir.InsertionPoint(module.body):
        inputs, outputs = [_type_of(t) for t in graph.inputs], [_type_of(t) for t in graph.outputs]
        function = func.FuncOp("main", (inputs, outputs), visibility="public")
        function.arg_attrs = _interface_attributes(graph.inputs)
        function.res_attrs = _interface_attributes(graph.outputs)
    block = function.add_entry_block([emitter.location_of(tensor) for tensor in graph.inputs])
    for tensor, argument in zip(graph.inputs, block.arguments, strict=True):
        emitter.define(tensor, argument)
    with ir.InsertionPoint(block):
        for operator, emission in zip(graph.operators, emissions, strict=True):
            _emit(emitter, operator, emission)
        func.ReturnOp([emitter.value(tensor) for tensor in graph.outputs])
    return module


def _emit(emitter: Emitter, operator: Operator, emission: Emission) -> None:
    emitter.enter(operator)
    tensor = operator.outputs[0]
    try:
        value = emission(emitter)
        emitter.define(tensor, value)
    except ConstraintError as error:
        raise ImportModelError(f"model is damaged: {operator.title}: {error}") from error
    producer = ir.OpResult(value).owner
    producer.attributes[TENSOR_ATTRIBUTE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), tensor.index)


def _type_of(tensor: Tensor) -> ir.Type:
    return ir.RankedTensorType.get(list(tensor.shape), ir.Type.parse(tensor.element))


def _interface_attributes(tensors: Sequence[Tensor]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.DictAttr.get(_attributes_of(tensor)) for tensor in tensors])


def _attributes_of(tensor: Tensor) -> dict[str, ir.Attribute]:
    attributes: dict[str, ir.Attribute] = {"qnn.name": ir.StringAttr.get(tensor.name)}
    if len(tensor.scales) == 1:
        attributes["qnn.scale"] = ir.FloatAttr.get(ir.F64Type.get(), tensor.scale)
        attributes["qnn.zero_point"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), tensor.zero_point)
    return attributes
