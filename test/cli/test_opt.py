"""`qdialect-opt`: how it ends, what it expects of diagnostics, and its help."""

import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch_models as torch_archives
from bounds import HANG, deadline
from onnx import TensorProto, helper
from onnx_graphs import ModelBuilder
from tflite_graphs import small_network

import qdialect
from qdialect.cli import bench, cache, compile, import_model, opt, run
from qdialect.cli import compile as compile_command
from qdialect.cli.expected import MalformedCommentError, expectations, problems
from qdialect.cli.opt import main
from qdialect.support.diagnostics import Diagnostic, Severity

GOOD = "func.func @f() {\n  return\n}\n"
COMMAND = [sys.executable, "-m", "qdialect.cli.opt"]


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.mlir"
    path.write_text(GOOD)
    return path


def large(folder: Path) -> Path:
    """A module whose print is longer than the buffer of a pipe."""
    path = folder / "large.mlir"
    path.write_text("".join(f"func.func @function_{i}() {{ return }}\n" for i in range(3000)))
    return path


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path, unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(
        [*COMMAND, large(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_long_print_arrives_whole(tmp_path: Path, unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run([*COMMAND, large(tmp_path)], stdout=subprocess.PIPE, env=environment, check=True, text=True)
    assert done.stdout.count("func.func @function_") == 3000
    assert done.stdout.endswith("}\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [[], ["--help"], ["--list-passes"]])
def test_a_full_disk_is_an_error(good: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COMMAND, good, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "qdialect-opt: error: No space left on device\n")


@pytest.mark.parametrize(
    ("redirection", "stderr"),
    [
        ("good.mlir >&-", "error: cannot write '<stdout>': it is closed\n"),
        ("- <&-", "error: cannot read '<stdin>': it is closed\n"),
        ("missing.mlir 2>&-", ""),
    ],
)
def test_a_closed_stream_is_an_error(good: Path, redirection: str, stderr: str) -> None:
    shell = f"'{sys.executable}' -m qdialect.cli.opt {redirection}"
    done = subprocess.run(shell, shell=True, cwd=good.parent, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, stderr)


def wait_for_a_sleeper(pid: int) -> None:
    """Until a process waits for its input: its imports are done, however busy the machine is."""
    asleep = 0
    for _ in range(600):
        time.sleep(0.1)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0
        if asleep == 10:
            return
    pytest.fail("the command never waited for its input")


def heed_interrupts() -> None:
    """What runs in the background of a shell ignores them, and hands that on."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the state of a process is not in /proc")
def test_an_interrupt_ends_it_quietly() -> None:
    command, pipe = [*COMMAND, "-", "--mlir-timing"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, preexec_fn=heed_interrupts) as process:
        assert process.stderr
        wait_for_a_sleeper(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG) == 130
        assert process.stderr.read() == b""


def test_a_bug_is_one_line_with_its_place(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(arguments: object) -> int:
        raise KeyError(type(arguments).__name__)

    monkeypatch.setattr("qdialect.cli.opt._run", broken)
    assert main([]) == 1
    error = capsys.readouterr().err
    assert error.startswith("qdialect-opt: internal error: KeyError: 'Arguments' (test_opt.py:")
    assert error.count("\n") == 1


def test_a_failed_run_leaves_the_output_alone(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = good.with_name("bad.mlir")
    bad.write_text("func.func @f( {")
    assert main([str(bad), "-o", str(good)]) == 1
    assert good.read_text() == GOOD
    assert sorted(path.name for path in good.parent.iterdir()) == ["bad.mlir", "good.mlir"]
    assert f"{bad}:1:14: error: " in capsys.readouterr().err


def test_an_output_keeps_its_mode_and_its_links(good: Path) -> None:
    target, link = good.with_name("target.mlir"), good.with_name("link.mlir")
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert main([str(good), "-o", str(link)]) == 0
    assert link.is_symlink()
    assert "func.func @f" in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_device_can_be_the_output(good: Path) -> None:
    assert main([str(good), "-o", os.devnull]) == 0
    assert Path(os.devnull).is_char_device()


def test_a_file_name_need_not_be_unicode(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = good.with_name("odd\udcff.mlir")
    odd.write_text(GOOD)
    assert main([str(odd), "-o", str(odd), "--mlir-print-debuginfo"]) == 0
    assert b'odd\xff.mlir":1:1' in odd.read_bytes()
    assert main([str(good.with_name("missing\udcff.mlir"))]) == 1
    assert "cannot read" in capsys.readouterr().err


# Expected diagnostics as comments, and several modules in one file.


def diagnostic(line: int, message: str = "it is wrong", severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(severity, message, "x.mlir" if line else "", line, 1)


def complaints(text: str, *diagnostics: Diagnostic) -> list[str]:
    return [str(found) for found in problems(text, "x.mlir", diagnostics)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("op // expected-error {{wrong}}", 1),
        ("op // expected-error{{wrong}}  ", 1),
        ("// expected-error @+2 {{wrong}}\n\nop", 3),
        ("op\n// expected-error @-1 {{wrong}}", 1),
        ("op\n// expected-note @above {{wrong}}\n// expected-error @above {{wrong}}", 1),
        ("// expected-error @below {{wrong}}\n// expected-note @below {{wrong}}\nop", 3),
        ("// expected-error-re @below {{it {{(is|was)}} wrong}}\nop", 2),
        ("// expected-error @unknown {{wrong}}", 0),
    ],
)
def test_a_comment_says_where_the_error_is(text: str, line: int) -> None:
    wanted = [e for e in expectations(text) if e.severity is Severity.ERROR]
    assert [e.line for e in wanted] == [line]
    assert wanted[0].fits(diagnostic(line))
    assert not wanted[0].fits(diagnostic(line + 1))
    assert not wanted[0].fits(diagnostic(line, "it is right"))
    assert not wanted[0].fits(diagnostic(line, severity=Severity.WARNING))


@pytest.mark.parametrize("severity", list(Severity))
def test_every_severity_can_be_expected(severity: Severity) -> None:
    text = f"op // expected-{severity.value} {{{{wrong}}}}"
    assert complaints(text, diagnostic(1, severity=severity)) == []
    assert len(complaints(text)) == 1


def test_a_text_is_literal_and_a_regular_expression_is_not() -> None:
    literal = "op // expected-error {{a.b}}"
    assert complaints(literal, diagnostic(1, "a.b")) == []
    assert len(complaints(literal, diagnostic(1, "axb"))) == 2
    pattern = "op // expected-error-re {{f(x) {{a.b}}}}"
    assert complaints(pattern, diagnostic(1, "f(x) axb")) == []
    assert len(complaints(pattern, diagnostic(1, "f(x) ab"))) == 2


def test_a_bad_regular_expression_is_an_error() -> None:
    found = complaints("op // expected-error-re {{{{(}}}}")
    assert found
    assert found[0].startswith("x.mlir:1:7: error: invalid regular expression in '{{(}}': ")


@pytest.mark.parametrize("row", [" ", "{{", "}} "])
def test_the_time_of_long_regular_expressions_is_linear(row: str) -> None:
    with deadline(), contextlib.suppress(MalformedCommentError):
        expectations(f"expected-error-re {{{{{row * 200_000}}}}}")


# The examples in the help of each command run.

MODULE = """
func.func @main(%x: tensor<2x3xi8>, %y: tensor<2xi8>) -> (tensor<2x3xi8>, tensor<2xi8>) {
  %0 = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %0, %y : tensor<2x3xi8>, tensor<2xi8>
}
"""
WITH_EXPECTATION = """
// expected-error @+1 {{custom op 'unknown' is unknown}}
unknown
// -----
func.func @empty() { return }
"""


def parsed(argv: Sequence[str]) -> int:
    """A benchmark takes minutes: of its examples the arguments are parsed."""
    bench.parse(argv)
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "qdialect-bench": parsed,
    "qdialect-cache": cache.main,
    "qdialect-compile": compile.main,
    "qdialect-import": import_model.main,
    "qdialect-opt": opt.main,
    "qdialect-run": run.main,
}
HELP: dict[str, Callable[[Sequence[str]], object]] = {**COMMANDS, "qdialect-bench": bench.parse}


def examples_of(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The commands of the examples: what stands behind two spaces is a comment."""
    with suppress(SystemExit):
        HELP[command](["--help"])
    _, _, examples = capsys.readouterr().out.partition("examples:\n")
    return [re.split(r" {2,}", line)[0] for line in re.findall(r"^  (qdialect-.*)$", examples, re.MULTILINE)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files that the examples name."""
    (tmp_path / "model.tflite").write_bytes(small_network())
    np.save(tmp_path / "image.npy", np.zeros((1, 2, 2, 2), np.int8))
    (tmp_path / "model.mlir").write_text(MODULE)
    qdialect.compile(tmp_path / "model.mlir").save(tmp_path / "model.so")
    np.save(tmp_path / "a.npy", np.zeros((2, 3), np.int8))
    np.save(tmp_path / "b.npy", np.zeros(2, np.int8))
    (tmp_path / "test.mlir").write_text(WITH_EXPECTATION)
    builder = ModelBuilder()
    relu = builder.node("Relu", builder.input("image", ("batch", 4)))
    (tmp_path / "model.onnx").write_bytes(builder.finish(relu, dtype=np.float32))
    (tmp_path / "model.pt2").write_bytes(torch_archives.good_content())
    monkeypatch.chdir(tmp_path)


class Stdin:
    """A standard input with this text."""

    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_run(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    examples = examples_of(command, capsys)
    assert len(examples) > 3
    for example in examples:
        printed = ""
        for part in example.split(" | "):
            program, *arguments = shlex.split(part)
            monkeypatch.setattr("sys.stdin", Stdin(printed))
            status = COMMANDS[program](arguments)
            printed, said = capsys.readouterr()
            assert status == 0, f"{example}\n{said}"


# Plugins: the template in `examples/plugin`, by a flag and by an entry point; what fails while it is loaded.


PLUGIN = Path(__file__).resolve().parents[2] / "examples" / "plugin"
PROGRAM = """
import numpy as np, qdialect
from qdialect.cli import opt, terminal
from qdialect.support.registry import foreign_modules

assert opt.main(["--list-passes"]) == 0
# The file of an editable package may be named too.
assert opt.main(["--list-passes", f"--load-pass-plugin={PLUGIN}"]) == 0
text = open(MODEL).read()
x = np.arange(-16, 16, dtype=np.int8).reshape(4, 8)
before = qdialect.compile(qdialect.parse(text))(x)
module = qdialect.parse(text)
qdialect.PassManager("tanh-to-softsign").run(module)
alone = qdialect.compile(module)(x)
assert (qdialect.compile(module, batch="dynamic")(x[:3]) == alone[:3]).all()
assert (alone != before).any()
values = x / 4.0
first = np.sign(values) * np.clip(np.floor(np.abs(values / (1 + np.abs(values))) * 128 + 0.5), 0, 127)
np.testing.assert_allclose(alone, np.clip(np.tanh(first / 128) * 256, -128, 127), atol=1)
qdialect.PassManager("qnn-to-tosa").run(module)
assert "qnn.softsign" not in str(module)
assert foreign_modules() == {"qdialect_softsign"}
"""


def installed(folder: Path, value: str) -> dict[str, str]:
    """The environment of a process that finds a package with an entry point."""
    info = folder / "softsign-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: softsign\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[qdialect.plugins]\nsoftsign = {value}\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder, PLUGIN)))}


def test_the_template() -> None:
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", str(PLUGIN / "test")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Passed: 1" in done.stdout, done.stdout + done.stderr


def test_an_op_of_an_installed_plugin_is_as_those_of_the_project(tmp_path: Path) -> None:
    names = f"PLUGIN, MODEL = {str(PLUGIN / 'qdialect_softsign.py')!r}, {str(PLUGIN / 'test' / 'softsign.mlir')!r}"
    program = f"{names}\n{PROGRAM}"
    environment = installed(tmp_path, "qdialect_softsign")
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "tanh-to-softsign" in done.stdout
    (tmp_path / "broken.py").write_text("\n\n1 / 0\n")
    (tmp_path / "softsign-1.dist-info" / "entry_points.txt").write_text("[qdialect.plugins]\nbad = broken\n")
    command = [sys.executable, "-m", "qdialect.cli.opt", "--list-passes"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    at = f"{tmp_path}/broken.py:3"
    assert done.stderr == f"error: cannot load plugin 'bad' (broken): {at}: ZeroDivisionError: division by zero\n"


@pytest.mark.parametrize("main", [compile_command.main, import_model.main, opt.main, run.main])
def test_every_command_takes_plugins(
    main: Callable[[Sequence[str]], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plugin.py"
    path.write_text("raise ValueError('no')")
    statuses: list[object] = []
    try:
        statuses.append(main(["model.mlir", f"--load-pass-plugin={path}"]))
    except SystemExit as error:
        statuses.append(error.code)
    assert statuses == [1]
    assert f"argument --load-pass-plugin: cannot load '{path}': {path}:1: ValueError: no" in capsys.readouterr().err


# Reports of commands as JSON, for programs.


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 4)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Log", ["x"], ["y"])], "graph", ports[:1], ports[1:])
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10).SerializeToString()
    path.write_bytes(content)
    return str(path)


def report(command: Callable[[Sequence[str]], int], *arguments: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert command(arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_reports(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = report(run.main, model, "--json", "--output-dir", str(tmp_path), capsys=capsys)
    assert found["inputs"] == [{"name": "x", "shape": [2, 4], "dtype": "float32", "scale": None, "zero_point": None}]
    assert found["results"][0]["shape"] == [2, 4]
    assert found["regions"][0]["runner"] == "qdialect"
    assert found["speed"] is None
    assert (tmp_path / "output0.npy").exists()
    found = report(run.main, model, "--json", "--benchmark", capsys=capsys)
    assert found["speed"]["seconds"] > 0
    found = report(import_model.main, model, "--report", "--json", capsys=capsys)
    assert found["nodes"][0]["node"]["kind"] == "Log"
    assert found["calls"][found["nodes"][0]["calls"][0]]["kernel"] == 0
    assert report(cache.main, "info", "--json", capsys=capsys)["limit"] > 0


REFUSED: list[tuple[Callable[[Sequence[str]], int], list[str], str]] = [
    (run.main, ["--reference"], "--reference must be given without --json"),
    (run.main, ["--benchmark", "--profile-ops"], "--profile-ops must be given without --json"),
    (import_model.main, [], "--json must be given with --report"),
]


@pytest.mark.parametrize(("command", "flags", "message"), REFUSED)
def test_flags_without_json(
    command: Callable[[Sequence[str]], int],
    flags: list[str],
    message: str,
    model: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command([model, "--json", *flags]) == 1
    assert message in capsys.readouterr().err
