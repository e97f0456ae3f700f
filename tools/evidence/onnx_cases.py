"""The cases that the package `onnx` has of its operators, in several forms, beside ONNX Runtime."""

from __future__ import annotations

import pkgutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import onnx.backend.test.case.node as package
from onnx import GraphProto, ModelProto, TensorProto, defs, helper, numpy_helper, version_converter

from qdialect.bench.frameworks import onnx_runtime_session
from qdialect.support.interface import Array
from tools.evidence.case import Case, InvalidCaseError, Key, Source

_NUMBERS = "biuf"
_OLD_SET, _NEWEST_SET = 13, 24
_FORMAT_VERSION = 10
# Operators have up to ninety cases of one kind; a few of each operator and form find what all find.
_CASES_OF_A_FORM = 4
_QDQ = {"uint8 QDQ": np.uint8, "int8 QDQ": np.int8}


class OnnxCases(Source):
    """Forms: all inputs ``given`` at run time; all but the first ``constant``; floats between a DequantizeLinear and a
    QuantizeLinear of 8 bits; the operator set 13, of operators that have changed since.
    """

    name = "onnx"

    def rows(self) -> Iterator[Key]:
        counts: Counter[tuple[str, str]] = Counter()
        for module in pkgutil.iter_modules(package.__path__):
            for name, one in _node_cases(module.name).items():
                for form in _forms(one):
                    key = Key(one.model.graph.node[0].op_type, _types(one), form, f"{module.name}/{name}")
                    counts[key.operator, form] += 1
                    if counts[key.operator, form] <= _CASES_OF_A_FORM:
                        yield key

    def case(self, key: Key) -> Case:
        module, _, name = key.origin.partition("/")
        one = _node_cases(module)[name]
        inputs = tuple(np.asarray(value) for value in one.data_sets[0][0])
        model, inputs = _in_form(_in_newest_set(one.model), inputs, key.form)
        content = model.SerializeToString()
        return Case(".onnx", content, inputs, tuple(run(content, inputs)), steps=int(key.form in _QDQ))


def run(model: bytes, inputs: Sequence[Array], *, is_optimized: bool = True) -> list[Array]:
    """What ONNX Runtime gives by default; raises `InvalidCaseError` where it refuses, or is not sure itself."""
    try:
        session = onnx_runtime_session(model, is_optimized=is_optimized)
        feeds = {one.name: value for one, value in zip(session.get_inputs(), inputs, strict=True)}
        first, again = (session.run(None, feeds) for _ in range(2))
    except Exception as error:
        raise InvalidCaseError(str(error)) from error
    if not all(_is_of_numbers(value) for value in first):
        raise InvalidCaseError("results are no tensors of numbers")
    if not all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(first, again, strict=True)):
        raise InvalidCaseError("results differ from run to run")
    return first


def case_of_model(model: bytes, inputs: tuple[Array, ...], steps: int) -> Case:
    """With what ONNX Runtime gives as it is written, beside its optimizer: each has faults that the other lacks."""
    plain = tuple(run(model, inputs, is_optimized=False))
    return Case(".onnx", model, inputs, tuple(run(model, inputs)), steps, alternatives=(plain,))


@cache
def _node_cases(module: str) -> Mapping[str, Any]:
    """The cases of a module by name: one node, tensors of numbers that NumPy has."""
    base: Any = package
    start = len(base._NodeTestCases)
    with np.errstate(all="ignore"):
        import_module(f"{package.__name__}.{module}")
    return {one.name: one for one in base._NodeTestCases[start:] if _is_taken(one)}


def _is_taken(one: Any) -> bool:
    values: list[Any] = [*one.data_sets[0][0], *one.data_sets[0][1]]
    if len(one.model.graph.node) != 1 or one.model.graph.node[0].domain not in ("", "ai.onnx"):
        return False
    return all(_is_of_numbers(value) for value in values)


def _is_of_numbers(value: Any) -> bool:
    return hasattr(value, "dtype") and value.dtype.kind in _NUMBERS


def _types(one: Any) -> str:
    return " ".join(dict.fromkeys(np.asarray(value).dtype.name for value in one.data_sets[0][0]))


def _forms(one: Any) -> Iterator[str]:
    inputs, outputs = one.data_sets[0]
    yield "given"
    if len(inputs) > 1:
        yield "constant"
    if inputs and all(one.dtype == np.float32 and np.isfinite(one).all() for one in (*inputs[:1], *outputs)):
        yield from _QDQ
    if _in_old_set(one.model) is not None:
        yield f"set {_OLD_SET}"


def _in_newest_set(model: ModelProto) -> ModelProto:
    """A copy in the newest operator set and version of the format that ONNX Runtime takes."""
    copy = ModelProto.FromString(model.SerializeToString())
    (used,) = (one for one in copy.opset_import if one.domain == "")
    used.version = min(used.version, _NEWEST_SET)
    copy.ir_version = min(copy.ir_version, _FORMAT_VERSION)
    return copy


def _in_old_set(model: ModelProto) -> ModelProto | None:
    """The model in the old operator set; none where the node means the same there, or cannot be converted."""
    since = defs.get_schema(model.graph.node[0].op_type).since_version
    if since <= _OLD_SET:
        return None
    try:
        return version_converter.convert_version(model, _OLD_SET)
    except Exception:
        return None


def _in_form(model: ModelProto, inputs: tuple[Array, ...], form: str) -> tuple[ModelProto, tuple[Array, ...]]:
    if form == "constant":
        return _with_constants(model, inputs)
    if form in _QDQ:
        return _quantized(model, inputs, _QDQ[form])
    return (_in_old_set(model) or model) if form.startswith("set ") else model, inputs


def _with_constants(model: ModelProto, inputs: tuple[Array, ...]) -> tuple[ModelProto, tuple[Array, ...]]:
    named = list(model.graph.input)
    del model.graph.input[1:]
    model.graph.initializer.extend(
        numpy_helper.from_array(value, one.name) for value, one in zip(inputs[1:], named[1:], strict=True)
    )
    return model, inputs[:1]


def _quantized(model: ModelProto, inputs: tuple[Array, ...], dtype: Any) -> tuple[ModelProto, tuple[Array, ...]]:
    """The first input of floats, and all results, are quantized values; other inputs are constants."""
    results = run(model.SerializeToString(), inputs)
    if not all(value.dtype == np.float32 and np.isfinite(value).all() for value in results):
        raise InvalidCaseError("results are no finite f32 numbers")
    model, inputs = _with_constants(model, inputs)
    graph = model.graph
    scale, zero_point = _parameters(inputs[0], dtype)
    _insert(graph, "DequantizeLinear", graph.input[0].name, scale, zero_point, is_first=True)
    for value, one in zip(results, graph.output, strict=True):
        _insert(graph, "QuantizeLinear", one.name, *_parameters(value, dtype), is_first=False)
    info = np.iinfo(dtype)
    quantized = np.clip(np.rint(inputs[0] / scale) + zero_point, info.min, info.max).astype(dtype)
    return model, (quantized,)


def _parameters(values: Array, dtype: Any) -> tuple[np.float32, Any]:
    """Scale and zero point for the range of the values, which has 0 in it; symmetric for signed types."""
    low, high = min(0.0, float(values.min(initial=0))), max(0.0, float(values.max(initial=0)))
    if np.dtype(dtype).kind == "i":
        return np.float32(max(high, -low) / 127 or 1), dtype(0)
    scale = (high - low) / 255 or 1.0
    return np.float32(scale), dtype(round(-low / scale))


def _insert(graph: GraphProto, kind: str, name: str, scale: Any, zero_point: Any, *, is_first: bool) -> None:
    """Put a node between the graph and its input or output `name`, which keeps its name and gets the quantized type."""
    inner = f"{name}_float"
    for node in graph.node:
        values = node.input if is_first else node.output
        for index, value in enumerate(values):
            if value == name:
                values[index] = inner
    for suffix, value in (("scale", scale), ("zero_point", zero_point)):
        graph.initializer.append(numpy_helper.from_array(np.asarray(value), f"{name}_{suffix}"))
    source, result = (name, inner) if is_first else (inner, name)
    node = helper.make_node(kind, [source, f"{name}_scale", f"{name}_zero_point"], [result])
    graph.node.insert(0 if is_first else len(graph.node), node)
    declared = graph.input if is_first else graph.output
    element = TensorProto.UINT8 if np.asarray(zero_point).dtype == np.uint8 else TensorProto.INT8
    for one in declared:
        if one.name == name:
            one.type.tensor_type.elem_type = element
