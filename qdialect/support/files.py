"""How files that users name are read and written."""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from qdialect.support.diagnostics import InputError, ParseError, QDialectError
from qdialect.support.limits import memory_limit

_LEAST_FILE = 1 << 26
"""Bytes that LLVM may write of code without large constants; where it cannot, it ends the process."""
_DRAFT_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def path_of(found: object) -> Path:
    """The path that a user gives; raises `InputError` for anything else."""
    if not isinstance(found, str | os.PathLike):
        raise InputError(f"path must be a text or a pathlib.Path, but got {type(found).__name__}")
    return Path(cast("str | os.PathLike[str]", found))


@dataclass(frozen=True)
class ReadFile:
    """A file that was read in addition to a model's."""

    name: str
    """Its path from the folder of the model."""
    path: Path
    identity: tuple[int, ...]
    """A key that changes if the file changes."""

    def is_current(self) -> bool:
        """Whether the file is the one that was read."""
        return _identity(self.path) == self.identity


_READ: ContextVar[list[ReadFile] | None] = ContextVar("read", default=None)


@contextmanager
def recorded_reads() -> Generator[list[ReadFile]]:
    """The files that `record_read` records inside the `with`."""
    read: list[ReadFile] = []
    token = _READ.set(read)
    try:
        yield read
    finally:
        _READ.reset(token)


def record_read(folder: Path, name: str) -> None:
    """Record that the file `name` in the model's `folder` is going to be read for it."""
    read = _READ.get()
    if read is not None:
        path = folder / name
        read.append(ReadFile(name, path, _identity(path)))


def _identity(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def read_bytes(path: Path, error: type[QDialectError] = ParseError) -> bytes:
    """The content of a regular file, a pipe, standard input or the null device.

    Raises `error` for a file that cannot be read, for another device, which may never end, and for a file that is
    larger than the memory of this process.
    """
    try:
        _check(path)
        return path.read_bytes()
    except (OSError, MemoryError, ValueError) as problem:
        raise error(f"cannot read '{path}': {_reason(path, problem)}") from problem


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write files, each as a whole, and none of them where one cannot be written.

    Raises `QDialectError` then. A link stays one; a device or a pipe is written as it is.
    """
    drafts = [_Draft(path, content) for path, content in contents.items()]
    try:
        for draft in drafts:
            draft.write()
        for draft in drafts:
            draft.publish()
    except BaseException:
        for draft in reversed(drafts):
            draft.restore()
        raise
    finally:
        for draft in drafts:
            draft.close()


def write_draft(folder: Path, content: bytes, mode: int = 0o666) -> Path:
    """Write `content` into a file of `folder` that nobody knows, to be renamed; raises `OSError`.

    It is a new one: neither a file nor a link that is there already is written to.
    """
    draft = folder / f".qdialect.{os.urandom(8).hex()}"
    try:
        with os.fdopen(os.open(draft, _DRAFT_FLAGS, mode), "wb") as file:
            file.write(content)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    return draft


class _Draft:
    """The content of a file under another name in the same folder."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path, self._content = path, content
        self._draft: Path | None = None
        self._previous: Path | None = None
        self._is_there = self._is_published = False
        try:
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            self._is_special = path.exists() and not path.is_file()
            self._target = path.resolve()
        except (OSError, ValueError) as problem:
            raise self._error(problem) from problem

    def write(self) -> None:
        """Write the draft, with the rights of the file that it replaces, which gets a second name."""
        if self._is_special:
            return
        try:
            self._draft = write_draft(self._target.parent, self._content)
            self._is_there = self._target.exists()
            if self._is_there:
                self._draft.chmod(stat.S_IMODE(self._target.stat().st_mode))
                self._previous = _linked(self._target)
        except (OSError, ValueError) as problem:
            raise self._error(problem) from problem

    def publish(self) -> None:
        """Put the draft where it belongs."""
        try:
            if self._draft is None:
                self._path.write_bytes(self._content)
                return
            self._draft.replace(self._target)
            self._draft, self._is_published = None, True
        except (OSError, ValueError) as problem:
            raise self._error(problem) from problem

    def restore(self) -> None:
        """Put back what was there, as far as it can be."""
        with suppress(OSError):
            if self._is_published and self._previous:
                self._previous.replace(self._target)
                self._previous = None
            elif self._is_published and not self._is_there:
                self._target.unlink()

    def close(self) -> None:
        """Remove the temporary files next to the file."""
        for left in (self._draft, self._previous):
            if left:
                # It may be gone, and perhaps its folder as well.
                with suppress(OSError):
                    left.unlink()

    def _error(self, problem: Exception) -> QDialectError:
        return QDialectError(f"cannot write '{self._path}': {_reason(self._path, problem)}")


def _linked(file: Path) -> Path | None:
    """A second name of a file; None where its file system gives it none."""
    name = file.parent / f".qdialect.{os.urandom(8).hex()}"
    try:
        os.link(file, name)
    except OSError:
        return None
    return name


def is_device(path: Path) -> bool:
    """Whether `path` names something that is there and is neither a file nor a folder; never raises."""
    mode = _mode(path)
    return mode > 0 and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def written_in_memory(write: Callable[[str], object]) -> bytes:
    """The bytes that `write` writes to a path, a file in memory: LLVM ends the process where a disk is full."""
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if 0 <= allowed < _LEAST_FILE:
        raise QDialectError(f"files must have at least {_LEAST_FILE} bytes, but the limit of this process is {allowed}")
    with open(os.memfd_create("written"), "rb") as file:
        write(f"/proc/self/fd/{file.fileno()}")
        return file.read()


def is_same_file(one: Path, other: Path) -> bool:
    """Whether both paths name one file that is there; never raises."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False


def is_regular(path: Path) -> bool:
    """Whether `path` names a regular file; never raises, whatever the path is."""
    return stat.S_ISREG(_mode(path))


def _mode(path: Path) -> int:
    """What a path names; 0 where that is nothing."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def _check(path: Path) -> None:
    found = path.stat()
    if (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)) and not _is_bounded(found):
        raise ValueError("it must be a file or a pipe, but is a device")
    allowed = memory_limit()
    if found.st_size > allowed:
        raise ValueError(f"it must have at most {allowed} bytes, the memory limit, but has {found.st_size}")


def _is_bounded(device: os.stat_result) -> bool:
    """Whether `device` is the null device, or a terminal behind standard input, which a user ends."""
    is_null = device.st_rdev == Path(os.devnull).stat().st_rdev
    return is_null or (os.isatty(0) and device.st_rdev == os.fstat(0).st_rdev)


def _reason(path: Path, problem: Exception) -> str:
    if "\0" in str(path):
        return "a path must not contain a NUL character"
    if isinstance(problem, OSError):
        return problem.strerror or str(problem)
    return str(problem) or "there is not enough memory"
