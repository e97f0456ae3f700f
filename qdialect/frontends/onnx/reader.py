"""Reads an .onnx file; a damaged one ends in `ImportModelError`.

The one module that needs the package `onnx`, and only when it is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdialect.frontends.building.checks import Array, Interface, Shape
from qdialect.frontends.building.extents import Extents, OpenShape
from qdialect.frontends.onnx.double_pairs import join_double_pairs
from qdialect.frontends.onnx.inlining import captured, inlined
from qdialect.frontends.onnx.model import Graph, Node, element_name, in_order, known_tensor
from qdialect.frontends.onnx.small_floats import in_f32
from qdialect.support.diagnostics import ImportModelError
from qdialect.support.files import record_read

if TYPE_CHECKING:
    import onnx

_NO_TEXT = "file is damaged: names in it must be UTF-8"
_STANDARD_DOMAINS = ("", "ai.onnx")


def open_shapes(content: bytes) -> dict[str, OpenShape]:
    """The shapes of a model's inputs, with names of the extents that it leaves open."""
    model = _parsed(content)
    known = {tensor.name for tensor in model.graph.initializer}
    return {value.name: _open_shape(value) for value in model.graph.input if value.name not in known}


def metadata(content: bytes) -> dict[str, str]:
    """The properties of a model by their names."""
    return {entry.key: entry.value for entry in _parsed(content).metadata_props}


def read_proto(content: bytes) -> onnx.ModelProto:
    """The model of a file, without calls of its functions, double quantizations and arithmetic on small floats.

    Raises `ImportModelError` for a damaged file and where the package `onnx` is not installed.
    """
    model = _parsed(content)
    import onnx

    # A sparse constant is one that a node gives.
    for sparse in reversed(model.graph.sparse_initializer):
        constant = onnx.helper.make_node("Constant", [], [sparse.values.name], sparse_value=sparse)
        model.graph.node.insert(0, constant)
    del model.graph.sparse_initializer[:]
    model = inlined(model)
    join_double_pairs(model)
    try:
        in_f32(model)
    except UnicodeError as error:
        raise ImportModelError(f"{_NO_TEXT}: {error}") from error
    return model


def _parsed(content: bytes) -> onnx.ModelProto:
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise ImportModelError(
            "reading .onnx files needs the package 'onnx', which the extra 'onnx' brings: pip install 'qdialect[onnx]'"
        ) from error
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise ImportModelError("file is damaged: it is no serialized ONNX model") from error
    return model


def read_graph(model: onnx.ModelProto, folder: Path | None, extents: Extents) -> Graph:
    """The graph of a model; `folder` has its external data, `extents` sets the extents that inputs leave open.

    Raises `ImportModelError` for a damaged model, missing external data and an extent that stays open.
    """
    try:
        return _graph(model, folder, extents)
    except UnicodeError as error:
        raise ImportModelError(f"{_NO_TEXT}: {error}") from error


def _graph(model: onnx.ModelProto, folder: Path | None, extents: Extents) -> Graph:
    graph = model.graph
    if not graph.output:
        raise ImportModelError("file is damaged: it must have a graph with at least 1 output, but got none")
    _check_unique("constants", _texts([tensor.name for tensor in graph.initializer]))
    _check_unique("inputs", _texts([value.name for value in graph.input]))
    unsupported = {tensor.name: reason for tensor in graph.initializer if (reason := _why_unsupported(tensor))}
    constants = {tensor.name: _array(tensor, folder) for tensor in graph.initializer if tensor.name not in unsupported}
    known = constants.keys() | unsupported.keys()
    given = [value for value in graph.input if value.name not in known]
    extents.share({value.name: _open_shape(value) for value in given})
    inputs = tuple(_input(value, extents) for value in given)
    extents.check_used()
    versions = {_domain(entry.domain): entry.version for entry in model.opset_import}
    nodes = in_order([_node(index, node, folder, versions) for index, node in enumerate(graph.node)])
    declared = {value.name: tensor for value in graph.value_info if (tensor := known_tensor(value.name, value.type))}
    outputs = _texts([value.name for value in graph.output])
    results = _result_shapes(graph.output, [_open_shape(value) for value in given], inputs)
    # What is converted to a result has its shape.
    for node in reversed(nodes):
        if node.kind in ("Cast", "Identity") and node.outputs[:1] and node.outputs[0] in results:
            results.update((name, results[node.outputs[0]]) for name in node.inputs[:1])
    return Graph(nodes, inputs, outputs, constants, unsupported, declared, results)


def _result_shapes(
    outputs: Sequence[onnx.ValueInfoProto], shapes: Sequence[OpenShape], inputs: Sequence[Interface]
) -> dict[str, Shape]:
    """The shapes of outputs of which all extents are known; `shapes` are those of `inputs` in the file."""
    pairs = [pair for shape, found in zip(shapes, inputs, strict=True) for pair in zip(shape, found.shape, strict=True)]
    known: dict[int | str, int] = {name: extent for name, extent in pairs if name}
    declared = {value.name: _open_shape(value) for value in outputs if value.type.tensor_type.HasField("shape")}
    return {
        name: tuple(extent if isinstance(extent, int) else known[extent] for extent in shape)
        for name, shape in declared.items()
        if all(isinstance(extent, int) or extent in known for extent in shape)
    }


def _check_unique(what: str, names: Sequence[str]) -> None:
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise ImportModelError(f"file is damaged: {what} must have names of their own, but two are called '{repeated}'")


def _why_unsupported(tensor: onnx.TensorProto) -> str:
    """The problem with the element type of a constant; empty if it is one of numbers."""
    from onnx import TensorProto

    if tensor.data_type not in (TensorProto.STRING, TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        return ""
    held = TensorProto.DataType.Name(tensor.data_type)
    return f"constant '{tensor.name}' must hold numbers, but holds elements of type {held}"


def _array(tensor: onnx.TensorProto, folder: Path | None) -> Array:
    from onnx import checker, external_data_helper, numpy_helper

    reason = _why_unsupported(tensor)
    if reason:
        raise ImportModelError(reason)
    try:
        if external_data_helper.uses_external_data(tensor):
            _load_external(tensor, folder)
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, OSError, OverflowError, checker.ValidationError) as error:
        raise ImportModelError(f"file is damaged: constant '{tensor.name}' cannot be read: {error}") from error


def _load_external(tensor: onnx.TensorProto, folder: Path | None) -> None:
    from onnx import external_data_helper

    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    if folder is None:
        reason = "lies in another file, so the model must be given as a path"
        raise ImportModelError(f"data of constant '{tensor.name}' {reason}")
    if not (folder / location).is_file():
        raise ImportModelError(f"data of constant '{tensor.name}' must be in '{location}' in the model's folder")
    record_read(folder, location)
    external_data_helper.load_external_data_for_tensor(tensor, str(folder))
    tensor.ClearField("data_location")


def _input(value: onnx.ValueInfoProto, extents: Extents) -> Interface:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.HasField("shape"):
        raise ImportModelError(f"input '{value.name}' must be a tensor with a shape")
    element = element_name(tensor.elem_type)
    return Interface(value.name, extents.shape(value.name, _open_shape(value)), element)


def _open_shape(value: onnx.ValueInfoProto) -> OpenShape:
    dims = value.type.tensor_type.shape.dim
    known = [entry.HasField("dim_value") and entry.dim_value >= 0 for entry in dims]
    return [entry.dim_value if one else str(entry.dim_param) for entry, one in zip(dims, known, strict=True)]


def _domain(domain: str) -> str:
    return "" if domain in _STANDARD_DOMAINS else domain


def _node(index: int, node: onnx.NodeProto, folder: Path | None, versions: Mapping[str, int]) -> Node:
    domain = _domain(node.domain)
    kind = f"{domain}.{node.op_type}" if domain else node.op_type
    title = f"node {index} {kind}"
    try:
        attributes = {attribute.name: _attribute(attribute, folder) for attribute in node.attribute}
    except ValueError as error:
        raise ImportModelError(f"file is damaged: attributes of {title} cannot be read: {error}") from error
    if len(attributes) < len(node.attribute):
        raise ImportModelError(f"file is damaged: attributes of {title} must have names of their own")
    version = versions.get(domain, 1)
    reads, gives, inner = (_texts(names) for names in (node.input, node.output, captured(node)))
    return Node(index, kind, _text(node.name), reads, gives, attributes, version, inner)


def _text(name: str | bytes) -> str:
    """`name`, which the package gives as bytes or with lone surrogates where it is no UTF-8; raises `UnicodeError`."""
    text = name.decode() if isinstance(name, bytes) else name
    text.encode()
    return text


def _texts(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(_text, names))


def _attribute(attribute: onnx.AttributeProto, folder: Path | None) -> Any:
    """An integer, a float, a string, an array or a list of one of these; others stay as they are."""
    from onnx import helper

    if attribute.type == attribute.TENSOR:
        return attribute.t if _why_unsupported(attribute.t) else _array(attribute.t, folder)
    value: Any = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if attribute.type == attribute.STRINGS:
        return [entry.decode() for entry in value]
    return list(value) if attribute.type in (attribute.INTS, attribute.FLOATS) else value
