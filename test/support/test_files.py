"""Files that users name, child processes, the heap, and bounds of memory."""

import gc
import os
import re
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from subprocesses import output_of

import qdialect
from qdialect.cli import compile as compile_command
from qdialect.ir import untrusted_input
from qdialect.ir.context import bytecode as written
from qdialect.ir.context import several_threads
from qdialect.support import child_processes, files, limits
from qdialect.support.child_processes import ChildError, answer, tool_output
from qdialect.support.diagnostics import ImportModelError, ParseError, QDialectError, printable
from qdialect.support.heap import paused_collector

SUFFIXES = (".mlir", ".mlirbc", ".tflite", ".onnx", ".pt2")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_device_that_never_ends_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    path.symlink_to("/dev/zero")
    with pytest.raises(QDialectError, match=r"cannot read '.*': it must be a file or a pipe, but is a device"):
        qdialect.read_model(path)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"content"))
    writer.start()
    assert files.read_bytes(pipe) == b"content"
    writer.join()


def test_a_file_larger_than_the_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    size = 1 << 43
    with path.open("wb") as file:
        try:
            file.truncate(size)
        except OSError:
            pytest.skip("the file system has no files of this size")
    with pytest.raises(ImportModelError, match=rf"it must have at most \d+ bytes, the memory limit, but has {size}"):
        qdialect.read_model(path)


@pytest.mark.parametrize("name", ["file/x", "missing/x", "folder", "a\0b"])
def test_files_are_written_all_or_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"old")
    good = tmp_path / "good"
    with pytest.raises(QDialectError, match=f"cannot write '{re.escape(printable(str(tmp_path / name)))}': "):
        files.write_files({good: b"new", tmp_path / "file": b"new", tmp_path / name: b"new"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_link_stays_one_and_a_device_is_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o600)
    (tmp_path / "link").symlink_to("file")
    files.write_files({tmp_path / "link": b"new", Path(os.devnull): b"nothing"})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_a_planted_link_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    monkeypatch.setattr(files.os, "urandom", bytes)
    (tmp_path / ".qdialect.0000000000000000").symlink_to(victim)
    with pytest.raises(QDialectError, match=r"cannot write '.*new': File exists"):
        files.write_files({tmp_path / "new": b"content"})
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "new").exists()


def test_two_writers_of_one_path(tmp_path: Path) -> None:
    path, contents = tmp_path / "out", (b"a" * 300_000, b"b" * 200_000)
    start, errors = threading.Barrier(2), list[BaseException]()

    def write(content: bytes) -> None:
        try:
            for _ in range(20):
                start.wait()
                files.write_files({path: content})
                assert path.read_bytes() in contents
        except BaseException as error:
            errors.append(error)
            start.abort()

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(5, "I/O error"), KeyboardInterrupt()])
def test_files_are_put_back_where_one_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    (tmp_path / "old").write_bytes(b"old")
    replace, calls = Path.replace, list[Path]()

    def fails_once(self: Path, target: Path) -> Path:
        calls.append(target)
        if target.name == "last" and len(calls) == 3:
            raise error
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fails_once)
    with pytest.raises((QDialectError, KeyboardInterrupt)):
        files.write_files({tmp_path / name: b"new" for name in ("old", "fresh", "last")})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"old": b"old"}


# Child processes: what a stranger's folder holds is not run, and what others print is no answer.

FUNCTIONS = """
import os, sys
def talk(content, *arguments):
    print("printed by Python", flush=True)
    os.write(1, b"printed by C")
    return content + " ".join(arguments).encode()
def leave(content):
    print("half an answer", flush=True)
    os._exit(0)
def fail(content):
    raise RuntimeError("no luck")
def end(content):
    os.kill(os.getpid(), 11)
def wait(content):
    import time
    time.sleep(600)
def path(content):
    return "\\n".join(sys.path).encode()
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that a child can import."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "talking.py").write_text(FUNCTIONS)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return "talking"


def test_bytecode_in_a_strangers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = qdialect.parse("func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> { return %x : tensor<2xi8> }")
    (tmp_path / "m.mlirbc").write_bytes(written(module))
    for name in ("numpy", "qdialect", "torch_mlir", "subprocess", "sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", ".", *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "numpy.py"))
    assert str(qdialect.parse(Path("m.mlirbc"))) == str(module)
    assert not (tmp_path / "ran").exists()


def test_printed_text_is_no_answer(functions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(f"{functions}:talk", b"an answer", ["and", "more"], seconds=60) == b"an answerand more"
    monkeypatch.setattr(sys, "path", ["", "relative", *sys.path])
    found = answer(f"{functions}:path", b"", [], seconds=60).decode().split("\n")
    assert all(map(os.path.isabs, found))
    assert [path for path in sys.path if os.path.isabs(path)] == found


@pytest.mark.parametrize(
    ("function", "reason"),
    [("leave", "status 0 and without an answer"), ("fail", "status 1 .*RuntimeError: no luck"), ("end", "status -11")],
)
def test_a_child_without_its_answer(functions: str, function: str, reason: str) -> None:
    with pytest.raises(ChildError, match=reason) as caught:
        answer(f"{functions}:{function}", b"", [], seconds=60)
    assert caught.value.is_crash == (function == "end")


def test_a_child_that_does_not_end(functions: str) -> None:
    with pytest.raises(ChildError, match=r"it did not end in 0 seconds") as caught:
        answer(f"{functions}:wait", b"", [], seconds=0.2)
    assert caught.value.is_crash


def test_python_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(child_processes.sys, "executable", str(tmp_path / "absent"))
    with pytest.raises(ParseError, match=r"bytecode is read in a process of its own, but cannot start Python"):
        qdialect.parse(untrusted_input.BYTECODE_MAGIC)


def test_a_tool_that_fails(tmp_path: Path) -> None:
    with pytest.raises(ChildError, match="No such file or directory"):
        tool_output([str(tmp_path / "absent")], tmp_path)
    with pytest.raises(ChildError, match="the last line"):
        tool_output(["/bin/sh", "-c", "echo first >&2; echo the last line >&2; exit 3"], tmp_path)
    # Whatever it prints, in whatever encoding.
    assert tool_output(["/bin/sh", "-c", r"printf '\377 text'"], tmp_path) == "\ufffd text"


# Python's collector of cyclic garbage stands still while a network is compiled, and no longer.

CLIP = """func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
  %y = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  func.return %y : tensor<4xi8>
}"""


def test_a_compilation_lets_the_collector_go_on() -> None:
    executable = qdialect.compile(qdialect.parse(CLIP), cache=False)
    assert gc.isenabled()
    np.testing.assert_array_equal(np.asarray(executable(np.arange(4, dtype=np.int8))), np.arange(4))
    with pytest.raises(qdialect.QDialectError):
        qdialect.compile("missing.tflite", cache=False)
    assert gc.isenabled()


def test_a_forked_process_collects() -> None:
    with paused_collector():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not gc.isenabled()
    assert gc.isenabled()


# The memory limit: of the machine, of the control groups around the process, and of the process.

GIB = 1 << 30


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def groups(folder: Path, membership: str, files: dict[str, str]) -> list[int]:
    write(folder / "cgroup", membership)
    for name, text in files.items():
        write(folder / "root" / name, text)
    return limits.container_limits(folder / "cgroup", folder / "root")


def test_version_2_counts_every_group_around_the_process(tmp_path: Path) -> None:
    files = {"memory.max": "max\n", "a/memory.max": f"{GIB}\n", "a/b/memory.max": f"{2 * GIB}\n"}
    assert sorted(groups(tmp_path, "0::/a/b\n", files)) == [GIB, 2 * GIB]


def test_the_top_of_the_mount_stands_for_a_group_outside_of_it(tmp_path: Path) -> None:
    assert groups(tmp_path, "0::/machine/of/the/host\n", {"memory.max": f"{GIB}\n"}) == [GIB]
    assert groups(tmp_path, "0::/../beside\n", {"memory.max": f"{GIB}\n"}) == [GIB]


@pytest.mark.parametrize("membership", ["", "nonsense", "0::/", "4:memory:/a"])
def test_without_files_the_container_sets_no_limit(tmp_path: Path, membership: str) -> None:
    assert groups(tmp_path, membership, {}) == []


def test_a_thread_with_little_stack() -> None:
    # In a process of its own: a thread may get the stack of another one that has ended.
    program = """
import threading
import qdialect
text = "func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> { return %x : tensor<2xi8> }"
module = []
def work():
    for call in (lambda: module.append(qdialect.parse(text)), lambda: qdialect.compile(module[-1], cache=False)):
        try:
            call()
            print("done")
        except (qdialect.QDialectError, IndexError) as error:
            print(error)
for kilobytes in (128, 1000, 2048):
    threading.stack_size(kilobytes << 10)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""
    first, _, second, _, *others = output_of(program).splitlines()
    for said, kilobytes in ((first, 128), (second, 1000)):
        assert said.startswith(f"stack of this thread must have at least {1 << 20} bytes, but has {kilobytes << 10}: ")
    assert others == ["done", "done"]


def test_a_process_without_memory() -> None:
    program = """
import resource
import qdialect
qdialect.make_context()
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (30 << 20), -1))
try:
    qdialect.make_context()
except qdialect.QDialectError as error:
    print(error)
"""
    assert output_of(program).startswith("a process must have 50331648 bytes of memory left to compile, but has 3")


def test_threads_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    module = qdialect.parse("func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {\nreturn %x : tensor<2xi8>\n}")
    limits.can_start_threads.cache_clear()
    assert limits.can_start_threads(2)
    limits.can_start_threads.cache_clear()
    with monkeypatch.context() as changed:
        changed.setattr(threading.Thread, "start", refuse)
        assert not limits.can_start_threads(2)
        with several_threads(module.context, 2):
            assert module.context.get_num_threads() == 1
    limits.can_start_threads.cache_clear()


def test_files_of_llvm_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM ends the process where it cannot write, as on a full disk."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    Path("clip.mlir").write_text(
        'func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {\n%0 = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : '
        "(tensor<4xi8>) -> tensor<4xi8>\nreturn %0 : tensor<4xi8>\n}"
    )
    assert compile_command.main(["clip.mlir", "-g", "--emit", "obj", "-o", "clip.o"]) == 0
    assert Path("clip.o").read_bytes().startswith(b"\x7fELF")
