"""What was measured of kernels, in the cache: an entry for each kernel, target, machine and version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qdialect.cache.fingerprint import fingerprint
from qdialect.cache.keys import key
from qdialect.cache.store import Store

_KIND, _SECTION = "tuning", "measured"


@dataclass(frozen=True)
class KeptTuning:
    """A decision: the seconds of each variant, what the cost model chose first, the one that was taken, its gain."""

    seconds: Mapping[str, float]
    chosen: str
    gain: float


@dataclass(frozen=True)
class Tunings:
    """The decisions of a store for one target."""

    store: Store
    target: str
    mark: bytes
    """What they depend on beside kernel and target, as `fingerprint` gives it."""

    def get(self, kernel: str) -> KeptTuning | None:
        """What was measured of `kernel`; None where that is not there, or is not what `put` wrote."""
        sections = self.store.get(self._key(kernel))
        if not sections or _SECTION not in sections:
            return None
        try:
            return _read(json.loads(bytes(sections[_SECTION])))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def put(self, kernel: str, found: KeptTuning) -> None:
        """Keep what was measured of `kernel`."""
        tree = {"seconds": dict(found.seconds), "chosen": found.chosen, "gain": found.gain}
        self.store.put(self._key(kernel), {_SECTION: json.dumps(tree).encode()})

    def _key(self, kernel: str) -> str:
        return key(_KIND, kernel, self.target, self.mark)


def tunings_of(store: Store | None, target: str) -> Tunings | None:
    """The decisions for `target`; None without a store, and where it is not known what they would depend on."""
    mark = fingerprint() if store is not None else None
    return Tunings(store, target, mark) if store is not None and mark is not None else None


def _read(tree: Mapping[str, Any]) -> KeptTuning:
    seconds = {str(name): float(value) for name, value in tree["seconds"].items()}
    chosen = str(tree["chosen"])
    if chosen not in seconds:
        raise ValueError(f"chosen must be one of {', '.join(seconds)}, but got '{chosen}'")
    return KeptTuning(seconds, chosen, float(tree["gain"]))
