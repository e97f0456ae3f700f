"""A checksum at the end of a library: a file that was damaged on its way is told before anything of it runs.

Loaders and linkers do not read what stands after the sections. A library that was stripped or linked by other tools
lacks the checksum, and is loaded as it is: it guards against damage, not against an author.
"""

from __future__ import annotations

import struct
from zlib import crc32

_MAGIC = b"qdialect crc-32 "
_SEAL = struct.Struct("<Q16s")


def sealed(content: bytes) -> bytes:
    """`content` with its checksum."""
    return content + _SEAL.pack(crc32(content), _MAGIC)


def is_damaged(content: bytes) -> bool:
    """Whether the content of a file has a checksum that is not its own."""
    size = len(content) - _SEAL.size
    if size < 0:
        return False
    checksum, magic = _SEAL.unpack_from(content, size)
    return magic == _MAGIC and checksum != crc32(memoryview(content)[:size])
