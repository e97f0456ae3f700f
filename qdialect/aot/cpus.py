"""CPUs by their names, and how a CPU tells which instructions it has.

A version of a network may use what every CPU with its target's instruction sets has, and nothing more: code for one CPU
of a kind must run on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qdialect import target as targets
from qdialect.diagnostics import CompileError
from qdialect.suggestions import did_you_mean
from qdialect.target import GENERIC, TARGETS, Target


@dataclass(frozen=True)
class Bit:
    """Where CPUID shows a feature: the leaf, of its subleaf 0, a register and a bit of that."""

    leaf: int
    register: str
    number: int


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
    "sahf": Bit(0x80000001, "ecx", 0),
    "lzcnt": Bit(0x80000001, "ecx", 5),
}

_V2 = frozenset({"sse3", "ssse3", "cx16", "sse4.1", "sse4.2", "popcnt", "sahf"})
_V3 = _V2 | {"fma", "movbe", "avx", "f16c", "bmi", "avx2", "bmi2", "lzcnt"}
_V4 = _V3 | {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"}

_YMM_STATE = 0x6
"""Of XCR0: the operating system saves XMM and YMM registers."""
_ZMM_STATE = 0xE6
"""The same, and mask and ZMM registers."""

# Each CPU gets the best code that there is for it.
_KINDS: Mapping[Target, Sequence[str]] = {
    GENERIC: (
        *("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "nehalem", "sandybridge", "ivybridge", "haswell"),
        *("broadwell", "skylake", "skylake-avx512", "alderlake", "raptorlake", "meteorlake", "arrowlake", "lunarlake"),
        *("znver1", "znver2", "znver3"),
    ),
    TARGETS["avx512vnni"]: ("cascadelake", "cooperlake"),
    TARGETS["avx512vbmi"]: (
        *("icelake-client", "icelake-server", "tigerlake", "rocketlake", "sapphirerapids", "emeraldrapids"),
        *("graniterapids", "znver4", "znver5"),
    ),
}

CPUS: Mapping[str, Target] = {
    **TARGETS,
    **{name: target for target, names in _KINDS.items() for name in names},
}
"""The target of each CPU or kind of CPUs; ``host`` is detected."""


def features_of(target: Target) -> frozenset[str]:
    """All features that code for `target` may use beside those of every x86-64 CPU."""
    # Every CPU with VNNI on 512 bits has all of x86-64-v4.
    return target.features | _V4 if target.features else frozenset()


def state_of(target: Target) -> int:
    """The bits of XCR0 that code for `target` needs: registers that the operating system saves."""
    features = features_of(target)
    if "avx512f" in features:
        return _ZMM_STATE
    return _YMM_STATE if "avx" in features else 0


def target_of_cpu(name: str) -> Target:
    """The target of a CPU's name; ``host`` is this machine. Raises `CompileError` for an unknown name."""
    if name == "host":
        return targets.host()
    if name not in CPUS:
        hint = did_you_mean(name, CPUS)
        raise CompileError(f"CPU must be one of host, {', '.join(CPUS)}, but got '{name}'{hint}")
    return CPUS[name]


def versions_of(names: Sequence[str]) -> tuple[Target, ...]:
    """The targets of CPUs' names, each once, those with the most features first."""
    found = dict.fromkeys(target_of_cpu(name) for name in names)
    return tuple(sorted(found, key=lambda target: -len(target.features)))
