"""STABLEHLO_COMPOSITE: its decomposition is compiled, compared with LiteRT."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import Builder
from litert import reference
from numpy.typing import NDArray
from tflite_f32_graphs import compiled

import qdialect
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Subgraph, write_model
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
KIND = tflite.BuiltinOperator
SHAPE = (2, 5)
X = np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)


def _body(kind: int, inner: bool) -> Subgraph:
    """``(f(x) - x)^2``, or the composite of the next subgraph of f(x)."""
    writer = ModelWriter("decomposition")
    x, f, y = (writer.tensor(name, SHAPE, np.float32) for name in "xfy")
    writer.operator(kind, [x, x] if kind == KIND.ATAN2 else [x], f)
    if inner:
        writer.operator(KIND.STABLEHLO_COMPOSITE, [f], y)
    else:
        writer.operator(KIND.SQUARED_DIFFERENCE, [f, x], y)
    return Subgraph(writer, [x], [y])


def content(bodies: Sequence[int], decompositions: Sequence[int]) -> bytes:
    """``composite(-x)``; a subgraph for each of `bodies`, which name the next one, the last one excepted."""
    main = ModelWriter("a composite")
    x, n, y = (main.tensor(name, SHAPE, np.float32) for name in "xny")
    main.operator(KIND.NEG, [x], n)
    main.operator(KIND.STABLEHLO_COMPOSITE, [n], y)
    parts = [_body(kind, kind is not bodies[-1]) for kind in bodies]
    return _with_options(write_model([Subgraph(main, [x], [y]), *parts]), decompositions)


def _with_options(plain: bytes, decompositions: Sequence[int]) -> bytes:
    schema: Any = import_module("ai_edge_litert.schema_py_generated")
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(plain, 0))
    kinds = [entry.builtinCode for entry in model.operatorCodes]
    operators = [one for subgraph in model.subgraphs for one in subgraph.operators]
    composites = [one for one in operators if kinds[one.opcodeIndex] == KIND.STABLEHLO_COMPOSITE]
    for operator, index in zip(composites, decompositions, strict=True):
        operator.builtinOptions2Type = schema.BuiltinOptions2.StableHLOCompositeOptions
        operator.builtinOptions2 = options = schema.StableHLOCompositeOptionsT()
        options.name, options.decompositionSubgraphIndex = "odml.square", index
        options.compositeAttributes = list(import_module("flatbuffers.flexbuffers").Dumps({}))
    builder = Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@pytest.mark.parametrize("bodies", [[KIND.RELU], [KIND.RELU6, KIND.ABS]])
def test_a_decomposition_takes_the_composites_stead(bodies: list[int]) -> None:
    model = content(bodies, range(1, 1 + len(bodies)))
    (wanted,) = reference(model, [X])
    np.testing.assert_array_equal(compiled(model, [X]), wanted)


def test_what_it_lacks_is_named_by_its_own_nodes() -> None:
    with pytest.raises(ImportModelError, match=r"node 1 WHERE \('f'\): operator is not supported: the shape"):
        import_tflite(content([KIND.WHERE], [1]))


@pytest.mark.parametrize("decomposition", [0, 9, -1])
def test_one_without_a_decomposition_is_refused(decomposition: int) -> None:
    """One that names itself or nothing."""
    with pytest.raises(ImportModelError, match=r"node 1 STABLEHLO_COMPOSITE \('y'\): operator is not supported"):
        import_tflite(content([KIND.RELU], [decomposition]))


def test_a_composite_of_itself_ends() -> None:
    with pytest.raises(ImportModelError, match="STABLEHLO_COMPOSITE"):
        import_tflite(content([KIND.RELU, KIND.ABS], [1, 1]))


def test_litert_runs_one_that_is_not_compiled(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    model = content([KIND.ATAN2], [1])
    path.write_bytes(model)
    executable = qdialect.compile(path, fallback="framework", cache=False)
    assert executable.regions[-1].runner == "LiteRT"
    np.testing.assert_array_equal(executable(X), reference(model, [X])[0])
