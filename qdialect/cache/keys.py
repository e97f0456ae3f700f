"""The names of entries: a digest of all that the content depends on."""

from __future__ import annotations

from hashlib import file_digest, sha256
from pathlib import Path


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
