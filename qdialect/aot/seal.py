"""A checksum at the end of a library: a file that was damaged on its way is told before anything of it runs.

Loaders and linkers do not read what stands after the sections. A library that was stripped or linked by other tools
lacks the checksum, and is loaded as it is: it guards against damage, not against an author.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from pathlib import Path

_MAGIC = b"qdialect sha-256"
_SEAL = struct.Struct("<32s16s")
_CHUNK = 1 << 20


def sealed(content: bytes) -> bytes:
    """`content` with its checksum."""
    return content + _SEAL.pack(sha256(content).digest(), _MAGIC)


def is_damaged(path: Path) -> bool:
    """Whether the file at `path` has a checksum that is not its own; raises `OSError` where it cannot be read."""
    size = path.stat().st_size - _SEAL.size
    if size < 0:
        return False
    with path.open("rb") as file:
        file.seek(size)
        digest, magic = _SEAL.unpack(file.read(_SEAL.size))
        return magic == _MAGIC and _digest(path, size) != digest


def _digest(path: Path, size: int) -> bytes:
    found = sha256()
    with path.open("rb") as file:
        while size and (part := file.read(min(size, _CHUNK))):
            found.update(part)
            size -= len(part)
    return found.digest()
