"""``qdialect-compile``: what it writes, and what it says of wrong input."""

from pathlib import Path

import numpy as np
import pytest
from c_programs import ran, tool
from graphs import random_inputs
from onnx_graphs import ModelBuilder
from phase_networks import CONVOLUTION, DIVISIBLE

import qdialect
from qdialect.cli import compile as command
from qdialect.ir.context import parse
from qdialect.targets import TARGETS, Target


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


def test_what_was_there_is_replaced(model: str) -> None:
    Path("out.so").write_text("old")
    Path("out.so").chmod(0o640)
    assert command.main([model, "-o", "out.so", "--name", "other"]) == 0
    assert Path("out.so").stat().st_mode & 0o777 == 0o640
    assert "int other_run(" in Path("out.h").read_text()
    qdialect.load("out.so")


def test_text_is_written_to_stdout(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    for emit, wanted in {
        "mlir": "llvm.func @net_run(",
        "llvm": "define i32 @net_run(",
        "asm": "<net_run>:",
    }.items():
        assert command.main([model, "-o", "-", "--emit", emit, "--mcpu", "x86-64", "--name", "net"]) == 0
        assert wanted in capsys.readouterr().out
    assert [path.name for path in Path().iterdir()] == ["net.mlir"]


def test_mlir_is_a_module(model: str) -> None:
    assert command.main([model, "-o", "out.mlir", "--emit", "mlir"]) == 0
    parse(Path("out.mlir"))


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
        assert "module was lowered for target 'generic', but got 'avx512vbmi'" in said


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
        (["net.mlir", "-o", "missing/out.so"], "error: cannot write 'missing/out.h': No such file or directory"),
        (["net.mlir", "-o", "out.h"], "error: --output must not name the header, which is written beside it, but got "),
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


def test_a_link_to_the_model_is_the_model(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("link.so").symlink_to(model)
    assert "error: --output must not name the model, but got 'link.so'\n" in failed(capsys, model, "-o", "link.so")
    assert Path(model).read_text() == CONVOLUTION


def test_text_may_go_to_a_device(model: str) -> None:
    assert command.main([model, "-o", "/dev/null", "--emit", "mlir", "--mcpu", "x86-64"]) == 0


def test_a_folder_is_no_file(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("out.so").mkdir()
    assert "error: cannot write 'out.so': Is a directory\n" in failed(capsys, model, "-o", "out.so")


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
    assert "version 0: avx512vbmi" in Path("out.h").read_text()


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
