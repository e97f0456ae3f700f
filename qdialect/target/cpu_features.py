"""Instruction sets of x86 CPUs by LLVM's names: what each needs, and which ones this machine has."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from pathlib import Path

from qdialect.target.matrix_tile_permission import may_use_tiles

# Of LLVM's X86.td, as far as it concerns these.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "sse3": (),
    "ssse3": ("sse3",),
    "sse4.1": ("ssse3",),
    "sse4.2": ("sse4.1",),
    "avx": ("sse4.2",),
    "f16c": ("avx",),
    "fma": ("avx",),
    "avx2": ("avx",),
    "avxvnni": ("avx2",),
    "avxvnniint8": ("avx2",),
    "avx512f": ("avx2", "fma", "f16c"),
    "avx512bw": ("avx512f",),
    "avx512cd": ("avx512f",),
    "avx512dq": ("avx512f",),
    "avx512vl": ("avx512f",),
    "avx512vnni": ("avx512f",),
    "avx512vbmi": ("avx512bw",),
    "amx-tile": (),
    "amx-int8": ("amx-tile",),
    "bmi": (),
    "bmi2": (),
    "cx16": (),
    "lzcnt": (),
    "movbe": (),
    "popcnt": (),
    "sahf": (),
}
"""The features that code may be compiled for beside those of every x86-64 CPU, and what each one needs."""

_UNUSED: Mapping[tuple[str, ...], str] = {
    (): "adx aes ccmp cf cldemote clflushopt clwb clzero cmpccxadd crc32 egpr enqcmd evex512 fsgsbase gfni hreset "
    "invpcid jmpabs kl lwp movdir64b movdiri movrs mwaitx ndd nf pclmul pconfig pku ppx prefetchi prfchw ptwrite "
    "push2pop2 raoint rdpid rdpru rdrnd rdseed rtm serialize sgx sha shstk tbm tsxldtrk uintr usermsr waitpkg "
    "wbnoinvd widekl xsave xsavec xsaveopt xsaves zu",
    ("sse3",): "sse4a",
    ("avx",): "fma4 sm3 vpclmulqdq xop",
    ("avx2",): "avxifma avxneconvert avxvnniint16 sha512 sm4 vaes",
    ("avx512f",): "avx512ifma avx512vp2intersect avx512vpopcntdq",
    ("avx512bw",): "avx512bf16 avx512bitalg avx512bmm avx512fp16 avx512vbmi2",
    ("avx512cd", "avx512dq", "avx512vbmi", "avx512vl", "avx512vnni"): "avx10.1 avx10.1-512 avx10.2 avx10.2-512",
    ("amx-tile",): "amx-avx512 amx-bf16 amx-complex amx-fp16 amx-fp8 amx-movrs",
}
UNUSED: Mapping[str, tuple[str, ...]] = {name: needed for needed, names in _UNUSED.items() for name in names.split()}
"""Instruction sets that LLVM knows and no code here uses, and what each one needs of those that it does."""

BASELINE = frozenset({"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"})
"""What every x86-64 CPU has."""

V2 = frozenset({"sse3", "ssse3", "cx16", "sse4.1", "sse4.2", "popcnt", "sahf"})
V3 = V2 | {"fma", "movbe", "avx", "f16c", "bmi", "avx2", "bmi2", "lzcnt"}
V4 = V3 | {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"}
LEVELS: Mapping[str, frozenset[str]] = {"x86-64": frozenset(), "x86-64-v2": V2, "x86-64-v3": V3, "x86-64-v4": V4}
"""The levels of the x86-64 psABI."""

# The kernel's names, where they differ from LLVM's in more than a hyphen for an underscore.
_LINUX_NAMES = {
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "avxvnni": "avx_vnni",
    "avxvnniint8": "avx_vnni_int8",
    "avx512vnni": "avx512_vnni",
    "bmi": "bmi1",
    "lzcnt": "abm",
    "sahf": "lahf_lm",
}


def with_needed(features: frozenset[str]) -> frozenset[str]:
    """`features` and all that they need."""
    found, added = features, features
    while added:
        added = frozenset(needed for feature in added for needed in NEEDS[feature]) - found
        found |= added
    return found


def without(features: frozenset[str], lost: str) -> frozenset[str]:
    """`features` less `lost` and all that needs it."""
    return frozenset(feature for feature in features if lost not in with_needed(frozenset({feature})))


def host_features() -> frozenset[str]:
    """The features of this machine's CPU, of those that matter here; matrix tiles where Linux permits them."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return frozenset()
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    names = frozenset(flags[1].split()) if flags else frozenset[str]()
    found = frozenset(name for name in NEEDS if _LINUX_NAMES.get(name, name.replace("-", "_")) in names)
    return without(found, "amx-tile") if "amx-tile" in found and not may_use_tiles() else found
