"""What the CPU can do: detected, or named on a command line."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from pathlib import Path

from qdialect.diagnostics import CompileError

# Kernel names of the features the x86 step needs, as LLVM spells them.
_LINUX_NAMES = {
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512vl": "avx512vl",
    "avx512_vnni": "avx512vnni",
    "avx512vbmi": "avx512vbmi",
}
_VNNI = frozenset({"avx512f", "avx512bw", "avx512vl", "avx512vnni"})
_VBMI = _VNNI | {"avx512vbmi"}


@dataclass(frozen=True)
class Target:
    """A CPU by the instruction sets that the lowering chooses between."""

    name: str
    features: frozenset[str]
    cpu: str = "x86-64"
    """A CPU of this kind, as LLVM calls it: whose timing code is made for where no CPU is at hand."""

    @property
    def has_vnni(self) -> bool:
        """Whether `vpdpbusd` and what goes with it can be used."""
        return self.features >= _VNNI

    @property
    def has_vbmi(self) -> bool:
        """Whether `vpermi2b` can be used."""
        return self.features >= _VBMI


GENERIC = Target("generic", frozenset())
"""No intrinsics: vector code that LLVM makes fit."""

TARGETS = {
    "generic": GENERIC,
    "avx512vnni": Target("avx512vnni", _VNNI, "cascadelake"),
    "avx512vbmi": Target("avx512vbmi", _VBMI, "znver4"),
}
"""Targets by name; ``host`` is detected."""


def host() -> Target:
    """The best target that this machine's CPU has."""
    found = host_features()
    return max(TARGETS.values(), key=lambda target: len(target.features) if target.features <= found else -1)


def host_features() -> frozenset[str]:
    """The features of this machine's CPU, of those that matter here."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return frozenset()
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    names = flags[1].split() if flags else []
    return frozenset(_LINUX_NAMES[name] for name in names if name in _LINUX_NAMES)


def resolve(name: str | Target) -> Target:
    """The target of a name; ``host`` is this machine. Raises `CompileError` for an unknown name."""
    if isinstance(name, Target):
        return name
    if name == "host":
        return host()
    if name not in TARGETS:
        raise CompileError(f"target must be one of host, {', '.join(TARGETS)}, but got '{name}'")
    return TARGETS[name]
