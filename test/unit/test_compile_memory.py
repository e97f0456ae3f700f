"""The memory of a compilation: how many copies of the weights it holds, and for how long."""

from __future__ import annotations

import gc
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from memory_bound import memory_at_most

import qdialect
from qdialect.dialect.constants import constant_value
from qdialect.frontends.model_files import read_model
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.tensors import F32Tensor, Plan
from qdialect.ir import resources
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering
from qdialect.lowering.qnn_to_linalg.program.program import Program
from qdialect.runtime.compiler import CompiledExecutable
from qdialect.targets import host

MEGABYTE = 1 << 20
WIDTH = 4096
BYTES = WIDTH * WIDTH
# Code and what Python and LLVM keep of it; the weights are several times as large.
CODE = 16 * MEGABYTE


def dense_model(path: Path, width: int) -> Path:
    """An ONNX model of one layer, whose weights are dequantized between DequantizeLinear and QuantizeLinear."""
    onnx = pytest.importorskip("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    weights = np.random.default_rng(0).integers(-127, 128, (width, width), dtype=np.int8)
    arrays = {"s": np.float32(0.05), "z": np.int8(0), "w": weights}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wd"]),
        helper.make_node("Gemm", ["xd", "wd"], ["y"], transB=1),
        helper.make_node("QuantizeLinear", ["y", "s", "z"], ["yq"]),
    ]
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("x", types.FLOAT, [1, width])],
        [helper.make_tensor_value_info("yq", types.INT8, [1, width])],
        [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def no_collection() -> Generator[None]:
    """Python looks for no cycles meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_few_copies_of_weights_are_held(tmp_path: Path) -> None:
    qdialect.compile(dense_model(tmp_path / "small.onnx", 16), cache=False)
    path = dense_model(tmp_path / "large.onnx", WIDTH)
    gc.collect()
    with memory_at_most(5 * BYTES + CODE, "compiling a layer of 16 MiB"):
        qdialect.compile(path, cache=False)


@pytest.mark.usefixtures("no_collection")
def test_nothing_of_a_compilation_waits_for_the_collector(tmp_path: Path) -> None:
    before = _held()
    executable = qdialect.compile(dense_model(tmp_path / "model.onnx", 16), cache=False)
    assert [type(found).__name__ for found in _held() if all(found is not other for other in before)] == []
    assert executable.outputs[0].shape == (1, 16)


def test_a_module_is_emptied_where_nobody_needs_it(tmp_path: Path) -> None:
    module = read_model(dense_model(tmp_path / "model.onnx", 16))
    image = np.arange(16, dtype=np.float32).reshape(1, 16)
    kept, emptied = lower(module, host()), lower(module, host())
    expected = CompiledExecutable(kept)(image)
    np.testing.assert_array_equal(CompiledExecutable(emptied, empties=True)(image), expected)
    assert len(kept.module.body.operations) > 0
    assert len(emptied.module.body.operations) == 0


def _held() -> list[object]:
    kinds = (ir.Context, ir.Module, GraphLowering, Program, Plan, F32Tensor, Value)
    return [found for found in gc.get_objects() if isinstance(found, kinds)]


def test_the_array_of_a_constant_is_that_of_its_attribute() -> None:
    module = qdialect.parse(
        'func.func @main() -> tensor<4xi8> { %c = "qnn.constant"() {value = dense<[1, 2, 3, 4]> :'
        " tensor<4xi8>} : () -> tensor<4xi8>\n return %c : tensor<4xi8> }"
    )
    value = module.body.operations[0].regions[0].blocks[0].operations[0].result
    first, second = constant_value(value), constant_value(value)
    assert first is not None
    assert second is not None
    assert np.shares_memory(first, second)
    assert not first.flags.writeable
    del module, value
    assert first.tolist() == [1, 2, 3, 4]


def test_asking_for_a_resource_prints_no_elements() -> None:
    with qdialect.make_context():
        dense = ir.DenseElementsAttr.get(np.arange(BYTES, dtype=np.int8))
        with memory_at_most(MEGABYTE, "asking whether 16 MiB are a resource"):
            assert not resources.is_resource(dense)
