"""The dependencies of compiled code other than its model: versions of packages, the CPU, and settings of the process.

Everything is told by files and their times, without importing what a hit does not need. The project's own modules count
one by one, because a checkout changes without a new version.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import file_digest, sha256
from importlib.util import find_spec
from pathlib import Path

from qdialect.cache import store
from qdialect.support import log
from qdialect.support.late_imports import IMPORTED
from qdialect.support.registry import foreign_modules
from qdialect.targets.cpus import may_use_tiles

_CODE = ("torch_mlir", "numpy")
"""Packages that every result depends on."""
_FRONT_ENDS = {".tflite": ("tflite", "flatbuffers"), ".onnx": ("onnx",), ".pt2": ("torch", "torchao")}
"""Packages that read a kind of model file."""
_LIBRARY = (".so", "__init__.py")
_CPU = ("vendor_id", "cpu family", "model", "stepping", "flags")
_CPU_INFO = Path("/proc/cpuinfo")
_TILES = " amx_tile"
_OWN_SETTING = "QDIALECT_"
_NOT_IN_CODE = (store.VARIABLE, store.SIZE_VARIABLE, log.VARIABLE)
_FOREIGN_SETTINGS = ("NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES")


def fingerprint(suffix: str = "") -> bytes | None:
    """A digest of everything but the model that a result depends on; `suffix` is that of a model file.

    None where that cannot be known: a module from outside of the project has changed how ops are compiled, a file of
    the project has changed since it may have been imported, or the system does not tell which CPU this is.
    """
    processor, own = cpu(), own_files()
    level, reason = unknown(processor, own)
    if processor is None or reason:
        log.once(level, f"nothing is taken from the cache of compiled networks or kept there: {reason}")
        return None
    modules = [f"{name} {size} {time}" for name, size, time in own]
    parts = [*modules, packages(_FRONT_ENDS.get(suffix, ())), processor, *_settings()]
    return sha256("\0".join(parts).encode(errors="surrogateescape")).digest()


def unknown(processor: str | None, own: Sequence[tuple[str, int, int]]) -> tuple[int, str]:
    """Why it is not known what a result depends on, and how much that matters; empty where it is known."""
    if processor is None:
        return logging.INFO, "the system does not say which CPU this is"
    if foreign := foreign_modules():
        return logging.INFO, f"{', '.join(sorted(foreign))} may have changed how ops are compiled"
    late = [name for name, _, time in own if time > IMPORTED * 1e9]
    said = "of the package was changed after its import, or has a time in the future"
    return logging.WARNING, f"file '{late[0]}' {said}" if late else ""


def own_files() -> list[tuple[str, int, int]]:
    """The modules of the project, each with its size and when it was changed, in nanoseconds since the epoch."""
    return list(_tree(Path(__file__).parents[1], ""))


@cache
def packages(more: Sequence[str]) -> str:
    """The Python and the packages that compile, and `more`, with their versions."""
    return "\n".join([sys.version, *(line for name in (*_CODE, *more) for line in _package(name))])


def _package(name: str) -> Iterator[str]:
    """A package by its version, as pip has it, and by the sizes and times of its first module and its libraries."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        yield f"{name} is absent"
        return
    here = Path(spec.submodule_search_locations[0])
    for found in sorted(os.listdir(here.parent)):
        if found.endswith(".dist-info") and found.startswith(f"{name}-"):
            yield found
    for folder_ in (here, here / "_mlir_libs"):
        if folder_.is_dir():
            with os.scandir(folder_) as files:
                yield from sorted(_file(file.stat(), file.name) for file in files if file.name.endswith(_LIBRARY))


def _tree(path: Path, name: str) -> Iterator[tuple[str, int, int]]:
    """All Python files below a folder."""
    with os.scandir(path) as files:
        for file in sorted(files, key=lambda one: one.name):
            if file.is_dir() and file.name != "__pycache__":
                yield from _tree(Path(file.path), f"{name}{file.name}/")
            elif file.name.endswith(".py"):
                status = file.stat()
                yield f"{name}{file.name}", status.st_size, status.st_mtime_ns


def _file(status: os.stat_result, name: str) -> str:
    return f"{name} {status.st_size} {status.st_mtime_ns}"


@cache
def cpu() -> str | None:
    """The kind of the first processor and its instruction sets; None if the system does not tell.

    Matrix tiles count where Linux permits them. It is asked here, since code that is found is called without having
    been compiled in this process.
    """
    lines: list[str] = []
    try:
        with _CPU_INFO.open(encoding="utf-8", errors="replace") as text:
            for line in text:
                if not line.strip():
                    break
                lines.append(line)
    except OSError:
        return None
    known = [line.partition(":") for line in lines]
    found = [f"{key.strip()}:{value.strip()}" for key, _, value in known if key.strip() in _CPU]
    if len(found) != len(_CPU):
        return None
    text = "\n".join(found)
    return f"{text}\nmay use tiles: {may_use_tiles()}" if _TILES in text else text


def _settings() -> list[str]:
    """Environment variables that could change a result."""
    own = [name for name in os.environ if name.startswith(_OWN_SETTING) and name not in _NOT_IN_CODE]
    return [f"{name}={os.environ[name]}" for name in (*sorted(own), *_FOREIGN_SETTINGS) if name in os.environ]


# The names of entries: a digest of all that the content depends on.


def key(kind: str, *parts: bytes | str) -> str:
    """The name of an entry of a `kind` that depends on `parts`."""
    found = sha256(kind.encode())
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()


def digest_of_file(path: Path) -> bytes:
    """The SHA-256 of a file's content; raises `OSError` where it cannot be read."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").digest()
