"""Files that users name: what is read, and what is refused before it is."""

import os
import re
import threading
from pathlib import Path

import pytest

import qdialect
from qdialect.support import files
from qdialect.support.diagnostics import ImportModelError, ParseError, QDialectError, printable

SUFFIXES = (".mlir", ".mlirbc", ".tflite", ".onnx", ".pt2")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_device_that_never_ends_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    path.symlink_to("/dev/zero")
    with pytest.raises(QDialectError, match=r"cannot read '.*': it must be a file or a pipe, but is a device"):
        qdialect.read_model(path)


def test_the_null_device_is_empty() -> None:
    assert files.read_bytes(Path(os.devnull)) == b""


@pytest.mark.parametrize("name", ["absent", "x" * 5000, "a\0b", "model.onnx/x", "circle/x", "", "pipe"])
def test_what_is_no_regular_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    assert files.is_regular(tmp_path / "model.onnx")
    assert not files.is_regular(tmp_path / name)


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


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_path_with_nul_is_named_as_such(suffix: str) -> None:
    path = f"a\0b{suffix}"
    with pytest.raises(QDialectError, match=r"cannot read 'a\\x00b\..*': a path must not contain a NUL character"):
        qdialect.read_model(path)


@pytest.mark.parametrize("path", ["a\0b.mlir", Path("a\0b.mlir")])
def test_parse_names_nul_in_a_path(path: str | Path) -> None:
    with pytest.raises(ParseError, match="a path must not contain a NUL character"):
        qdialect.parse(path)


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


def test_the_longest_name(tmp_path: Path) -> None:
    name = tmp_path / ("n" * 255)
    files.write_files({name: b"content"})
    assert name.read_bytes() == b"content"
    assert list(tmp_path.iterdir()) == [name]


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
