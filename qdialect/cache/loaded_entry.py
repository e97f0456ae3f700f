"""An executable from an entry, where the entry is as it was written."""

from __future__ import annotations

from qdialect.cache.executable import CachedExecutable
from qdialect.cache.loading import UnloadableError
from qdialect.cache.store import Store
from qdialect.diagnostics import LoadError


def load_network(store: Store, key: str, workspaces: int | None = None) -> CachedExecutable | None:
    """The network `key`, with so many workspaces; None where it is not there or cannot be loaded.

    Raises `CompileError` where there is no memory for it, or no OpenMP runtime.
    """
    sections = store.get(key)
    if sections is None:
        return None
    try:
        return CachedExecutable(key, store.path / key, sections, workspaces)
    except (UnloadableError, LoadError, KeyError):
        return None
