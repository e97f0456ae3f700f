"""Every kind of file and array that cannot be taken, at every entry point: one of our errors, and nothing else."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cached import kept
from flatbuffers import Builder
from numpy.typing import NDArray
from onnx import TensorProto, helper

import qdialect
from qdialect import InputError, QDialectError
from qdialect.cache.store import Store
from qdialect.cli import compile as compile_command
from qdialect.cli import import_model, npy, opt, run
from qdialect.driver.report import report
from qdialect.frontends.tflite.flatbuffer.reader import metadata
from qdialect.frontends.tflite.flatbuffer.writer import table, table_vector
from qdialect.reference import interpreter
from qdialect.runtime import Executable
from qdialect.targets import host

ROOT = Path(__file__).resolve().parents[2]
CLIP = """func.func @main(%x: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  func.return %y : tensor<2x3xi8>
}
"""
SUFFIXES = (".mlir", ".tflite", ".onnx", ".pt2")


def content(data: bytes) -> Callable[[Path], str]:
    def made(path: Path) -> str:
        path.write_bytes(data)
        return str(path)

    return made


def folder(path: Path) -> str:
    path.mkdir()
    return str(path)


def unreadable(path: Path) -> str:
    path.write_text(CLIP)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")
    return str(path)


def circle(path: Path) -> str:
    path.symlink_to(path)
    return str(path)


BAD_FILES: dict[str, Callable[[Path], str]] = {
    "absent": str,
    "in an absent folder": lambda path: str(path.parent / "nowhere" / path.name),
    "below a file": lambda path: f"{content(b'')(path.with_suffix(''))}/x{path.suffix}",
    "NUL in the name": lambda path: f"{path.with_suffix('')}\0{path.suffix}",
    "a name too long": lambda path: str(path.parent / ("x" * 5000 + path.suffix)),
    "a name that is not Unicode": lambda path: str(path.parent / ("\udcff" + path.suffix)),
    "a folder": folder,
    "unreadable": unreadable,
    "a link to itself": circle,
    "a device": lambda path: (path.symlink_to("/dev/null"), str(path))[1],
    "empty": content(b""),
    "not UTF-8": content(b"\xff\xfe\x00(\x00)"),
    "a byte order mark": content(b"\xef\xbb\xbf" + CLIP.encode()[:40]),
    "UTF-16": content(CLIP.encode("utf-16")),
    "NUL bytes": content(bytes(5000)),
    "one byte": content(b"\x08"),
    "half of it": content(CLIP.encode()[: len(CLIP) // 2]),
    "a pickle": content(pickle.dumps({"a": 1})),
    "an empty archive": content(b"PK\x05\x06" + bytes(18)),
    "a cut archive": content(b"PK\x03\x04" + bytes(18)),
    "a picture": content(b"\x89PNG\r\n\x1a\n" + bytes(64)),
    "an array": content(b"\x93NUMPY\x01\x00v\x00"),
}
# An empty module is text, but nothing to compile.
EMPTY_TEXTS = ("a device", "empty", "NUL bytes")

READERS: dict[str, Callable[[str], object]] = {
    "read_model": qdialect.read_model,
    "compile": qdialect.compile,
    "report": lambda path: report(path, host()),
}
COMMANDS: dict[str, Callable[[str, str], int]] = {
    "qdialect-import": lambda path, output: import_model.main([path, "-o", output]),
    "qdialect-import --report": lambda path, output: import_model.main([path, "--report", "-o", output]),
    "qdialect-run": lambda path, output: run.main([path, "--output-dir", output]),
}


def is_good(entry: str, kind: str, suffix: str) -> bool:
    return suffix == ".mlir" and kind in EMPTY_TEXTS and entry in ("read_model", "qdialect-import")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", BAD_FILES)
def test_python_raises_one_of_our_errors(tmp_path: Path, kind: str, suffix: str) -> None:
    path = BAD_FILES[kind](tmp_path / f"model{suffix}")
    for entry, read in READERS.items():
        if is_good(entry, kind, suffix):
            read(path)
            continue
        with pytest.raises(QDialectError) as caught:
            read(path)
        assert str(caught.value), entry


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", BAD_FILES)
def test_commands_end_with_1_and_write_nothing(
    tmp_path: Path, kind: str, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = BAD_FILES[kind](tmp_path / f"model{suffix}"), tmp_path / "output"
    for entry, command in COMMANDS.items():
        if is_good(entry, kind, suffix):
            continue
        assert command(path, str(output)) == 1, entry
        said = capsys.readouterr().err
        assert "error: " in said, entry
        assert "internal error" not in said, said
        assert "Traceback" not in said
        assert not output.exists(), entry


@pytest.mark.parametrize("kind", [kind for kind in BAD_FILES if kind not in EMPTY_TEXTS])
def test_text_that_cannot_be_read(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = BAD_FILES[kind](tmp_path / "model.mlir")
    with pytest.raises(QDialectError):
        qdialect.parse(path)
    with pytest.raises(QDialectError):
        qdialect.parse(Path(path))
    assert opt.main([path, "-o", str(tmp_path / "output")]) == 1
    assert "internal error" not in capsys.readouterr().err
    assert not (tmp_path / "output").exists()


BAD_OUTPUTS: dict[str, Callable[[Path], str]] = {
    "in an absent folder": lambda path: str(path / "nowhere" / "x.mlir"),
    "a folder": str,
    "NUL in the name": lambda path: str(path / "a\0b"),
    "a name too long": lambda path: str(path / ("x" * 5000)),
    "a full device": lambda _: "/dev/full",
}


@pytest.mark.parametrize("kind", BAD_OUTPUTS)
def test_outputs_that_cannot_be_written(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(CLIP)
    output = BAD_OUTPUTS[kind](tmp_path)
    assert opt.main([str(model), "-o", output]) == 1
    assert import_model.main([str(model), "-o", output]) == 1
    said = capsys.readouterr().err
    assert said.count("error: ") == 2
    assert "internal error" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["model.mlir"]


@pytest.mark.parametrize("output", ["/dev/full", "a\0b", "model.mlir/x"])
def test_folders_that_cannot_be_made(
    tmp_path: Path, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.mlir").write_text(CLIP)
    assert run.main(["model.mlir", "--output-dir", output]) == 1
    assert "error: cannot make folder" in capsys.readouterr().err


def header(text: str, data: bytes = bytes(6), version: bytes = b"\x01\x00") -> bytes:
    encoded = text.encode("latin-1")
    return b"\x93NUMPY" + version + len(encoded).to_bytes(2 if version[0] == 1 else 4, "little") + encoded + data


GOOD_HEADER = "{'descr': '|i1', 'fortran_order': False, 'shape': (2, 3), }"
BAD_ARRAYS = {
    "empty": b"",
    "a magic number": b"\x93NUMPY",
    "a version": b"\x93NUMPY\x01\x00",
    "a version that is unknown": b"\x93NUMPY\x09\x00v\x00",
    "a version for records with other names": header(GOOD_HEADER, version=b"\x03\x00"),
    "half a length": b"\x93NUMPY\x02\x00v\x00",
    "a header that is cut": header(GOOD_HEADER)[:30],
    "a header too long": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + bytes(99),
    "a header without its end": header("{'descr': '|i1', 'shape': (2L, 3L, '''"),
    "a header that opens a thousand times": header("(" * 9000),
    "a header that calls": header("{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (2, 3)}"),
    "a header that is a list": header("[1, 2]"),
    "a header that is bytes": header("b'x'"),
    "unhashable keys": header("{[]: 1}"),
    "a field too many": header(GOOD_HEADER.replace("}", "'x': 1}")),
    "a field too few": header("{'descr': '|i1', 'shape': (2, 3)}"),
    "a huge shape": header(GOOD_HEADER.replace("(2", "(1099511627776")),
    "a shape beyond an i64": header(GOOD_HEADER.replace("(2", f"({2**70}")),
    "a negative extent": header(GOOD_HEADER.replace("(2", "(-2")),
    "an extent that is a truth value": header(GOOD_HEADER.replace("(2, 3)", "(True, 6)")),
    "a shape that is a list": header(GOOD_HEADER.replace("(2, 3)", "[2, 3]")),
    "a thousand dimensions": header(GOOD_HEADER.replace("(2, 3)", f"({'1, ' * 1000})")),
    "too few elements": header(GOOD_HEADER, bytes(5)),
    "too many elements": header(GOOD_HEADER, bytes(7)),
    "objects": header(GOOD_HEADER.replace("|i1", "|O"), pickle.dumps([1] * 6)),
    "texts": header(GOOD_HEADER.replace("|i1", "<U1"), bytes(24)),
    "records": header(GOOD_HEADER.replace("'|i1'", "[('a', '|i1')]")),
    "elements of no size": header(GOOD_HEADER.replace("|i1", "|i0")),
    "a type that is unknown": header(GOOD_HEADER.replace("|i1", "<f3")),
    "an archive": b"PK\x03\x04" + b"x" * 50,
    "a pickle": pickle.dumps(np.zeros((2, 3), np.int8)),
    "text": b"1 2 3\n4 5 6\n",
}


@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_arrays_that_cannot_be_read(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    model, path = tmp_path / "model.mlir", tmp_path / "x.npy"
    model.write_text(CLIP)
    path.write_bytes(BAD_ARRAYS[kind])
    with pytest.raises(InputError, match=r"cannot read '.*x.npy' as a .npy file: "):
        npy.read_npy(str(path))
    assert run.main([str(model), "--input", str(path)]) == 1
    assert "internal error" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", [kind for kind in BAD_FILES if kind != "half of it"])
def test_files_that_are_no_arrays(tmp_path: Path, kind: str) -> None:
    with pytest.raises(InputError, match=r"as a \.npy file: "):
        npy.read_npy(BAD_FILES[kind](tmp_path / "x.npy"))


def test_arrays_are_read_as_numpy_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    drawn = np.random.default_rng(0).integers(-100, 100, (3, 4, 5))
    for dtype in ("i1", "u1", "?", "<i2", ">i4", "<i8", "<f4", ">f8", "<f2"):
        for array in (drawn, np.asfortranarray(drawn), drawn[:0], drawn[0, 0, 0]):
            converted = np.asarray(array).astype(dtype)
            np.save(path, converted)
            found = npy.read_npy(str(path))
            assert found.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(found, converted)


@pytest.fixture(scope="module")
def clip() -> Executable:
    return qdialect.compile(qdialect.parse(CLIP))


GOOD = np.zeros((2, 3), np.int8)


def unaligned(dtype: str) -> NDArray[Any]:
    return np.zeros(13, np.uint8)[1:].view(dtype)[:6].reshape(2, 3)


def read_only() -> NDArray[Any]:
    array = np.zeros((2, 3), np.int8)
    array.flags.writeable = False
    return array


BAD_INPUTS: dict[str, Any] = {
    "another shape": np.zeros((3, 2), np.int8),
    "another rank": np.zeros(6, np.int8),
    "nothing": np.zeros((0, 3), np.int8),
    "another dtype": np.zeros((2, 3), np.uint8),
    "another byte order": np.zeros((2, 3), ">i2"),
    "objects": np.zeros((2, 3), object),
    "records": np.zeros((2, 3), [("a", "i1")]),
    "a list": [[0, 0, 0], [0, 0, 0]],
    "bytes": bytes(6),
    "None": None,
}
BAD_RESULTS: dict[str, Any] = {
    **BAD_INPUTS,
    "read-only": read_only(),
    "not contiguous": np.zeros((2, 4), np.int8)[:, :3],
    "Fortran order": np.zeros((2, 3), np.int8, order="F"),
    "backwards": np.zeros((2, 3), np.int8)[::-1],
    "repeated": np.lib.stride_tricks.as_strided(np.zeros(3, np.int8), (2, 3), (0, 1)),
}


@pytest.mark.parametrize("kind", BAD_INPUTS)
def test_inputs_that_do_not_fit(clip: Executable, kind: str) -> None:
    bad = BAD_INPUTS[kind]
    for call in (
        lambda: clip(bad),
        lambda: clip.run([bad], [GOOD.copy()]),
        lambda: clip.bind([bad], [GOOD.copy()]),
        lambda: interpreter.run(qdialect.parse(CLIP), [bad]),
    ):
        with pytest.raises(InputError, match="must be"):
            call()


@pytest.mark.parametrize("kind", BAD_RESULTS)
def test_outputs_that_do_not_fit(clip: Executable, kind: str) -> None:
    for call in (clip.run, clip.bind):
        with pytest.raises(InputError, match="must be"):
            call([GOOD], [BAD_RESULTS[kind]])


def test_numbers_of_arrays_and_memory_that_is_shared(clip: Executable) -> None:
    memory = np.zeros(12, np.int8)
    first, second = memory[:6].reshape(2, 3), memory[3:9].reshape(2, 3)
    for call in (clip.run, clip.bind):
        for inputs, outputs in (([], [GOOD]), ([GOOD, GOOD], [GOOD]), ([GOOD], [])):
            with pytest.raises(InputError, match="must be called with 1"):
                call(inputs, outputs)
        with pytest.raises(InputError, match="must not share memory"):
            call([first], [second])
        with pytest.raises(InputError, match="must not share memory"):
            call([GOOD], [GOOD])


def huge(op: str, result: str) -> str:
    return f"func.func @main(%x: tensor<1x4xi8>) -> {result} {{\n{op}\n  func.return %y : {result}\n}}"


REPEATED = huge(
    '  %w = "qnn.constant"() {value = dense<3> : tensor<500000000x4xi8>} : () -> tensor<500000000x4xi8>\n'
    '  %y = "qnn.dense"(%x, %w) {input_scale = 0.5 : f64, input_zero_point = 7 : i64, '
    "weight_scales = array<f64: 0.25>, weight_zero_points = array<i64: 0>} : "
    "(tensor<1x4xi8>, tensor<500000000x4xi8>) -> tensor<1x500000000xi32>",
    "tensor<1x500000000xi32>",
)


def test_a_constant_that_is_one_number_repeated_is_within_a_budget() -> None:
    with pytest.raises(
        QDialectError, match="must have at most 67108864 elements together to be compiled, but got"
    ) as e:
        qdialect.compile(qdialect.parse(REPEATED, file_name="x.mlir"))
    assert e.value.diagnostics[0].line == 2


LIMITED = """
import resource, sys
import numpy as np
import qdialect
from qdialect.reference import interpreter
text = '''func.func @main(%x: tensor<1x70000xi8>, %z: tensor<60000x1xi8>) -> tensor<1x1xi8> {
  %q = "qnn.broadcast"(%x) {shape = array<i64: 30000, 70000>} : (tensor<1x70000xi8>) -> tensor<30000x70000xi8>
  %t = "qnn.transpose"(%q) {permutation = array<i64: 1, 0>} : (tensor<30000x70000xi8>) -> tensor<70000x30000xi8>
  %m = "qnn.slice"(%t) {begin = array<i64: 0, 0>, size = array<i64: 1, 1>, strides = array<i64: 1, 1>}
      : (tensor<70000x30000xi8>) -> tensor<1x1xi8>
  func.return %m : tensor<1x1xi8>
}'''
module = qdialect.parse(text)
limit = 2 << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
arrays = [np.zeros((1, 70000), np.int8), np.zeros((60000, 1), np.int8)]
for work in (lambda: interpreter.run(module, arrays), lambda: qdialect.compile(module)(*arrays)):
    try:
        work()
    except qdialect.QDialectError as error:
        print(error)
    else:
        print("works")
"""


def test_memory_that_the_process_does_not_have_is_an_error() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert f"at most {2 << 30} bytes" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("program", ["opt", "run", "import_model"])
def test_a_reader_that_goes_away_and_a_stdout_that_is_closed(tmp_path: Path, program: str) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(CLIP)
    command = f"{sys.executable} -m qdialect.cli.{program} {path}"
    for shell in (f"{command} | true", f"{command} >&-", f"{command} > /dev/full"):
        done = subprocess.run(["bash", "-o", "pipefail", "-c", shell], capture_output=True, text=True, cwd=ROOT)
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr
        assert done.returncode in ((0, 1) if "true" in shell or ">&-" in shell else (1,)), shell


# What the author of a model noted in its file, on the way to executables, files and headers.

ONNX: Any = onnx

__all__ = ["kept"]
NOTED = {"author": "me\nyou", "labels": '["a*/", "b"]'}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("n", 4)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "graph", ports[:1], ports[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    helper.set_model_props(made, {**NOTED, "": "no name"})
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def test_properties_of_onnx_models(model: Path, tmp_path: Path, kept: Store) -> None:
    ways: list[dict[str, Any]] = [{}, {}, {"cache": False}, {"batch": "dynamic"}]
    found = [qdialect.compile(model, **options) for options in ways]
    found[-1].save(tmp_path / "saved.so")
    assert compile_command.main([str(model), "-o", str(tmp_path / "network.so"), "--mcpu", "x86-64"]) == 0
    found += [qdialect.load(tmp_path / name) for name in ("saved.so", "network.so")]
    assert [dict(one.metadata) for one in found] == [NOTED] * len(found)
    assert "model  author: me\\nyou" in repr(found[0])
    assert '"labels": "[\\042a\\052/\\042, \\042b\\042]"' in (tmp_path / "network.h").read_text()
    (tmp_path / "module.mlir").write_text(str(qdialect.read_model(model)))
    assert dict(qdialect.compile(tmp_path / "module.mlir").metadata) == NOTED


def test_a_model_in_parts(model: Path) -> None:
    made: Any = ONNX.load(model)
    made.graph.node[0].op_type = "Hardmax"
    assert dict(qdialect.compile(made, fallback="framework").metadata) == NOTED


def described() -> bytes:
    """A table of the schema of metadata."""
    builder: Any = Builder(64)
    texts = {slot: builder.CreateString(text) for slot, text in ((0, "classifier"), (4, "someone"))}
    builder.StartObject(8)
    for slot, text in texts.items():
        builder.PrependUOffsetTRelativeSlot(slot, text, 0)
    builder.Finish(builder.EndObject(), b"M001")
    return bytes(builder.Output())


def tflite_model() -> bytes:
    """Metadata alone: a text, a description, and what is no text."""
    builder: Any = Builder(1024)
    contents = {"version": b"1.14.0\0\0", "TFLITE_METADATA": described(), "blob": b"\xff\xfe", "zeros": b"a\0b"}
    buffers = [table(builder, "Buffer", Data=builder.CreateByteVector(content)) for content in contents.values()]
    names = [builder.CreateString(name) for name in contents]
    entries = [table(builder, "Metadata", Name=name, Buffer=index) for index, name in enumerate(names)]
    held, noted = table_vector(builder, buffers), table_vector(builder, entries)
    builder.Finish(table(builder, "Model", Version=3, Buffers=held, Metadata=noted), b"TFL3")
    return bytes(builder.Output())


def test_metadata_of_tflite_models() -> None:
    content = tflite_model()
    assert metadata(content) == {"version": "1.14.0", "name": "classifier", "author": "someone"}
    # Damage leaves something out, and never is an error: the graph is as it was.
    for index in range(len(content)):
        for bits in (0xFF, 0x80, 1):
            metadata(content[:index] + bytes([content[index] ^ bits]) + content[index + 1 :])
        metadata(content[:index])
