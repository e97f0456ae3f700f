"""Reports: every node has what became of it, through fusion, constants and match failures."""

from pathlib import Path

import numpy as np
import pytest
from deadline import deadline
from onnx_graphs import ModelBuilder

from qdialect.driver.report import nodes_report, report
from qdialect.frontends.building.checks import GraphNode
from qdialect.frontends.model_files import ImportOptions
from qdialect.frontends.tflite.seeded_mobilenet import write_mobilenet
from qdialect.ir.context import parse
from qdialect.ir.locations import names_of
from qdialect.support.diagnostics import ImportModelError
from qdialect.targets import GENERIC


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


def test_a_refused_node_is_said_and_the_others_are_not(tmp_path: Path) -> None:
    builder = ModelBuilder()
    data = builder.input("image", (1, 4))
    path = tmp_path / "bad.onnx"
    path.write_bytes(builder.finish(builder.node("NoSuchOperator", builder.node("Relu", data)), dtype=np.float32))
    found = report(path, GENERIC)
    assert isinstance(found.error, ImportModelError)
    assert [entry.blocked for entry in found.nodes] == ["", "operator is not supported"]
    assert found.tensors() == {}


def test_a_missing_file_raises(tmp_path: Path) -> None:
    with pytest.raises(ImportModelError, match=r"nowhere\.onnx"):
        report(tmp_path / "nowhere.onnx", GENERIC)


def test_names_of_a_location() -> None:
    module = parse('module {} loc(fused["a"("f":1:2), "b", fused["a", "c"]])')
    assert names_of(module.operation.location) == ("a", "b", "c")
    assert names_of(parse("module {}").operation.location) == ()


def test_what_no_node_is_to_blame_for_is_raised(mobilenet: Path) -> None:
    with pytest.raises(ImportModelError, match=r"profile of a \.tflite file must be tflite or tflite-xnnpack"):
        report(mobilenet, GENERIC, ImportOptions(profile="other"))


def test_many_readers_of_one_tensor_are_reported_in_linear_time() -> None:
    """Quadratic, these take 150 s and more."""
    count = 700_000
    source = GraphNode("source", "Relu", ("x",), ("y",))
    readers = [GraphNode(f"reader {index}", "Relu", ("y",), (f"z{index}",)) for index in range(count)]
    with deadline():
        found = nodes_report((source, *readers), {f"z{index}": ["qnn.clip"] for index in range(count)}, {})
    assert found[0].within == "reader 0"
