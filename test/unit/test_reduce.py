"""``qdialect-reduce``: models get smaller while a command finds in them what it looks for."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto, helper

from qdialect.cli import reduce

MODULE = """
func.func @main(%x: tensor<4xi8>, %unused: tensor<9xi8>) -> (tensor<4xi8>, tensor<4xi8>) {
  %0 = "qnn.clip"(%x) {min = -50 : i64, max = 90 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  %1 = "qnn.clip"(%0) {min = -5 : i64, max = 9 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  %2 = "qnn.clip"(%1) {min = -4 : i64, max = 8 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  return %2, %0 : tensor<4xi8>, tensor<4xi8>
}
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Exits with 0 for a file with the bytes ``max = 9`` or ``Sigmoid``."""
    path = tmp_path / "is_interesting.py"
    path.write_text(
        f"#!{sys.executable}\nimport sys\ntext = open(sys.argv[1], 'rb').read()\n"
        "sys.exit(not (b'max = 9 :' in text or b'Sigmoid' in text))\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_module_is_cut_at_both_ends(script: Path, tmp_path: Path) -> None:
    model, small = tmp_path / "model.mlir", tmp_path / "small.mlir"
    model.write_text(MODULE)
    assert reduce.main([str(model), "--test", str(script), "-o", str(small)]) == 0
    text = small.read_text()
    assert text.count("qnn.clip") == 1
    assert "max = 9 :" in text
    assert "func.func @main(%arg0: tensor<4xi8>) -> tensor<4xi8>" in text


def test_an_onnx_model_is_cut_at_both_ends(script: Path, tmp_path: Path) -> None:
    kinds = ("Relu", "Neg", "Sigmoid", "Abs", "Exp")
    nodes = [helper.make_node(kind, [f"v{k}"], [f"v{k + 1}"]) for k, kind in enumerate(kinds)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("v0", "v5")]
    model, small = tmp_path / "model.onnx", tmp_path / "small.onnx"
    model.write_bytes(helper.make_model(helper.make_graph(nodes, "chain", ends[:1], ends[1:])).SerializeToString())
    assert reduce.main([str(model), "--test", str(script), "-o", str(small)]) == 0
    graph = ModelProto.FromString(small.read_bytes()).graph
    assert [node.op_type for node in graph.node] == ["Sigmoid"]
    assert [one.name for one in graph.input] == ["v2"]
    assert [one.name for one in graph.output] == ["v3"]


@pytest.mark.parametrize(
    ("name", "test", "message"),
    [
        ("model.mlir", "false", "'false' must exit with 0 for"),
        ("model.mlir", "no-such-command --option", "cannot be run: No such file or directory"),
        ("model.tflite", "true", "must be a .mlir or .onnx file"),
        ("absent.mlir", "true", "No such file or directory"),
    ],
)
def test_what_cannot_be_reduced(
    name: str, test: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.mlir").write_text(MODULE)
    output = tmp_path / "small"
    assert reduce.main([str(tmp_path / name), "--test", test, "-o", str(output)]) == 1
    assert message in capsys.readouterr().err
    assert not output.exists()
