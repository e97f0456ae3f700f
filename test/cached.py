"""The cache of a test: a folder of its own, and what a test needs to know of it."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tflite_graphs import small_network

from qdialect.cache.executable import CachedExecutable
from qdialect.cache.store import Store, open_store
from qdialect.runtime import Executable
from qdialect.runtime.shaped import ShapedExecutable

CLIP = """
func.func @main(%x: tensor<2x3xi8> {qnn.name = "image", qnn.scale = 0.5 : f64}) -> tensor<2x3xi8> {
  %0 = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %0 : tensor<2x3xi8>
}
"""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty cache, which `qdialect.compile` uses."""
    monkeypatch.setenv("QDIALECT_CACHE", str(tmp_path / "cache"))
    found = open_store()
    assert found is not None
    return found


def names(store: Store) -> set[str]:
    """The entries."""
    return {file.path.name for file in store.files()}


def entries(store: Store, section: str) -> list[Path]:
    """The files of the entries that have this section."""
    found = [(file.path, store.get(file.path.name)) for file in store.files()]
    return [path for path, sections in found if sections and section in sections]


def is_cached(executable: Executable) -> bool:
    """Whether its code is that of an entry."""
    first: Any = vars(executable)["_first"] if isinstance(executable, ShapedExecutable) else executable
    return isinstance(first, CachedExecutable)


@contextmanager
def nothing_is_compiled() -> Generator[None]:
    """Fails where LLVM is asked for machine code meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("qdialect.aot.object_file", "qdialect.runtime.compiler"):
            patch.setattr(f"{module}.ExecutionEngine", _refuse)
        yield


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("something was compiled that was compiled before")


def replaced(path: Path, content: bytes) -> None:
    """Put another file in the place of an entry: one that is mapped must not change."""
    draft = path.with_name(".draft")
    draft.write_bytes(content)
    os.chmod(draft, 0o600)
    draft.replace(path)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "small.tflite"
    path.write_bytes(small_network())
    return path


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "clip.mlir"
    path.write_text(CLIP)
    return path
