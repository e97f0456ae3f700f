"""Networks that are saved and loaded: no compiler, the same bits, clear errors."""

import contextlib
import copy
import ctypes
import json
import os
import pickle
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from c_programs import compiled, ran, tool
from drawn_graphs import random_inputs
from drawn_networks import CONVOLUTION, DIVISIBLE, MATMUL
from onnx_graphs import ModelBuilder
from subprocesses import output_of

import qdialect
from qdialect.aot import record
from qdialect.aot.record import sealed
from qdialect.ir.context import parse
from qdialect.runtime import Executable
from qdialect.runtime import library as libraries
from qdialect.runtime.partitioned import PartitionedExecutable
from qdialect.support.diagnostics import CompileError, InputError, LoadError, QDialectError

SEAL_BYTES = len(sealed(b""))
START = record.MAGIC + struct.pack("<I", record.ABI_VERSION)
CLIP = """
func.func @main(%x: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %0 = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %0 : tensor<2x3xi8>
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("library"), CLIP)


def saved(folder: Path, text: str, threads: int = 1) -> Path:
    qdialect.compile(parse(text), threads=threads).save(folder / "network.so")
    return folder / "network.so"


def test_loading_imports_neither_the_compiler_nor_its_bindings(library: Path) -> None:
    program = (
        "import sys, numpy as np, qdialect\n"
        "found = qdialect.load(sys.argv[1])(np.full((2, 3), 100, np.int8))\n"
        "assert found.tolist() == [[9] * 3] * 2\n"
        "print(*(name for name in sys.modules if name.startswith(('torch_mlir', 'qdialect.')) ))\n"
    )
    names = output_of(program, str(library)).split()
    assert [name for name in names if name.startswith(("torch_mlir", "qdialect.lowering", "qdialect.ir._mlir"))] == []
    assert "qdialect.runtime.loaded" in names


@pytest.mark.parametrize("text", [CONVOLUTION, DIVISIBLE, MATMUL])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_saved_network_computes_the_same(text: str, threads: int, tmp_path: Path) -> None:
    module = parse(text)
    inputs = random_inputs(module)
    loaded = qdialect.load(saved(tmp_path, text, threads))
    np.testing.assert_array_equal(loaded(*inputs), qdialect.compile(module)(*inputs))
    assert loaded.threads == threads


def test_a_loaded_network_is_bound_and_run(library: Path) -> None:
    executable = qdialect.load(str(library))
    image, found = np.zeros((2, 3), np.int8), np.zeros((2, 3), np.int8)
    call = executable.bind([image], [found])
    image[:] = 100
    call()
    assert (found == 9).all()
    executable.run([np.full((2, 3), -100, np.int8)], [found])
    assert (found == -5).all()
    with pytest.raises(InputError, match=r"input 'arg0' must be int8\[2, 3\], but got int8\[3, 2\]"):
        executable(np.zeros((3, 2), np.int8))


def test_a_loaded_network_is_saved_as_it_is(library: Path, tmp_path: Path) -> None:
    qdialect.load(library).save(tmp_path / "copy.so")
    assert (tmp_path / "copy.so").read_bytes() == library.read_bytes()


def test_a_file_that_was_replaced_is_another_network(tmp_path: Path) -> None:
    # The system's loader takes a path that it knows for the library that it has.
    path, image = tmp_path / "network.so", np.full((2, 3), 100, np.int8)
    qdialect.compile(parse(CLIP)).save(path)
    first = qdialect.load(path)
    for limit in (8, 7):
        qdialect.compile(parse(CLIP.replace("max = 9", f"max = {limit}"))).save(path)
        assert (np.asarray(qdialect.load(path)(image)) == limit).all()
    assert (np.asarray(first(image)) == 9).all()


def test_a_network_of_open_shapes_is_saved_with_its_first(tmp_path: Path) -> None:
    builder = ModelBuilder()
    relu = builder.node("Relu", builder.input("image", ("batch", 4)))
    (tmp_path / "model.onnx").write_bytes(builder.finish(relu, dtype=np.float32))
    network = qdialect.compile(tmp_path / "model.onnx", batch=3)
    network.save(tmp_path / "three.so")
    assert qdialect.load(tmp_path / "three.so").inputs[0].shape == (3, 4)
    network.for_shape({"batch": 5}).save(tmp_path / "five.so")
    assert qdialect.load(tmp_path / "five.so").inputs[0].shape == (5, 4)


def test_a_network_in_parts_cannot_be_saved(tmp_path: Path) -> None:
    builder = ModelBuilder()
    hardmax = builder.node("Hardmax", builder.node("Relu", builder.input("image", (1, 4, 3, 3))))
    (tmp_path / "model.onnx").write_bytes(builder.finish(hardmax, dtype=np.float32))
    network = qdialect.compile(tmp_path / "model.onnx", fallback="framework")
    assert isinstance(network, PartitionedExecutable)
    with pytest.raises(CompileError) as error:
        network.save(tmp_path / "model.so")
    message, note = error.value.render().splitlines()
    assert message == "error: network must be compiled as a whole to be saved, but ONNX Runtime runs 1 of its nodes"
    assert note.startswith("note: node ")
    assert "Hardmax" in note
    assert not (tmp_path / "model.so").exists()


def test_without_a_c_compiler_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = qdialect.compile(parse(CLIP))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError) as error:
        network.save(tmp_path / "network.so")
    assert error.value.message == (
        "a shared library is linked by a C compiler, but none of cc, gcc, clang is there: install gcc or clang, or "
        "make an object file with qdialect-compile --emit=obj"
    )
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with pytest.raises(CompileError, match="but CC names 'no-such-compiler', which is not there: install gcc or clang"):
        network.save(tmp_path / "network.so")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["missing/network.so", "folder"])
def test_a_file_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(QDialectError, match=f"cannot write '.*{name}'"):
        qdialect.compile(parse(CLIP)).save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def damaged(content: bytes, kind: str) -> bytes:
    found = bytearray(content)
    at = content.index(START)
    if kind == "magic":
        found[at : at + 8] = b"something"[:8]
    elif kind == "version":
        struct.pack_into("<I", found, at + 8, record.ABI_VERSION + 1)
    elif kind == "details":
        start = content.index(b'{"name"', at)
        found[start : start + 7] = b'{"nome"'
    else:
        return content[: len(content) * 2 // 3]
    # Of files that are not damaged since they were written.
    return sealed(bytes(found[:-SEAL_BYTES]))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("magic", "file must describe its network, but what stands there is something else"),
        ("version", f"file must have version {record.ABI_VERSION} of the interface, but has version"),
        ("details", "description of the network is damaged: KeyError: 'name'"),
        ("cut", r"' must have \d+ bytes, but has \d+: it was cut off"),
    ],
)
def test_damaged_files_are_refused(kind: str, message: str, library: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.so"
    path.write_bytes(damaged(library.read_bytes(), kind))
    with pytest.raises(LoadError, match=message) as error:
        qdialect.load(path)
    assert "damaged.so" in str(error.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("not a library")
    (tmp_path / "empty.so").touch()
    os.mkfifo(tmp_path / "pipe.so")
    for name, message in {
        "text.so": "must be a shared library of 64 bits, but begins with b'not '",
        "empty.so": "must be a shared library of 64 bits, but begins with b''",
        "missing.so": "no such file",
        "pipe.so": "it must be a regular file",
        "a\0b.so": "a\\x00b.so'",
    }.items():
        with pytest.raises(LoadError) as error:
            qdialect.load(tmp_path / name)
        assert message in error.value.message


def test_a_library_that_needs_another_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text("int nowhere(void);\nint other(void) { return nowhere(); }\n")
    ran(tool("cc"), "-shared", "-fPIC", "other.c", "-Wl,-z,now", "-o", "other.so", folder=tmp_path)
    with pytest.raises(LoadError, match=r"cannot load '.*other.so': .*nowhere"):
        qdialect.load(tmp_path / "other.so")


def test_a_cpu_that_no_version_fits_is_told(library: Path, tmp_path: Path) -> None:
    # The same functions with another answer stand for a CPU that lacks AVX-512.
    content = record.written(network_of(library))
    numbers = ", ".join(map(str, content))
    (tmp_path / "lacking.c").write_text(
        f"static const unsigned char record[] __attribute__((aligned(8))) = {{{numbers}}};\n"
        "const void *qdialect_network_of_file(void) { return record; }\n"
        "int model_version(void) { return -1; }\n"
    )
    ran(tool("cc"), "-shared", "-fPIC", "lacking.c", "-o", "lacking.so", folder=tmp_path)
    with pytest.raises(LoadError, match=r"this CPU can execute none of its versions: "):
        qdialect.load(tmp_path / "lacking.so")


def network_of(library: Path) -> record.Network:
    content = library.read_bytes()
    start = content.index(START)
    size = record.size_of(content[start : start + record.START_SIZE])
    return record.read(content[start : start + size])


def test_a_flipped_bit_anywhere_is_found_before_the_file_is_mapped(library: Path, tmp_path: Path) -> None:
    content = library.read_bytes()
    path = tmp_path / "flipped.so"
    # Headers, symbols, code and constants: most would end the process, or give other numbers.
    for position in (*range(16, 64, 6), *np.linspace(64, len(content) - SEAL_BYTES - 1, 40, dtype=int)):
        flipped = bytearray(content)
        flipped[position] ^= 0x10
        path.write_bytes(flipped)
        with pytest.raises(LoadError, match=r"flipped.so' (is damaged: its content does not have|must )"):
            qdialect.load(path)


def test_a_file_is_written_to_while_its_network_runs(tmp_path: Path) -> None:
    # Copied over, as cp does it: the system's loader would have mapped the file itself.
    texts = [CLIP, CLIP.replace("-5", "-15")]
    one, other = (saved(tmp_path, text).read_bytes() for text in texts)
    path, array = tmp_path / "network.so", np.full((2, 3), -128, np.int8)
    path.write_bytes(one)
    first = qdialect.load(path)
    wanted = first(array)
    path.write_bytes(other)
    second = qdialect.load(path)
    assert not np.array_equal(second(array), wanted)
    path.write_bytes(b"")
    assert np.array_equal(first(array), wanted)
    assert np.array_equal(pickle.loads(pickle.dumps(first))(array), wanted)
    # The loader reads what it has of all libraries when it loads another one.
    ctypes.CDLL(str(compiled(tmp_path, CLIP)))


def mapped_networks() -> int:
    """How many mappings of loaded networks this process has."""
    return sum("qdialect-network" in line for line in Path("/proc/self/maps").read_text().splitlines())


@pytest.mark.parametrize("threads", [1, 2])
def test_a_library_that_nobody_holds_is_unmapped(tmp_path: Path, threads: int) -> None:
    libraries.PICKLED.clear()
    path, before = saved(tmp_path, CLIP, threads), mapped_networks()
    executable = qdialect.load(path)
    binding = executable.bind([np.zeros((2, 3), np.int8)], [np.zeros((2, 3), np.int8)])
    content = pickle.dumps(executable)
    one = mapped_networks()
    assert one > before
    others = [qdialect.load(path), pickle.loads(content)]
    assert mapped_networks() == one
    del executable, others
    binding()
    libraries.PICKLED.clear()
    assert mapped_networks() == one
    del binding
    assert mapped_networks() == before


def test_tasks_of_a_pool_link_and_load_once(monkeypatch: pytest.MonkeyPatch) -> None:
    executable, linked = qdialect.compile(parse(CLIP), cache=False), list[str]()
    made = cast("Callable[[Executable, str], bytes]", type(executable).library)

    def library(self: Executable, name: str) -> bytes:
        linked.append(name)
        return made(self, name)

    monkeypatch.setattr(type(executable), "library", library)
    tasks = [pickle.dumps(executable) for _ in range(3)]
    assert len(linked) == 1
    found = [pickle.loads(task) for task in tasks]
    array = np.full((2, 3), -128, np.int8)
    assert all(np.array_equal(one(array), executable(array)) for one in found)
    monkeypatch.setattr(libraries, "SharedObject", None)
    # None of them is held now.
    del found
    assert np.array_equal(pickle.loads(tasks[0])(array), executable(array))


def test_a_description_that_is_damaged_anywhere(library: Path) -> None:
    content = record.written(network_of(library))
    tree = json.loads(content[content.index(b'{"name"') :].rstrip(b"\0"))
    places = list(paths_of(tree))
    for place in places:
        for value in WRONG_VALUES:
            head = content[: content.index(b'{"name"')]
            changed = json.dumps(replaced(tree, place, value), separators=(",", ":")).encode()
            # Another valid value is as good.
            with contextlib.suppress(LoadError):
                assert record.read(head + changed).versions
    # The last byte is the zero behind the text.
    for size in range(0, len(content) - 1, 7):
        with pytest.raises(LoadError, match="description of the network is damaged"):
            record.read(content[:size])
    with pytest.raises(LoadError, match="RecursionError"):
        record.read(content[: content.index(b'{"name"')] + b"[" * 100_000)


WRONG_VALUES: list[Any] = [None, -2, 1.5, True, "text", "O", [], {}, [[]], 1 << 70, ["a", 1], {"a": {}}]


def paths_of(tree: Any) -> Iterator[tuple[Any, ...]]:
    """Where values are in a tree."""
    yield ()
    keys: list[Any] = []
    if isinstance(tree, dict):
        keys = list(cast("dict[str, Any]", tree))
    elif isinstance(tree, list):
        keys = list(range(len(cast("list[Any]", tree))))
    for key in keys:
        for rest in paths_of(tree[key]):
            yield (key, *rest)


def replaced(tree: Any, place: tuple[Any, ...], value: object) -> Any:
    """The tree with another value at a place."""
    if not place:
        return value
    items: Any = copy.copy(tree)
    items[place[0]] = replaced(tree[place[0]], place[1:], value)
    return items
