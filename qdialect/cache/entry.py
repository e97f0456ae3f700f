"""The form of an entry: one file that is written as a whole, and read only where all of it is as it was written.

Sections come first, each at a multiple of 64 bytes, so that a file whose first section is a shared library is one that
loaders take. Their index is JSON. The last bytes say where it is, and have the SHA-256 of the entry's key and of all
that is before them: an entry under another name is damaged too.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

Sections = Mapping[str, memoryview]
"""Parts of an entry by name."""

_MAGIC = b"qdialect cache 1"
_FOOTER = struct.Struct("<QQ32s16s")
_ALIGNMENT = 64


def packed(key: str, sections: Mapping[str, bytes | memoryview]) -> bytes:
    """The entry `key` as the content of a file."""
    content, index = bytearray(), dict[str, tuple[int, int]]()
    for name, data in sections.items():
        content.extend(bytes(-len(content) % _ALIGNMENT))
        index[name] = len(content), len(data)
        content.extend(data)
    text = json.dumps(index, separators=(",", ":")).encode()
    start = len(content)
    content.extend(text)
    return bytes(content) + _FOOTER.pack(start, len(text), _digest(key, content, start, len(text)), _MAGIC)


def unpacked(key: str, content: bytes) -> Sections | None:
    """The sections of the entry `key`; None for a file that is damaged, truncated, not an entry, or another entry."""
    if len(content) < _FOOTER.size or not content.endswith(_MAGIC):
        return None
    body = memoryview(content)[: -_FOOTER.size]
    start, size, digest, _ = _FOOTER.unpack_from(content, len(body))
    if start + size != len(body) or _digest(key, body, start, size) != digest:
        return None
    index: Mapping[str, Any] = json.loads(bytes(body[start:]))
    return {name: body[at : at + length] for name, (at, length) in index.items()}


def _digest(key: str, body: bytearray | memoryview, start: int, size: int) -> bytes:
    found = sha256(struct.pack("<QQ", start, size) + key.encode())
    found.update(body)
    return found.digest()
