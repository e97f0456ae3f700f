"""Attributes of ONNX operators: each is read, or refused by name unless it says what its absence says."""

from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np
import pytest
from onnx import defs
from onnx_graphs import CONTRIB, ModelBuilder, agreed, drawn, refused

import qdialect
from qdialect.frontends.onnx.folding import is_evaluated
from qdialect.frontends.onnx.model import Node
from qdialect.frontends.onnx.operators import registry
from qdialect.frontends.onnx.operators.registry import supported_operators
from qdialect.frontends.onnx.schema import inferred
from qdialect.frontends.planning.tensors import Constant, Tensor

_FIRST = 7
"""The first operator set of which ONNX Runtime has kernels."""
_UNNAMED = {
    "Attention": {"left_window_size", "right_window_size"},
    "BatchNormalization": {"spatial"},
    "BlackmanWindow": {"output_datatype", "periodic"},
    "ConstantOfShape": {"value"},
    "GroupNormalization": {"stash_type"},
    "HammingWindow": {"output_datatype", "periodic"},
    "HannWindow": {"output_datatype", "periodic"},
    "Range": {"stash_type"},
    "TopK": {"sorted"},
}
"""What no planner names: refused, or read where constants are evaluated."""
X = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)


def _schemas() -> Iterator[tuple[str, set[str]]]:
    """The names of the attributes of each operator that has a planner, of every operator set."""
    planned = set(registry.supported_operators())
    for name in planned:
        for version in range(_FIRST, defs.onnx_opset_version() + 1):
            if "." not in name and defs.has(name, version, ""):
                yield name, set(defs.get_schema(name, version, "").attributes)
    for schema in import_module("onnxruntime.capi.onnxruntime_pybind11_state").get_all_operator_schema():
        if schema.domain == CONTRIB and f"{CONTRIB}.{schema.name}" in planned:
            yield f"{CONTRIB}.{schema.name}", set(schema.attributes)


def _named(kind: str) -> set[str]:
    """All texts in the code that an operator's planners may reach."""
    waiting: list[tuple[Any, dict[str, Any]]] = [(registry.planner_of(kind), {})]
    seen, found = set[int](), set[str]()
    while waiting:
        value, names = waiting.pop()
        if isinstance(value, str):
            found.add(value)
        if id(value) in seen:
            continue
        seen.add(id(value))
        waiting += [(part, names) for part in _parts(value, names)]
        if isinstance(value, FunctionType):
            waiting.append((value.__code__, value.__globals__))
    return found


def _parts(value: Any, names: dict[str, Any]) -> list[Any]:
    if isinstance(value, CodeType):
        named = [names[name] for name in value.co_names if name in names]
        modules = [vars(one) for one in named if isinstance(one, ModuleType) and _is_own(one.__name__)]
        return [*value.co_consts, *named, *(one[name] for one in modules for name in value.co_names if name in one)]
    if isinstance(value, FunctionType):
        return [cell.cell_contents for cell in value.__closure__ or ()]
    if isinstance(value, type):
        return [*value.__bases__, *list(vars(value).values())] if _is_own(value.__module__) else []
    if isinstance(value, cached_property):
        return [value.func]
    if isinstance(value, property):
        return [value.fget]
    if isinstance(value, classmethod | staticmethod):
        return [cast("Any", value).__func__]
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        return [*entries.keys(), *entries.values()]
    return [*cast("list[Any]", value)] if isinstance(value, tuple | list | set | frozenset) else []


def _is_own(module: str) -> bool:
    return module.startswith("qdialect.frontends.onnx")


def test_every_attribute_of_every_operator_set_is_named_by_a_planner() -> None:
    named = {kind: _named(kind) for kind in registry.supported_operators()}
    unnamed: dict[str, set[str]] = {}
    for kind, attributes in _schemas():
        unnamed.setdefault(kind, set()).update(attributes - named[kind])
    assert {kind: found for kind, found in unnamed.items() if found} == _UNNAMED


def _model(kind: str, attributes: dict[str, Any], version: int) -> bytes:
    """An operator of X, or of its first three numbers and its other inputs."""
    model = ModelBuilder()
    inputs = [model.input("x", X.shape)]
    if kind == "DequantizeLinear":
        inputs = [model.constant(drawn((2, 3), np.int8)), model.constant(0.1)]
    elif kind == "QuantizeLinear":
        inputs += [model.constant(0.1)]
    elif kind == "TopK":
        inputs += [model.constant(np.array([2]))]
    elif kind in ("Add", "LayerNormalization"):
        inputs += [model.constant(X[0, 0, 0])]
    model.node_of_many(kind, inputs, ["y", "indices"] if kind == "TopK" else ["y"], **attributes)
    return model.finish("y", dtype=np.float32, version=version)


REFUSED: dict[str, tuple[str, dict[str, Any], int]] = {
    "output must be f32, but got double": ("DequantizeLinear", {"output_dtype": 11}, 23),
    "precision must be f32, but got double": ("QuantizeLinear", {"precision": 11}, 23),
    "attribute 'sorted' is not supported, but is 0": ("TopK", {"sorted": 0}, 17),
    "stash_type must be 1, that of f32, but got 11": ("LayerNormalization", {"stash_type": 11}, 17),
    "attribute 'keepdims' must be 0 or 1, but is 2": ("ArgMax", {"keepdims": 2}, 17),
    "attribute 'broadcast' is not supported, but is 1": ("Add", {"broadcast": 1}, 6),
    "attribute 'unheard_of' is not supported, but is 'yes'": ("Relu", {"unheard_of": "yes"}, 17),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_attributes_that_change_what_is_computed_are_refused(reason: str) -> None:
    assert reason in refused(_model(*REFUSED[reason]))


READ: list[tuple[str, dict[str, Any], int]] = [
    ("TopK", {"sorted": 1}, 17),
    ("DequantizeLinear", {"output_dtype": 1, "axis": 0}, 23),
    ("LayerNormalization", {"stash_type": 1}, 17),
    ("MaxPool", {"kernel_shape": [2, 2], "auto_pad": "VALID", "pads": [0, 0, 0, 0]}, 17),
    ("Shrink", {"lambd": -1.0, "bias": 0.5}, 17),
    ("MeanVarianceNormalization", {"axes": [2, 3]}, 17),
]


@pytest.mark.parametrize(("kind", "attributes", "version"), READ, ids=[kind for kind, *_ in READ])
def test_attributes_that_are_read_or_change_nothing(kind: str, attributes: dict[str, Any], version: int) -> None:
    content, data = _model(kind, attributes, version), X.copy()
    data[0, 1] = 1
    agreed(content, data, within="layer", count=1)


def test_values_that_are_dequantized_to_halves_are_rounded_to_them(tmp_path: Path) -> None:
    """As by ONNX Runtime's kernel."""
    model = ModelBuilder()
    data = model.input("x", (2, 6), np.int8)
    halves = model.node("DequantizeLinear", data, model.constant(0.0107), output_dtype=10)
    content = model.finish(model.node("Cast", halves, to=1), dtype=np.float32, version=23)
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    values = drawn((2, 6), np.int8)
    executable = qdialect.compile(path, fallback="framework", cache=False)
    assert [region.runner for region in executable.regions] == ["qdialect"]
    wanted = (values * np.float32(0.0107)).astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(executable(values)), wanted)


def test_shapes_are_inferred_with_the_defaults_of_the_schema() -> None:
    """Of STFT: half of the spectrum."""
    inputs: list[Tensor] = [Constant(one) for one in (X[0, 0], np.array(1), np.array(4))]
    node = Node(0, "STFT", "", ("signal", "step", "", "length"), ("y",), {}, 17)
    (found,) = inferred(node, [*inputs[:2], None, inputs[2]])
    assert found.shape == (4, 2, 3, 2)


# One network in every operator set from 10 to 24: inputs that were attributes, axes, defaults.

X_OPSETS, Y = (0.03, 120), (0.1, 0)
IMAGE = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)


def _network(version: int) -> bytes:
    model = ModelBuilder()
    data = model.dequantize(model.quantize(model.input("x", IMAGE.shape), X_OPSETS), X_OPSETS)
    product = model.node("Conv", data, model.weight(drawn((4, 3, 3, 3), np.int8), 0.01), pads=[1, 1, 1, 1])
    rows = model.dequantize(model.quantize(model.node("Relu", product), Y), Y)
    pooled = model.node("MaxPool", rows, kernel_shape=[2, 2], strides=[2, 2])
    shares = model.node("Softmax", model.node("Reshape", pooled, model.constant(np.array([4, 16]))), axis=-1)
    padded = _with_integers(model, "Pad", shares, "pads", [0, 1, 0, 0], version >= 11)
    clipped = (
        model.node("Clip", padded, model.constant(0.0), model.constant(0.2))
        if version >= 11
        else model.node("Clip", padded, min=0.0, max=0.2)
    )
    wider = _with_integers(model, "Unsqueeze", clipped, "axes", [1], version >= 13)
    mean = _with_integers(model, "ReduceMean", wider, "axes", [2], version >= 18)
    total = _with_integers(model, "ReduceSum", mean, "axes", [0], version >= 13)
    return model.finish(
        _with_integers(model, "Squeeze", total, "axes", [0], version >= 13), dtype=np.float32, version=version
    )


def _with_integers(model: ModelBuilder, kind: str, source: str, name: str, integers: list[int], is_input: bool) -> str:
    if is_input:
        return model.node(kind, source, model.constant(np.array(integers)))
    return model.node(kind, source, **{name: integers})


@pytest.mark.parametrize("version", range(10, 25))
def test_every_operator_set_is_read(version: int) -> None:
    agreed(_network(version), IMAGE, within="function")


# docs/onnx.md names every operator that ONNX Runtime runs and the package does not compile.

_NEWEST = 24
"""The operator set up to which the page names operators."""
_DOCS = Path(__file__).parents[2] / "docs" / "onnx.md"
_DOMAIN, _CPU = "com.microsoft.", "CPUExecutionProvider"
_READ_WITHOUT_A_PLANNER = {"Constant", "Shape", "Size"}


def test_the_page_names_every_operator_that_is_not_compiled() -> None:
    """Of the operator sets that are read."""
    told = _told("Operators that ONNX Runtime runs")
    operators = {schema.name for schema in defs.get_all_schemas_with_history() if _is_read(schema)}
    compiled = {name for name in operators if is_evaluated(name)} | set(supported_operators()) | _READ_WITHOUT_A_PLANNER
    assert told == operators - compiled


def test_the_page_names_every_operator_of_onnx_runtime_that_is_not_compiled() -> None:
    told = _told("Operators of ONNX Runtime's own domain")
    run_by_it: Any = import_module("onnxruntime.capi.onnxruntime_pybind11_state").get_all_opkernel_def()
    of_a_cpu = {one.op_name for one in run_by_it if (one.domain, one.provider) == ("com.microsoft", _CPU)}
    compiled = {name.removeprefix(_DOMAIN) for name in supported_operators() if name.startswith(_DOMAIN)}
    assert told == of_a_cpu - compiled


def _told(heading: str) -> set[str]:
    """The operators in the table of a section, from its first column."""
    section = _DOCS.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| ")][1:]
    return {name.strip() for row in rows for name in row.split(",")}


def _is_read(schema: defs.OpSchema) -> bool:
    return schema.domain == "" and schema.since_version <= _NEWEST and not schema.deprecated
