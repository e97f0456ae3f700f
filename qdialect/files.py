"""How files that users name are read and written."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from qdialect.diagnostics import ParseError, QDialectError
from qdialect.late_dataclass import dataclass
from qdialect.limits import memory_limit


@dataclass(frozen=True)
class ReadFile:
    """A file that was read beside a model."""

    name: str
    """Its path from the folder of the model."""
    path: Path
    identity: tuple[int, ...]
    """What changes where the file does."""

    def is_current(self) -> bool:
        """Whether the file is the one that was read."""
        return _identity(self.path) == self.identity


_READ: ContextVar[list[ReadFile] | None] = ContextVar("read", default=None)


@contextmanager
def noted_files() -> Generator[list[ReadFile]]:
    """What `note_read` is told meanwhile."""
    read: list[ReadFile] = []
    token = _READ.set(read)
    try:
        yield read
    finally:
        _READ.reset(token)


def note_read(folder: Path, name: str) -> None:
    """Say that the file `name` beside a model in `folder` is going to be read for it."""
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
    drafts = [_Draft(path) for path in contents]
    try:
        for draft in drafts:
            draft.write(contents[draft.path])
        for draft in drafts:
            draft.publish(contents[draft.path])
    finally:
        for draft in drafts:
            # A draft that could not be written is not there, and perhaps its folder is not either.
            with suppress(OSError):
                draft.file.unlink()


class _Draft:
    """The content of a file under another name beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            self._is_special = path.exists() and not path.is_file()
            target = path.resolve()
            self.file = target.with_name(f".{target.name}.{os.getpid()}")
        except (OSError, ValueError) as problem:
            raise self._error(problem) from problem

    def write(self, content: bytes) -> None:
        """Write the draft, with the rights of the file that it replaces."""
        if self._is_special:
            return
        try:
            self.file.write_bytes(content)
            if self.path.exists():
                self.file.chmod(stat.S_IMODE(self.path.stat().st_mode))
        except (OSError, ValueError) as problem:
            raise self._error(problem) from problem

    def publish(self, content: bytes) -> None:
        """Put the draft where it belongs."""
        try:
            if self._is_special:
                self.path.write_bytes(content)
            else:
                self.file.replace(self.path.resolve())
        except (OSError, ValueError) as problem:
            raise self._error(problem) from problem

    def _error(self, problem: Exception) -> QDialectError:
        return QDialectError(f"cannot write '{self.path}': {_reason(self.path, problem)}")


def is_device(path: Path) -> bool:
    """Whether `path` names something that is there and is neither a file nor a folder; never raises."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_same_file(one: Path, other: Path) -> bool:
    """Whether both paths name one file that is there; never raises."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False


def is_regular(path: Path) -> bool:
    """Whether `path` names a regular file; never raises, whatever the path is."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


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
