"""Models that run partly in their framework, reports, the memory of a compilation, and the public API."""

import gc
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from bounds import deadline, memory_at_most
from onnx_graphs import ModelBuilder, divided_model
from seeded_mobilenet import write_mobilenet

import qdialect
from qdialect.cli import import_model, run
from qdialect.driver.report import nodes_report, report
from qdialect.frontends.building.checks import GraphNode
from qdialect.frontends.model_files import read_model
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.tensors import F32Tensor, Plan
from qdialect.ir import resources
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering
from qdialect.lowering.qnn_to_linalg.program.program import Program
from qdialect.runtime.compiler import CompiledExecutable
from qdialect.targets import GENERIC, host


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("models") / "model.onnx"
    path.write_bytes(divided_model())
    return str(path)


def test_a_run_says_in_one_line_what_the_framework_runs(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([model]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        "qdialect-run: warning: ONNX Runtime runs 2 of 16 nodes and 0 % of the multiply-accumulates: "
        "node 9 Hardmax ('t9'), node 10 QuantizeLinear ('t10')"
    ]
    rows = [line.split() for line in said.out.splitlines() if line.startswith("#")]
    assert [row[1] for row in rows] == ["qdialect", "ONNX", "qdialect"]


def test_a_benchmark_has_the_time_of_every_region(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([model, "--benchmark", "--fallback", "framework"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (header,) = (line for line in lines if line.startswith("region"))
    assert header.endswith("time ms")
    assert all(float(line.split()[-1]) > 0 for line in lines if line.startswith("#"))


def test_no_fallback_is_an_error(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([model, "--fallback", "none"]) == 1
    assert "note: node 9 Hardmax ('t9'): operator is not supported" in capsys.readouterr().err.splitlines()


def test_a_report_has_the_region_of_every_node(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_model.main([model, "--report", "--fallback", "framework"]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert "node 3 Conv ('t3')                #0 qdialect" in lines
    assert "node 9 Hardmax ('t9')             #1 ONNX Runtime" in lines
    assert lines[-2] == "  node 9 Hardmax ('t9'): operator is not supported"


def test_a_report_without_fallback_refuses(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_model.main([model, "--report"]) == 1
    assert "1 of 16 nodes are not supported" in capsys.readouterr().out


def test_a_module_has_no_regions(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_model.main([model, "--fallback", "framework"]) == 1
    assert "--fallback framework must be given with --report" in capsys.readouterr().err


# Reports: every node has what became of it, through fusion, constants and match failures.


@pytest.fixture(scope="module")
def mobilenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "seeded.tflite"
    write_mobilenet(path, seed=0, size=32)
    return path


def test_every_node_of_a_network_is_in_a_kernel_or_a_view(mobilenet: Path) -> None:
    found = report(mobilenet, GENERIC)
    assert found.error is None
    assert found.lowered is not None
    contractions = [entry for entry in found.nodes if "qnn.requantize" in entry.ops]
    labels = [call.label for call in found.lowered.calls]
    for entry in contractions:
        computed_by = {labels[number] for number in entry.calls} - {"padding"}
        assert len(computed_by) == 1
        assert computed_by <= {"qnn.fused_conv2d", "qnn.fused_dense"}
    assert [entry.node.kind for entry in found.nodes if not entry.calls] == ["RESHAPE"]
    assert set(found.tensors()) <= {"i8", "i32"}


def quantized_chain() -> bytes:
    builder = ModelBuilder()
    data = builder.dequantize(builder.quantize(builder.input("image", (1, 4)), (0.5, 128)), (0.5, 128))
    relu = builder.node("Relu", data, name="relu")
    return builder.finish(builder.dequantize(builder.quantize(relu, (1.0, 3)), (1.0, 3)), dtype=np.float32)


def test_a_node_without_ops_is_part_of_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "chain.onnx"
    path.write_bytes(quantized_chain())
    entries = {entry.node.kind: entry for entry in report(path, GENERIC).nodes}
    relu = entries["Relu"]
    assert relu.ops == ()
    assert "QuantizeLinear" in relu.within
    assert relu.calls == entries["QuantizeLinear"].calls != ()


def test_many_readers_of_one_tensor_are_reported_in_linear_time() -> None:
    """Quadratic, these take 150 s and more."""
    count = 700_000
    source = GraphNode("source", "Relu", ("x",), ("y",))
    readers = [GraphNode(f"reader {index}", "Relu", ("y",), (f"z{index}",)) for index in range(count)]
    with deadline():
        found = nodes_report((source, *readers), {f"z{index}": ["qnn.clip"] for index in range(count)}, {})
    assert found[0].within == "reader 0"


# The memory of a compilation: how many copies of the weights it holds, and for how long.

MEGABYTE = 1 << 20
WIDTH = 4096
BYTES = WIDTH * WIDTH
# Code and what Python and LLVM keep of it; the weights are several times as large.
CODE = 16 * MEGABYTE


def dense_model(path: Path, width: int) -> Path:
    """An ONNX model of one layer, whose weights are dequantized between DequantizeLinear and QuantizeLinear."""
    b, by = ModelBuilder(), (0.05, 0)
    data = b.dequantize(b.quantize(b.input("x", (1, width)), by, np.int8), by, np.int8)
    weights = np.random.default_rng(0).integers(-127, 128, (width, width), dtype=np.int8)
    product = b.node("Gemm", data, b.weight(weights, 0.05), transB=1)
    path.write_bytes(b.finish(b.quantize(product, by, np.int8), dtype=np.int8))
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
    # Bytes are words where a CPU has no dot product of them.
    packed = BYTES if host().has_vnni else 2 * BYTES
    with memory_at_most(5 * packed + CODE, "compiling a layer of 16 MiB"):
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


def test_asking_for_a_resource_prints_no_elements() -> None:
    with qdialect.make_context():
        dense = ir.DenseElementsAttr.get(np.arange(BYTES, dtype=np.int8))
        with memory_at_most(MEGABYTE, "asking whether 16 MiB are a resource"):
            assert not resources.is_resource(dense)


# What `import qdialect` offers.


def test_every_public_name_is_there() -> None:
    assert sorted(name for name in qdialect.__all__ if not hasattr(qdialect, name)) == []
    assert not hasattr(qdialect, "no_such_name")


def test_the_import_leaves_everything_for_its_first_use() -> None:
    late = ("qdialect.lowering", "qdialect.runtime", "qdialect.dialect", "torch_mlir", "numpy")
    code = f"import sys, qdialect; sys.exit(any(m.startswith({late}) for m in sys.modules))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_model_is_a_module_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.mlir"
    path.write_text("func.func @f() { return }")
    module = qdialect.parse(path)
    assert qdialect.read_model(module) is module
    assert str(qdialect.read_model(path)) == str(qdialect.read_model(str(path))) == str(module)
