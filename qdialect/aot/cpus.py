"""The versions of a network by names of CPUs, and how a CPU tells which instructions it has.

A version of a network may use what every CPU with its target's instruction sets has, and nothing more: code for one CPU
of a kind must run on all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qdialect import target as targets
from qdialect.target import Target


@dataclass(frozen=True)
class Bit:
    """Where CPUID shows a feature: the leaf, a register and a bit of that, and the subleaf."""

    leaf: int
    register: str
    number: int
    subleaf: int = 0


# Intel SDM volume 2, CPUID; AMD APM volume 3, appendix E. Names are those of LLVM.
BITS: Mapping[str, Bit] = {
    "sse3": Bit(1, "ecx", 0),
    "ssse3": Bit(1, "ecx", 9),
    "fma": Bit(1, "ecx", 12),
    "cx16": Bit(1, "ecx", 13),
    "sse4.1": Bit(1, "ecx", 19),
    "sse4.2": Bit(1, "ecx", 20),
    "movbe": Bit(1, "ecx", 22),
    "popcnt": Bit(1, "ecx", 23),
    "avx": Bit(1, "ecx", 28),
    "f16c": Bit(1, "ecx", 29),
    "bmi": Bit(7, "ebx", 3),
    "avx2": Bit(7, "ebx", 5),
    "bmi2": Bit(7, "ebx", 8),
    "avx512f": Bit(7, "ebx", 16),
    "avx512dq": Bit(7, "ebx", 17),
    "avx512cd": Bit(7, "ebx", 28),
    "avx512bw": Bit(7, "ebx", 30),
    "avx512vl": Bit(7, "ebx", 31),
    "avx512vbmi": Bit(7, "ecx", 1),
    "avx512vnni": Bit(7, "ecx", 11),
    "amx-tile": Bit(7, "edx", 24),
    "amx-int8": Bit(7, "edx", 25),
    "avxvnni": Bit(7, "eax", 4, 1),
    "avxvnniint8": Bit(7, "edx", 4, 1),
    "sahf": Bit(0x80000001, "ecx", 0),
    "lzcnt": Bit(0x80000001, "ecx", 5),
}

_YMM_STATE = 0x6
"""Of XCR0: the operating system saves XMM and YMM registers."""
_ZMM_STATE = 0xE6
"""The same, and mask and ZMM registers."""
_TILE_STATE = 0x60000
"""Matrix tiles and their configuration."""

_NO_SYMBOL = re.compile(r"[^\w.]", re.ASCII)


def state_of(target: Target) -> int:
    """The bits of XCR0 that code for `target` needs: registers that the operating system saves."""
    features = target.code_features
    tiles = _TILE_STATE if "amx-tile" in features else 0
    if "avx512f" in features:
        return _ZMM_STATE | tiles
    return (_YMM_STATE if "avx" in features else 0) | tiles


def target_of_cpu(name: str) -> Target:
    """The kind of code for a CPU's name, with features as `resolve` takes them; ``host`` is this machine.

    It has the tiles of the core that ``tune=`` among the features names, and else of the kind's typical CPU.  A CPU
    that lacks what code of its kind may use gets code of its own.  Raises `CompileError` for an unknown name.
    """
    found = targets.resolve(name)
    if found.is_portable or found == targets.host() or not found.kind.code_features <= found.code_features:
        return found
    tuned = [attribute for attribute in name.split(",") if attribute.startswith(targets.TUNE)]
    return targets.resolve(",".join([found.kind.name, *tuned[-1:]]))


def versions_of(names: Sequence[str]) -> tuple[Target, ...]:
    """The targets of CPUs' names, each once, those with the most features first."""
    found = dict.fromkeys(target_of_cpu(name) for name in names)
    return tuple(sorted(found, key=lambda target: -len(target.code_features)))


def symbol_part(target: Target) -> str:
    """The name of a version in those of its functions."""
    return _NO_SYMBOL.sub("_", target.name.replace(",+", "_with_").replace(",-", "_without_"))
