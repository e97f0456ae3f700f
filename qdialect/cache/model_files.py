"""Which network a model file gives: found by the bytes of the file, before anything is imported that reads it.

Constants of an .onnx model may lie in other files. Which these are is known when the model was read once: the entry of
the model then names them, and the network is found by their bytes too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdialect.cache.executable import CachedExecutable, load_network
from qdialect.cache.fingerprint import digest_of_file, fingerprint, key
from qdialect.cache.store import Sections, Store
from qdialect.runtime.base import Executable
from qdialect.runtime.states import with_states
from qdialect.support.files import ReadFile, is_regular
from qdialect.support.limits import memory_limit
from qdialect.support.options import CompileOptions

_KIND, _WITH_FILES = "model", "model with files"
_SECTION = "answer"
_FILES, _NETWORK, _OPEN, _FLOAT = "files", "network", "open", "float32"

OpenShapes = Mapping[str, Sequence[int | str]]


@dataclass(frozen=True)
class FoundNetwork:
    """The network of a model file, and the shapes of its inputs where they leave extents open."""

    executable: Executable
    open_shapes: OpenShapes


@dataclass(frozen=True)
class ModelKey:
    """A model file as it is now, and what it is compiled for."""

    path: Path
    digest: bytes
    name: str
    """The name of its entry."""

    def is_current(self) -> bool:
        """Whether the file has not changed."""
        try:
            return digest_of_file(self.path) == self.digest
        except OSError:
            return False


def model_key(path: Path, options: CompileOptions) -> ModelKey | None:
    """The key of a model; None for what is no regular file, and where it is not known what a result depends on.

    So it is of an archive that PyTorch loads: that can run any code.
    """
    if options.trust or not is_regular(path) or path.stat().st_size > memory_limit():
        return None
    mark = fingerprint(path.suffix)
    try:
        digest = digest_of_file(path)
    except OSError:
        return None
    return None if mark is None else ModelKey(path, digest, key(_KIND, path.suffix, digest, options.text(), mark))


def find(store: Store, model: ModelKey, workspaces: int | None = None) -> FoundNetwork | None:
    """The network that the model gave before; None where it is not there as it was written."""
    answer = _answer(store.get(model.name))
    if _FILES in answer:
        name = _key_with_files(model, answer[_FILES])
        answer = _answer(store.get(name) if name else None)
    if _NETWORK not in answer:
        return None
    executable = load_network(store, answer[_NETWORK], workspaces)
    if executable is None:
        return None
    found = with_states(executable)
    found.is_float32 = answer[_FLOAT]
    return FoundNetwork(found, answer[_OPEN])


def keep(
    store: Store, model: ModelKey, network: CachedExecutable, open_shapes: OpenShapes, read: Sequence[ReadFile]
) -> None:
    """Record that `model` gives `network`; `read` are the other files that were read for it.

    Nothing is recorded where one of the files has changed since.
    """
    names = list(dict.fromkeys(file.name for file in read))
    name: str | None = model.name
    if names:
        name = _key_with_files(model, names)
        store.put(model.name, _sections({_FILES: names}))
    if name and model.is_current() and all(file.is_current() for file in read):
        shapes = {input_: list(shape) for input_, shape in open_shapes.items()}
        store.put(name, _sections({_NETWORK: network.key, _OPEN: shapes, _FLOAT: network.is_float32}))


def _key_with_files(model: ModelKey, names: Sequence[str]) -> str | None:
    """The name of the entry for the current content of the files `names`, which belong to the model."""
    try:
        digests = [digest_of_file(model.path.parent / name) for name in names]
    except OSError:
        return None
    return key(_WITH_FILES, model.name, *names, *digests)


def _sections(answer: Mapping[str, object]) -> dict[str, bytes]:
    return {_SECTION: json.dumps(answer).encode()}


def _answer(sections: Sections | None) -> Mapping[str, Any]:
    return json.loads(bytes(sections[_SECTION])) if sections else {}
