"""From a .tflite model to a `qnn` module with the arithmetic of the reference kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qdialect.arithmetic.profiles import TFLITE_PROFILES, TFLITE_XNNPACK
from qdialect.dialect import ConstraintError
from qdialect.dialect.op_base import BuildError
from qdialect.frontends.building import checks
from qdialect.frontends.building.extents import NO_DIMS, Dims, Extents, OpenShape
from qdialect.frontends.planning.emitter import ValueRefusedError
from qdialect.frontends.tflite.flatbuffer.model import Graph, Operator, Tensor
from qdialect.frontends.tflite.flatbuffer.reader import read_graph, read_inputs
from qdialect.frontends.tflite.folding import fold_constants
from qdialect.frontends.tflite.operators import Emission, plan
from qdialect.frontends.tflite.operators.registry import Emitter
from qdialect.ir._mlir import func, ir
from qdialect.ir.context import file_location, make_context, verify
from qdialect.support.diagnostics import ImportModelError, VerificationError
from qdialect.support.late_imports import LATE_IMPORTS

ELEMENTS = ("i1", "i8", "ui8", "i16", "i32", "i64", "f32")
"""The element types of arguments and results of a module."""
PROFILES = TFLITE_PROFILES
"""Whose arithmetic an imported module may have; the first is what it has unless it is told otherwise."""
TENSOR_ATTRIBUTE = "qnn.tensor"
"""On the op that produces a tensor of the model: the tensor's index, an i64."""


def import_tflite(
    source: checks.Source,
    context: ir.Context | None = None,
    *,
    profile: str = PROFILES[0],
    signature: str = "",
    batch: int = 1,
    dims: Dims = NO_DIMS,
) -> ir.Module:
    """A verified module with one public function ``@main`` from a .tflite file, or from its content.

    `profile` states whose arithmetic it has: that of the reference kernels (``tflite``) or that of the delegate which
    desktop builds use (``tflite-xnnpack``).

    `signature` names one of the model's signatures, which is imported then, and whose names arguments and results have;
    without it the first subgraph is imported, as an interpreter runs it.

    Extents of inputs that the file leaves open are those of `dims`, as ``INPUT:AXIS``, or the file's; a first one is
    `batch` where that is not 1.

    Arguments and results keep the model's order, shapes and types; their attributes are `qnn.name` and, where they are
    quantized, `qnn.scale` and `qnn.zero_point`.  Every op is located at the name of the tensor it helps to compute, and
    the op that produces a tensor carries the tensor's index as `qnn.tensor`.

    Nodes that compute shapes are done here and leave constants.

    Raises `ImportModelError` for a file that is damaged, for an unknown profile or signature, and for a file with nodes
    that the dialect cannot express; then every such node is a note.
    """
    whole, name = read_model(source, signature, Extents(batch, dims))
    return import_graph(fold_constants(whole), name, profile, context)


def import_graph(graph: Graph, name: str, profile: str, context: ir.Context | None = None) -> ir.Module:
    """The module of a graph, as `import_tflite`; `name` is what messages call it."""
    checks.check_profile(profile, PROFILES)
    is_delegated = profile == TFLITE_XNNPACK.name
    emissions = _plan_all(graph, name, is_delegated)
    context = context or make_context()
    with context, file_location(name):
        try:
            module = _build(graph, emissions, name, profile)
            verify(module)
            if is_delegated:
                with LATE_IMPORTS:
                    from qdialect.frontends.tflite.xnnpack import use_xnnpack

                use_xnnpack(module)
                verify(module)
        except VerificationError as error:
            raise ValueRefusedError.of(name, "", error.message) from error
        except ValueRefusedError:
            raise
        except ImportModelError as error:
            raise ImportModelError(f"'{name}': {error.message}") from error
        except ir.MLIRError as error:
            raise ValueRefusedError.of(name, "", " ".join(str(error).split())) from error
    return module


def nodes_of(
    source: checks.Source, *, signature: str = "", batch: int = 1, dims: Dims = NO_DIMS
) -> tuple[checks.GraphNode, ...]:
    """The nodes of a .tflite file, supported or not; raises `ImportModelError` for one that cannot be read."""
    graph, _ = read_model(source, signature, Extents(batch, dims))
    return tuple(_node(operator) for operator in graph.operators)


def _node(operator: Operator) -> checks.GraphNode:
    inputs = tuple(tensor.name for tensor in operator.inputs if tensor is not None)
    return checks.GraphNode(operator.title, operator.kind, inputs, tuple(tensor.name for tensor in operator.outputs))


def read_model(source: checks.Source, signature: str, extents: Extents) -> tuple[Graph, str]:
    """The graph of a file, supported or not, and what messages call it; raises `ImportModelError`."""
    content, name = checks.content_of(source, "model.tflite")
    try:
        return with_extents(read_graph(content, signature), extents), name
    except ImportModelError as error:
        raise type(error)(f"'{name}': {error.message}") from error


def _plan_all(graph: Graph, name: str, is_delegated: bool) -> list[Emission]:
    emissions: list[Emission] = []
    unsupported: list[str] = []
    for operator in graph.operators:
        try:
            with checks.converting():
                emissions.append(plan(operator, is_delegated=is_delegated))
        except checks.UnsupportedError as error:
            unsupported.append(f"{operator.title}: {error}")
    for what, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        unsupported += checks.unsupported_interfaces(what, _interfaces(graph, tensors), ELEMENTS)
    checks.refuse(name, unsupported)
    return emissions


def _interfaces(graph: Graph, tensors: Sequence[Tensor]) -> list[checks.Interface]:
    by_tensor = [(one.scale, one.zero_point) if len(one.scales) == 1 else (None, None) for one in tensors]
    pairs = zip(tensors, by_tensor, strict=True)
    return [checks.Interface(graph.name_of(one), one.shape, one.element, *how) for one, how in pairs]


def _build(graph: Graph, emissions: Sequence[Emission], name: str, profile: str) -> ir.Module:
    module = ir.Module.create()
    emitter = Emitter(name, graph.budget, is_delegated=profile == TFLITE_XNNPACK.name)
    block = emitter.function(module, _interfaces(graph, graph.inputs), _interfaces(graph, graph.outputs))
    for tensor, argument in zip(graph.inputs, block.arguments, strict=True):
        emitter.define(tensor, argument)
    with ir.InsertionPoint(block):
        for operator, emission in zip(graph.operators, emissions, strict=True):
            _emit(emitter, operator, emission, name)
        func.ReturnOp([emitter.value(tensor) for tensor in graph.outputs])
    return module


def _emit(emitter: Emitter, operator: Operator, emission: Emission, name: str) -> None:
    emitter.enter(operator.outputs[0].name)
    try:
        with checks.converting():
            given = emission(emitter)
    except (ConstraintError, BuildError, checks.UnsupportedError) as error:
        refused = ValueRefusedError.of(name, "", f"{operator.title}: {error}")
        refused.value = operator.outputs[0].name
        raise refused from error
    values = [given] if isinstance(given, ir.Value) else given
    found, wanted = len(operator.outputs), len(values)
    if found != wanted:
        raise ImportModelError(f"{operator.title} must have {wanted} outputs, but got {found}")
    for tensor, value in zip(operator.outputs, values, strict=True):
        emitter.define(tensor, value)
        producer = value.owner
        if not isinstance(producer, ir.Block):
            producer.attributes[TENSOR_ATTRIBUTE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), tensor.index)


# Extents that a .tflite file leaves open: the user chooses those of inputs, all others follow from them.
#
# A file has an extent for every axis of its inputs, and a list of those that may differ.  Without the user's choice the
# file's extent holds.

_BATCH = 1


def open_shapes(content: bytes, signature: str) -> Mapping[str, OpenShape]:
    """The shapes of the inputs of a file by their names; an extent that may be another has an empty name."""
    graph = read_inputs(content, signature)
    return {graph.name_of(tensor): _declared(tensor) for tensor in graph.inputs}


def _declared(tensor: Tensor) -> OpenShape:
    signature = tensor.signature if len(tensor.signature) == len(tensor.shape) else tensor.shape
    return tuple("" if noted == -1 else extent for extent, noted in zip(tensor.shape, signature, strict=True))


def with_extents(graph: Graph, extents: Extents) -> Graph:
    """`graph` with inputs of the chosen extents; raises `ImportModelError` where none of those is open."""
    known: dict[int, Tensor] = {}
    for tensor in graph.inputs:
        name = graph.name_of(tensor)
        declared = [_said(extents, name, axis, tensor) for axis in range(len(tensor.shape))]
        known[tensor.index] = replace(tensor, shape=extents.shape(name, declared))
    extents.check_used()

    def current(tensor: Tensor) -> Tensor:
        return known.get(tensor.index, tensor)

    operators = [
        replace(one, inputs=tuple(None if tensor is None else current(tensor) for tensor in one.inputs))
        for one in graph.operators
    ]
    tensors, inputs, outputs = (tuple(map(current, of)) for of in (graph.tensors, graph.inputs, graph.outputs))
    return replace(graph, tensors=tensors, operators=tuple(operators), inputs=inputs, outputs=outputs)


def _said(extents: Extents, name: str, axis: int, tensor: Tensor) -> int | str:
    """Nothing, for what is to be looked up; else the extent of the file."""
    is_open = _declared(tensor)[axis] == ""
    is_said = f"{name}:{axis}" in extents.dims or (axis == 0 and extents.batch != _BATCH)
    return "" if is_open and is_said else tensor.shape[axis]
