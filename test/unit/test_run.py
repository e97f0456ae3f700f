"""``qdialect-run``: what its exit status and its table say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import graph
from numpy.typing import NDArray
from quantized_layers import clip, fused
from subprocesses import output_of

import qdialect
from qdialect.cli import run, terminal
from qdialect.dialect import DequantizeOp, build
from qdialect.reference import interpreter


@pytest.fixture
def layer(tmp_path: Path) -> str:
    path = tmp_path / "layer.mlir"
    path.write_text(str(graph(["tensor<1x4x4x3xui8>"], fused)))
    return str(path)


def test_an_equal_reference_is_success(layer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([layer, "--reference"]) == 0
    assert "res0: 0 of 80 elements differ from the reference" in capsys.readouterr().out


def test_one_different_element_is_failure(
    layer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    exact = interpreter.run

    def almost(*arguments: Any) -> tuple[NDArray[Any], ...]:
        (result,) = exact(*arguments)
        result = result.copy()
        result[0, 3, 3, 4] ^= 1
        return (result,)

    monkeypatch.setattr(interpreter, "run", almost)
    assert run.main([layer, "--reference"]) == 1
    assert "res0: 1 of 80 elements differ from the reference" in capsys.readouterr().out


def test_seeds_give_inputs(layer: str, tmp_path: Path) -> None:
    outputs: list[NDArray[Any]] = []
    for number, seed in enumerate(("1", "1", "2")):
        folder = tmp_path / str(number)
        assert run.main([layer, "--seed", seed, "--output-dir", str(folder)]) == 0
        outputs.append(np.load(folder / "output0.npy"))
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert (outputs[0] != outputs[2]).any()


def test_files_are_inputs_in_order(tmp_path: Path) -> None:
    model = tmp_path / "two.mlir"
    model.write_text(str(graph(["tensor<4xui8>", "tensor<2xi8>"], lambda x, y: [clip(y, -9, 9), clip(x, 3, 200)])))
    np.save(tmp_path / "x.npy", np.array([0, 4, 100, 255], np.uint8))
    np.save(tmp_path / "y.npy", np.array([-100, 100], np.int8))
    inputs = [str(tmp_path / name) for name in ("x.npy", "y.npy")]
    assert run.main([str(model), "--input", *inputs, "--output-dir", str(tmp_path)]) == 0
    assert np.load(tmp_path / "output0.npy").tolist() == [-9, 9]
    assert np.load(tmp_path / "output1.npy").tolist() == [3, 4, 100, 200]


def test_scores_and_values_and_scalars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def body(*x: Any) -> Any:
        attributes: dict[str, Any] = {"scales": (0.5,), "zero_points": (0,), "axis": 0}
        return [build(DequantizeOp, one, element="f32", **attributes).output for one in x]

    model = tmp_path / "three.mlir"
    model.write_text(str(graph(["tensor<1x10xui8>", "tensor<2x5xui8>", "tensor<ui8>"], body)))
    arrays = [np.arange(10, dtype=np.uint8)[None], np.arange(10, dtype=np.uint8).reshape(2, 5), np.array(9, np.uint8)]
    for index, array in enumerate(arrays):
        np.save(tmp_path / f"{index}.npy", array)
    assert run.main([str(model), "--input", *(str(tmp_path / f"{i}.npy") for i in range(3))]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [" ".join(line.split()) for line in lines[-3:]]
    assert rows == [
        "res0 1x10 float32 0 4.5 largest at 9 (4.5), 8 (4), 7 (3.5)",
        "res1 2x5 float32 0 4.5 0 0.5 1 1.5 2 2.5 ...",
        "res2 scalar float32 4.5 4.5 4.5",
    ]


def test_nothing_is_said_on_stderr_that_is_no_terminal(layer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([layer, "--benchmark", "--reference"]) == 0
    assert capsys.readouterr().err == ""


def test_an_archive_is_no_input(layer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros(3))
    assert run.main([layer, "--input", str(tmp_path / "x.npz")]) == 1
    assert "must be a .npy file, but got an archive of arrays" in capsys.readouterr().err


def test_tables_are_aligned() -> None:
    text = terminal.render_table(("name", "n", ""), [("a", "10", "x"), ("longer", "5", "")], right=(1,))
    assert text == "name     n\na       10  x\nlonger   5"


def test_a_network_that_was_compiled_before_runs_without_mlir(
    layer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
import sys
from qdialect.cli import run
code = run.main(sys.argv[1:])
print("imported:", *sorted({name for name in sys.modules if name.startswith(("torch_mlir", "qdialect.ir._mlir"))}))
sys.exit(code)
"""
    library = tmp_path / "layer.so"
    qdialect.compile(layer, cache=False).save(library)
    monkeypatch.setenv("QDIALECT_CACHE", str(tmp_path / "cache"))
    first, again, loaded = (output_of(program, model) for model in (layer, layer, str(library)))
    assert "imported: qdialect.ir._mlir" in first
    assert again.splitlines()[-1] == loaded.splitlines()[-1] == "imported:"
    assert again.splitlines()[3:5] == loaded.splitlines()[3:5] == first.splitlines()[3:5]


def test_a_library_runs_and_is_measured(layer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = str(tmp_path / "layer.so")
    qdialect.compile(layer, cache=False).save(library)
    assert run.main([library, "--benchmark"]) == 0
    assert "million multiply-accumulates" in capsys.readouterr().out
    refused = {
        "--reference": "--reference must be given with a model, but got the library",
        "--threads=2": "--threads must be given with a model, but got the library",
        "--batch=2": "--batch must be given with a model, but got the library",
        "--no-cache": "--no-cache must be given with a model, but got the library",
        "--target=generic": "--target must be given with a model, but got the library",
    }
    for option, said in refused.items():
        assert run.main([library, option]) == 1
        assert said in capsys.readouterr().err


def test_a_dynamic_batch_takes_the_batch_of_its_inputs(
    layer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.ones((5, 4, 4, 3), np.uint8))
    assert run.main([layer, "--batch", "dynamic", "--input", str(tmp_path / "x.npy"), "--benchmark"]) == 0
    said = capsys.readouterr().out
    assert " 5x4x4x5 " in said
    assert run.main([layer, "--batch", "dynamic"]) == 0
    assert " 1x4x4x5 " in capsys.readouterr().out
    assert run.main([layer, "--batch", "dynamic", "--reference"]) == 1
    assert "--reference must be given with a batch of one size, but got --batch dynamic" in capsys.readouterr().err
