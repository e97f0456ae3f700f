"""What `import qdialect` offers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import qdialect


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


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    with pytest.raises(qdialect.ImportModelError) as error:
        qdialect.read_model(path)
    assert str(error.value) == f"'{path}' must be a model of kind .mlir, .tflite, .onnx or .pt2, but got '.bin'"


@pytest.mark.parametrize("name", ["missing.mlir", "missing.tflite"])
def test_a_missing_file_is_an_error_of_the_project(tmp_path: Path, name: str) -> None:
    with pytest.raises(qdialect.QDialectError, match=name):
        qdialect.compile(tmp_path / name)
