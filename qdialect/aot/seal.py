"""A checksum at the end of a library: a file that was damaged on its way is told before anything of it runs.

Loaders and linkers do not read what stands after the sections. A library that was stripped or linked by other tools
lacks the checksum, and is loaded as it is: it guards against damage, not against an author.
"""

from __future__ import annotations

import struct
from pathlib import Path
from zlib import crc32

_MAGIC = b"qdialect crc-32 "
_SEAL = struct.Struct("<Q16s")
_CHUNK = 1 << 20


def sealed(content: bytes) -> bytes:
    """`content` with its checksum."""
    return content + _SEAL.pack(crc32(content), _MAGIC)


def is_damaged(path: Path) -> bool:
    """Whether the file at `path` has a checksum that is not its own; raises `OSError` where it cannot be read."""
    size = path.stat().st_size - _SEAL.size
    if size < 0:
        return False
    with path.open("rb") as file:
        file.seek(size)
        checksum, magic = _SEAL.unpack(file.read(_SEAL.size))
        return magic == _MAGIC and _checksum(path, size) != checksum


def _checksum(path: Path, size: int) -> int:
    found = 0
    with path.open("rb") as file:
        while size and (part := file.read(min(size, _CHUNK))):
            found = crc32(part, found)
            size -= len(part)
    return found
