"""The commands `qdialect-compile` and `qdialect-run`, the demonstration, and the example for Triton."""

import importlib.util
import re
import resource
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from c_programs import EXAMPLES, ran, tool
from drawn_graphs import graph, random_inputs
from drawn_networks import CONVOLUTION, DIVISIBLE
from numpy.typing import NDArray
from onnx_graphs import ModelBuilder
from quantized_layers import clip, fused
from subprocesses import output_of

import qdialect
from qdialect.bench import models
from qdialect.cli import compile as command
from qdialect.cli import import_model, run, terminal
from qdialect.dialect import DequantizeOp, build
from qdialect.ir.context import parse
from qdialect.reference import interpreter
from qdialect.targets import TARGETS, Target
from tools.demo import layers, network


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("net.mlir").write_text(CONVOLUTION)
    return "net.mlir"


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says where it ends with 1; it leaves nothing but what was there."""
    before = sorted(Path().rglob("*"))
    try:
        status = command.main(arguments)
    except SystemExit as ended:
        status = ended.code
    printed, said = capsys.readouterr()
    assert (status, printed) == (1, "")
    assert sorted(Path().rglob("*")) == before
    return said


def test_a_library_comes_with_its_headers(model: str) -> None:
    assert command.main([model, "-o", "out.so"]) == 0
    assert sorted(path.name for path in Path().iterdir()) == ["net.mlir", "out.h", "out.hpp", "out.so"]
    assert "int out_run(" in Path("out.h").read_text()
    assert '#include "out.h"' in Path("out.hpp").read_text()


def test_an_existing_file_is_replaced(model: str) -> None:
    Path("out.so").write_text("old")
    Path("out.so").chmod(0o640)
    assert command.main([model, "-o", "out.so", "--name", "other"]) == 0
    assert Path("out.so").stat().st_mode & 0o777 == 0o640
    assert "int other_run(" in Path("out.h").read_text()
    qdialect.load("out.so")


@pytest.mark.parametrize("phase", ["fused", "linalg", "vector", "llvm"])
def test_a_module_of_any_phase_is_compiled(model: str, phase: str, capsys: pytest.CaptureFixture[str]) -> None:
    from qdialect.cli import opt

    assert opt.main([model, f"--compile-to={phase}", "--target", "generic", "-o", "lowered.mlir"]) == 0
    options = ["--mcpu", "x86-64"] if phase == "fused" else []
    assert command.main(["lowered.mlir", "-o", "out.so", *options]) == 0
    module = parse(CONVOLUTION)
    inputs = random_inputs(module)
    np.testing.assert_array_equal(qdialect.load("out.so")(*inputs), qdialect.compile(module)(*inputs))
    if phase != "fused":
        said = failed(capsys, "lowered.mlir", "-o", "more.so", "--mcpu", "znver4")
        assert "module was lowered for target 'generic', but got 'avx512bf16'" in said


def test_options_of_an_import_are_heeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    builder = ModelBuilder()
    relu = builder.node("Relu", builder.input("image", ("batch", "width")))
    Path("net.onnx").write_bytes(builder.finish(relu, dtype=np.float32))
    assert command.main(["net.onnx", "-o", "out.so", "--batch", "3", "--dim", "width=5"]) == 0
    assert qdialect.load("out.so").inputs[0].shape == (3, 5)


def test_unsupported_nodes_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    builder = ModelBuilder()
    hardmax = builder.node("Hardmax", builder.input("image", (1, 4, 3, 3)))
    Path("net.onnx").write_bytes(builder.finish(hardmax, dtype=np.float32))
    error, note = failed(capsys, "net.onnx", "-o", "out.so").splitlines()
    assert error == "error: 'net.onnx' has 1 unsupported operation"
    assert "Hardmax" in note


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.mlir", "-o", "out.so"], "error: cannot read 'missing.mlir': No such file or directory"),
        (["net.mlir"], "qdialect-compile: error: the following arguments are required: -o/--output"),
        (["net.mlir", "-o", "missing/out.so"], "error: --output must be in a folder that is there, but got 'missing/"),
        (
            ["net", "-o", "out.so"],
            "error: 'net' must be a model of kind .mlir, .tflite, .onnx or .pt2, but its name has ",
        ),
        (["net.mlir", "-o", "out.h"], "error: --output must not name the header, which is written next to it, but"),
        (["net.mlir", "-o", "out.hpp", "--emit", "obj"], "error: --output must not name the header, which is written"),
        (["net.mlir", "-o", "-"], "error: --emit so writes several files, so that --output must name one, but got '-'"),
        (
            ["net.mlir", "-o", "/dev/null"],
            "error: --emit so writes several files, so that --output must name one, but ",
        ),
        (["net.mlir", "-o", "/"], "error: --output must name a file, but got '/'\n"),
        (["net.mlir", "-o", ""], "error: --output must name a file, but got ''\n"),
        (["net.mlir", "-o", "net.mlir"], "error: --output must not name the model, but got 'net.mlir'\n"),
        (["net.mlir", "-o", "./net.mlir", "--emit", "mlir"], "error: --output must not name the model, but got "),
        (["net.mlir", "-o", "out.so", "--name", "qdialect"], "error: name of a network must not be 'qdialect', which"),
        (["net.mlir", "-o", "out.so", "--name", "a-b"], "error: name of a network must be a C identifier of at most "),
        (
            ["net.mlir", "-o", "out.so", "--mcpu", "i486"],
            "error: target must be a CPU that executes x86-64 code, but got 'i486'",
        ),
        (
            ["net.mlir", "-o", "out.so", "--targets", "x86-64,,"],
            "error: argument --targets: must be names with commas ",
        ),
        (["net.mlir", "-o", "out.so", "--targets", "x86-64,i4004"], "error: target must be one of host, "),
        (["net.mlir", "-o", "out.so", "--mcpu", "host", "--targets", "host"], "not allowed with argument --mcpu"),
        (["net.mlir", "-o", "out.so", "--threads", "0"], "error: argument --threads: must be an integer from 1 to 256"),
        (["net.mlir", "-o", "out.so", "--emit", "exe"], "error: argument --emit: invalid choice: 'exe'"),
    ],
)
@pytest.mark.usefixtures("model")
def test_wrong_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in failed(capsys, *arguments)


@pytest.mark.parametrize("suffix", [".tflite", ".onnx", ".pt2"])
def test_errors_name_the_damaged_file(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"damaged{suffix}"
    path.write_bytes(b"    TFL3\xff\xff")
    for main in (command.main, run.main, import_model.main):
        assert main([str(path), *(["-o", str(tmp_path / "out.so")] if main is command.main else [])]) == 1
        assert capsys.readouterr().err.startswith(f"error: '{path.name}': file ")


def test_files_are_read_before_anything_is_compiled(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("plugin.py").write_text("raise SystemExit(0)\n")
    for arguments, message in (
        (["--input", "missing.npy"], "error: cannot read 'missing.npy' as a .npy file: No such file or directory\n"),
        (["--trace", "missing/a.json"], "error: --trace must be in a folder that is there, but got 'missing/a.json'\n"),
    ):
        assert run.main([model, *arguments]) == 1
        assert capsys.readouterr() == ("", message)
    with pytest.raises(SystemExit) as ended:
        run.main([model, "--load-pass-plugin", "plugin.py"])
    assert ended.value.code == 1
    assert "cannot load 'plugin.py': plugin.py:1: SystemExit: 0" in capsys.readouterr().err


def test_a_measurement_among_other_programs_is_told(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "process_time", lambda: 0.0)
    assert run.main([model, "--benchmark"]) == 0
    assert "other programs took 100 % of the core meanwhile" in capsys.readouterr().out


def test_code_is_not_written_where_a_limit_of_files_would_end_the_process(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def limited(kind: int) -> tuple[int, int]:
        return (4096, 4096) if kind == resource.RLIMIT_FSIZE else (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    monkeypatch.setattr(resource, "getrlimit", limited)
    assert "error: files must have at least 67108864 bytes, but the limit of this process is 4096" in failed(
        capsys, model, "-o", "out.so"
    )


def test_assembly_needs_binutils(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    said = failed(capsys, model, "-o", "out.s", "--emit", "asm")
    assert said == "error: assembly is printed by objdump, which is not there: install binutils\n"


def test_an_object_file_needs_no_compiler(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    with monkeypatch.context() as without:
        without.setenv("PATH", "")
        assert command.main([model, "-o", "out.o", "--emit", "obj"]) == 0
    assert sorted(path.name for path in Path().iterdir()) == ["net.mlir", "out.h", "out.hpp", "out.o"]
    Path("main.c").write_text('#include "out.h"\nint main(void) { return out_version() < 0; }\n')
    ran(tool("cc"), "main.c", "out.o", "-o", "main", folder=Path())
    ran("./main", folder=Path())


def test_a_cpu_of_another_kind_is_compiled_for(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is executed where files are written.
    monkeypatch.setattr("qdialect.targets.host", lambda: TARGETS["generic"])

    def refuse(target: Target) -> None:
        raise AssertionError(target)

    monkeypatch.setattr("qdialect.runtime.compiler.check_target", refuse)
    assert command.main([model, "-o", "out.so", "--targets", "znver4,host"]) == 0
    assert "version 0: avx512bf16" in Path("out.h").read_text()


def test_threads_need_no_runtime_to_be_compiled_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.mlir").write_text(DIVISIBLE)
    monkeypatch.setenv("QDIALECT_OPENMP", "/nowhere/libomp.so")
    assert command.main(["net.mlir", "-o", "out.o", "--emit", "obj", "--threads", "2"]) == 0
    assert "out_run_threads" in Path("out.h").read_text()


def test_another_kind_of_machine_is_refused(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    said = failed(capsys, model, "-o", "out.so", "--mcpu", "x86-64")
    assert said == "error: files of networks are compiled on x86-64 machines, but this one is aarch64\n"


def test_names_that_are_odd(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    # Bytes that are no UTF-8, as any name of a file may have.
    name = "l\udce4\u00fc 'x.so"
    assert command.main([model, "-o", name, "--mcpu", "x86-64"]) == 0
    assert (
        f'#include "{Path(name).stem}.h"'.encode(errors="surrogateescape")
        in Path(name).with_suffix(".hpp").read_bytes()
    )
    assert qdialect.load(name).outputs
    for wrong in ('a"b.so', "a\nb.so", "a\\.o"):
        emit = "so" if wrong.endswith("so") else "obj"
        said = failed(capsys, model, "-o", wrong, "--emit", emit)
        assert said.startswith("error: --output must have a name that #include can name in a line, but got ")


@pytest.mark.parametrize("value", ["'", 'gcc "'])
def test_a_compiler_that_is_no_command(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CC", value)
    assert f"error: CC must name a C compiler, but got '{value}': no closing quotation" in failed(
        capsys, model, "-o", "x.so"
    )


# ``qdialect-run``: what its exit status and its table say.


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


def test_scalars_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scalar.mlir"
    body = "%y = arith.addf %x, %x : tensor<f32>\nreturn %y : tensor<f32>"
    path.write_text(f"func.func @main(%x: tensor<f32>) -> tensor<f32> {{\n{body}\n}}\n")
    for options in (["--benchmark"], ["--benchmark", "--profile-ops"], ["--benchmark", "--json"]):
        assert run.main([str(path), *options]) == 0
    assert "error" not in capsys.readouterr().err


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


# The demonstration: where no model is, and what it counts.


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str, kind: str = "") -> None:
        return None

    monkeypatch.setattr(models, "find", nothing)
    monkeypatch.setattr(models, "find_reference", nothing)
    monkeypatch.setattr(network, "_SIZE", 32)


@pytest.mark.usefixtures("no_models")
def test_without_models_it_writes_one_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    case = network.find_case()
    different, result = network.show(case)
    assert different + network.show_program(case, result) == 0
    text = capsys.readouterr().out
    assert "is not here ('make models' downloads it): writing its layers with random weights" in text
    assert "Every layer is compared with the NumPy reference, run here." in text
    assert "layers compared  30: 0 of" in text
    assert re.search(r"shared library +\d+ bytes, with \d+ of constants", text)
    assert re.search(r"start +\d+\.\d ms from the start of a program in C", text)
    assert re.search(r"compared with Python +0 of \d+ elements differ", text)


@pytest.mark.usefixtures("no_models")
def test_a_wrong_element_is_counted() -> None:
    case = network.find_case()
    first = min(case.layers)
    wrong = dict(case.layers)
    wrong[first] = wrong[first] ^ np.uint8(1)
    changed = network.Case(case.title, case.source, case.module, case.image, wrong)
    assert network.show(changed)[0] == wrong[first].size


def test_without_a_c_compiler_the_demonstration_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    empty = network.Case("", "", qdialect.parse("module {}"), np.zeros(1, np.uint8), {})
    assert network.show_program(empty, empty.image) == 0
    assert "CC names 'no-such-compiler'" in capsys.readouterr().out


@pytest.mark.parametrize("layer", layers.LAYERS, ids=lambda layer: layer.name)
def test_a_layer_is_one_kernel_and_exact(layer: layers.Layer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "_BATCH", 1)
    monkeypatch.setattr(layers, "_REFERENCE_BATCH", 1)
    monkeypatch.setattr(layers, "_HEIGHT", 9)
    name, *_, kernels, calls, _, _, different = layers.measured(layer)[0]
    assert (name, kernels, calls) == (layer.name, "1", "1")
    assert different.startswith("0 of ")


# examples/serving/triton: the model of Triton's Python backend, with a stand-in for the module that the server has.

FOLDER = EXAMPLES / "serving" / "triton" / "mobilenet"


@dataclass(frozen=True)
class Tensor:
    name: str
    array: Any

    def as_numpy(self) -> Any:
        return self.array


@dataclass(frozen=True)
class Error:
    message: str


@dataclass(frozen=True)
class Response:
    output_tensors: list[Tensor] | None = None
    error: Error | None = None


def of_name(request: list[Tensor], name: str) -> Tensor:
    return next(tensor for tensor in request if tensor.name == name)


@pytest.fixture
def triton_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    server = ModuleType("triton_python_backend_utils")
    vars(server).update(Tensor=Tensor, InferenceResponse=Response, TritonError=Error, get_input_tensor_by_name=of_name)
    monkeypatch.setitem(sys.modules, server.__name__, server)
    shutil.copy(FOLDER / "1" / "model.py", tmp_path)
    qdialect.compile(qdialect.parse(CONVOLUTION)).save(tmp_path / "model.so")
    spec = importlib.util.spec_from_file_location("triton_model", tmp_path / "model.py")
    assert spec is not None
    assert spec.loader is not None
    found: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    one = found.TritonPythonModel()
    one.initialize({})
    return one


def test_requests_are_answered(triton_model: Any) -> None:
    images = [np.full((1, 6, 6, 4), value, np.int8) for value in (-3, 90)]
    executable = qdialect.compile(qdialect.parse(CONVOLUTION))
    answers = triton_model.execute([[Tensor("input0", image)] for image in images])
    for image, answer in zip(images, answers, strict=True):
        (output,) = answer.output_tensors
        assert output.name == "output0"
        np.testing.assert_array_equal(output.array, executable(image))


def test_a_bad_request_gets_an_error(triton_model: Any) -> None:
    (answer,) = triton_model.execute([[Tensor("input0", np.zeros((1, 6, 6, 4), np.uint8))]])
    assert answer.error.message == "input 'image' must be int8[1, 6, 6, 4], but got uint8[1, 6, 6, 4]"
