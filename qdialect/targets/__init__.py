"""Targets of compilation: a CPU by LLVM's name, its features, and the kind of code that these allow.

A target is named as LLVM's tools name it: a CPU, then features that it has more or less, as in ``haswell``,
``x86-64-v3`` or ``haswell,+avxvnni,-fma``.  Its kind is the first of these whose features it has:

  amxint8     products of tiles of bytes, and what avx512bf16 has
  avx512bf16  dot products of bfloat16 numbers, and what avx512vbmi has
  avx512vbmi  dot products of bytes in 512 bits, tables by byte permutes
  avx512vnni  dot products of bytes in 512 bits
  avxvnniint8 dot products of bytes in 256 bits, of any signs
  avxvnni     dot products of bytes in 256 bits
  avx512bw    dot products of words in 512 bits
  avx2        dot products of words in 256 bits
  sse4.1      dot products of words in 128 bits
  x86-64      the same with what every x86-64 CPU has

``generic`` is vector code without an instruction of any CPU, which LLVM makes fit.  The kinds are targets themselves.

``tune=CPU`` among the features, as in ``avx512vbmi,tune=znver5``, sets the core that tiles are chosen for; what code
may use stays the same.  ``host``, or ``native``, is the best kind whose features this machine has, with the tiles of
its own core.

``portable`` among the features, as in ``avx2,portable``, asks for the code of a target with plain vector ops in place
of its instructions: slow, and the same bits on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from qdialect.support.diagnostics import CompileError, did_you_mean
from qdialect.targets.cpus import BASELINE, CPUS, NEEDS, UNUSED, V3, V4, WITHOUT_64_BIT, host_cpu, with_needed, without
from qdialect.targets.cpus import host_features as host_features
from qdialect.targets.machine import MACHINES, Machine, machine_of

_BW = frozenset({"avx512f", "avx512bw", "avx512vl"})
_VNNI = _BW | {"avx512vnni"}
_VBMI = _VNNI | {"avx512vbmi"}
_BF16 = _VBMI | {"avx512bf16"}
_AMX = _BF16 | {"amx-tile", "amx-int8"}
_GENERIC = "generic"
_HOST = ("host", "native")
"""This machine; the second is what compilers call it."""
_PORTABLE = "portable"
TUNE = "tune="
"""Before the CPU whose core tiles are chosen for, among a target's features."""


@dataclass(frozen=True)
class Target:
    """A CPU by the instruction sets that the lowering chooses between."""

    name: str
    features: frozenset[str]
    cpu: str = "x86-64"
    """A CPU of this kind, as LLVM calls it: whose timing code is made for where no CPU is at hand."""
    is_portable: bool = False
    """Whether vector ops stand for its instructions, so that every machine runs its code."""

    @property
    def has_vnni(self) -> bool:
        """Whether `vpdpbusd` on 512 bits and what goes with it can be used."""
        return self.features >= _VNNI

    @property
    def has_vbmi(self) -> bool:
        """Whether `vpermi2b` can be used."""
        return self.features >= _VBMI

    @property
    def is_generic(self) -> bool:
        """Whether no instruction of a CPU is asked for."""
        return self.name == _GENERIC

    @cached_property
    def kind(self) -> Target:
        """The target whose code this one gets: the best of `TARGETS` whose features it has."""
        return self if self.is_generic else kind_of(self.features)

    @property
    def code_features(self) -> frozenset[str]:
        """All features that code may use in addition to those of every x86-64 CPU."""
        return frozenset() if self.is_portable else self.cpu_features

    @property
    def cpu_features(self) -> frozenset[str]:
        """All features of the CPU in addition to those of every x86-64 CPU."""
        # Kinds name only what tells them apart.
        return with_needed(self.features) | _LEVELS[self.name] if self.name in _LEVELS else self.features

    @property
    def machine(self) -> Machine:
        """The core that tiles are chosen for, with no wider and no more registers than the kind of code uses.

        A kind of code takes nothing for fast that is slow on another core of this kind.
        """
        found = machine_of(self.cpu, self.features)
        if self.kind is self:
            return replace(found, scales_to_zero=False)
        own = self.kind.machine
        return found.narrowed(own.vector_bits, own.vector_registers)


GENERIC = Target(_GENERIC, frozenset())
"""No intrinsics: vector code that LLVM makes fit."""

TARGETS: dict[str, Target] = {
    "generic": GENERIC,
    "avx512vnni": Target("avx512vnni", _VNNI, "cascadelake"),
    "avx512vbmi": Target("avx512vbmi", _VBMI, "znver4"),
    "avx512bf16": Target("avx512bf16", _BF16, "znver4"),
    "amxint8": Target("amxint8", _AMX, "sapphirerapids"),
    "avx512bw": Target("avx512bw", _BW, "skylake-avx512"),
    "avxvnniint8": Target("avxvnniint8", frozenset({"avx2", "avxvnni", "avxvnniint8"}), "sierraforest"),
    "avxvnni": Target("avxvnni", frozenset({"avx2", "avxvnni"}), "alderlake"),
    "avx2": Target("avx2", frozenset({"avx2"}), "skylake"),
    "sse4.1": Target("sse4.1", frozenset({"sse4.1"}), "nehalem"),
    "x86-64": Target("x86-64", frozenset()),
}
"""The kinds of code by name; ``host`` is detected."""

_ORDER = (
    *("amxint8", "avx512bf16", "avx512vbmi", "avx512vnni", "avxvnniint8", "avxvnni"),
    *("avx512bw", "avx2", "sse4.1", "x86-64"),
)
# Every CPU with the features of a kind has these.
_LEVELS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("amxint8", "avx512bf16", "avx512vbmi", "avx512vnni", "avx512bw"), V4),
    **dict.fromkeys(("avxvnniint8", "avxvnni", "avx2"), V3),
    "sse4.1": CPUS["penryn"],
    **dict.fromkeys(("generic", "x86-64"), frozenset()),
}


def kind_of(features: frozenset[str]) -> Target:
    """The best kind of code for a CPU with `features`."""
    return next(TARGETS[name] for name in _ORDER if TARGETS[name].features <= features)


def host() -> Target:
    """The best kind of code that this machine's CPU has, with the tiles of its own core where that is known."""
    found = host_features()
    if not found:
        return GENERIC
    kind, cpu = kind_of(found), host_cpu(found)
    if cpu is None or cpu not in MACHINES or MACHINES[cpu] == kind.machine:
        return kind
    # Also where a virtual machine hides what its CPU has: the core is the same.
    return _tuned_for(kind, cpu)


def named(cpu: str, attributes: str = "") -> Target:
    """The target of a CPU and of features as ``--mattr`` has them: ``+f`` for one more, ``-f`` for one less.

    Raises `CompileError` for a name or a feature that is not known.
    """
    found = host() if cpu in _HOST else _by_name(cpu)
    for attribute in attributes.split(",") if attributes else ():
        if attribute == _PORTABLE:
            # Its name alone does not tell what a kind has any more.
            name = f"{found.name},{attribute}"
            found = replace(found, name=name, features=found.cpu_features, is_portable=True)
            continue
        if attribute.startswith(TUNE):
            found = _tuned_for(found, attribute.removeprefix(TUNE))
            continue
        features = _changed(found.cpu_features, attribute)
        found = replace(found, name=f"{found.name},{attribute}", features=features)
    return found


def resolve(name: str | Target) -> Target:
    """The target of a name; ``host`` is this machine. Raises `CompileError` for an unknown name or feature."""
    if isinstance(name, Target):
        return name
    cpu, _, attributes = name.partition(",")
    return named(cpu, attributes)


def _changed(features: frozenset[str], attribute: str) -> frozenset[str]:
    """`features` with one more or less; a known but unused feature changes only the features that it implies."""
    sign, feature = attribute[:1], attribute[1:]
    known = (*NEEDS, *UNUSED, *BASELINE)
    if sign not in ("+", "-") or feature not in known:
        hint = did_you_mean(attribute, [f"{'-' if sign == '-' else '+'}{one}" for one in known])
        raise CompileError(
            f"feature must be '+' or '-' and one of {', '.join(NEEDS)} or another instruction set that LLVM knows, but "
            f"got '{attribute}'{hint}"
        )
    if feature in BASELINE and sign == "-":
        raise CompileError(f"feature must be one that x86-64 code does without, but got '{attribute}'")
    if feature in NEEDS:
        return with_needed(features | {feature}) if sign == "+" else without(features, feature)
    return with_needed(features.union(UNUSED.get(feature, ()))) if sign == "+" else features


def _tuned_for(target: Target, cpu: str) -> Target:
    """`target` with tiles for the core of `cpu`; raises `CompileError` for a CPU that is not known."""
    if cpu not in CPUS:
        hint = did_you_mean(cpu, CPUS)
        raise CompileError(f"{TUNE} must be followed by a CPU that --print-targets lists, but got '{cpu}'{hint}")
    return replace(target, name=f"{target.name},{TUNE}{cpu}", features=target.cpu_features, cpu=cpu)


def _by_name(name: str) -> Target:
    if name in TARGETS:
        return TARGETS[name]
    if name in CPUS:
        return Target(name, CPUS[name], name)
    if name in WITHOUT_64_BIT:
        raise CompileError(f"target must be a CPU that executes x86-64 code, but got '{name}'")
    hint = did_you_mean(name, [*TARGETS, *CPUS])
    raise CompileError(
        f"target must be one of host, {', '.join(TARGETS)} or a CPU that --print-targets lists, but got '{name}'{hint}"
    )
