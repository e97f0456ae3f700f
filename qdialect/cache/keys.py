"""The names of entries: a digest of all that the content depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Literal

from qdialect.late_dataclass import dataclass


@dataclass(frozen=True)
class Request:
    """What `qdialect.compile` is asked for beside the model."""

    target: str
    threads: int
    batch: int = 1
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    profile: str = ""
    signature: str = ""
    trust: bool = False
    fallback: Literal["framework", "none"] | None = None
    tune: bool = False

    def text(self) -> str:
        """All of it; of a value of another type, which an error awaits, its text."""
        dims = sorted((repr(name), repr(extent)) for name, extent in dict(self.dims).items())
        # By default it is the framework, with a warning: of a network that is kept it runs nothing.
        fallback = self.fallback or "framework"
        others = (self.target, self.threads, self.batch, self.profile, self.signature, self.trust, fallback, self.tune)
        return repr((*others, dims))


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
