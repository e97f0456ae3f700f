"""x86 CPUs by LLVM's names: their instruction sets, and which CPU this machine has."""

from __future__ import annotations

import ctypes
import platform
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from qdialect.targets.machine import Machine, machine_of

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
    "avx512bf16": ("avx512bw",),
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
"""The features that code may be compiled for in addition to those of every x86-64 CPU, and what each one needs."""

_UNUSED: Mapping[tuple[str, ...], str] = {
    (): "adx aes ccmp cf cldemote clflushopt clwb clzero cmpccxadd crc32 egpr enqcmd evex512 fsgsbase gfni hreset "
    "invpcid jmpabs kl lwp movdir64b movdiri movrs mwaitx ndd nf pclmul pconfig pku ppx prefetchi prfchw ptwrite "
    "push2pop2 raoint rdpid rdpru rdrnd rdseed rtm serialize sgx sha shstk tbm tsxldtrk uintr usermsr waitpkg "
    "wbnoinvd widekl xsave xsavec xsaveopt xsaves zu",
    ("sse3",): "sse4a",
    ("avx",): "fma4 sm3 vpclmulqdq xop",
    ("avx2",): "avxifma avxneconvert avxvnniint16 sha512 sm4 vaes",
    ("avx512f",): "avx512ifma avx512vp2intersect avx512vpopcntdq",
    ("avx512bw",): "avx512bitalg avx512bmm avx512fp16 avx512vbmi2",
    ("avx512cd", "avx512dq", "avx512vbmi", "avx512vl", "avx512vnni"): "avx10.1 avx10.1-512 avx10.2 avx10.2-512",
    ("amx-tile",): "amx-avx512 amx-bf16 amx-complex amx-fp16 amx-fp8 amx-movrs",
}
UNUSED: Mapping[str, tuple[str, ...]] = {name: needed for needed, names in _UNUSED.items() for name in names.split()}
"""Instruction sets that LLVM knows and no code here uses, and what each one needs of those that it does."""

BASELINE = frozenset({"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"})
"""The features of every x86-64 CPU."""

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
    "avx512bf16": "avx512_bf16",
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


def _cpu_info() -> str:
    """What Linux tells of the CPU; nothing elsewhere."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def host_features() -> frozenset[str]:
    """The features of this machine's CPU, of those that matter here; matrix tiles where Linux permits them."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    flags = re.search(r"^flags\s*:(.*)$", _cpu_info(), re.MULTILINE)
    names = frozenset(flags[1].split()) if flags else frozenset[str]()
    found = frozenset(name for name in NEEDS if _LINUX_NAMES.get(name, name.replace("-", "_")) in names)
    return without(found, "amx-tile") if "amx-tile" in found and not may_use_tiles() else found


_NEHALEM = V2
_SANDY_BRIDGE = V2 | {"avx"}
_HASWELL = V3
_SKYLAKE_X = V4
_CASCADE_LAKE = _SKYLAKE_X | {"avx512vnni"}
_CANNON_LAKE = _SKYLAKE_X | {"avx512vbmi"}
_ICE_LAKE = _CASCADE_LAKE | {"avx512vbmi"}
_COOPER_LAKE = _CASCADE_LAKE | {"avx512bf16"}
_ZEN_4 = _ICE_LAKE | {"avx512bf16"}
_SAPPHIRE_RAPIDS = _ZEN_4 | {"avxvnni", "amx-tile", "amx-int8"}
_ALDER_LAKE = V3 | {"avxvnni"}
_SIERRA_FOREST = _ALDER_LAKE | {"avxvnniint8"}
_NOVA_LAKE = _ZEN_4 | {"avxvnni", "avxvnniint8"}
_KNIGHTS_LANDING = V3 | {"avx512f", "avx512cd"}
_CORE_2 = frozenset({"sse3", "ssse3", "cx16", "sahf"})
_PENRYN = _CORE_2 | {"sse4.1"}
_SILVERMONT = V2 | {"movbe"}
_AMD_10H = frozenset({"sse3", "cx16", "sahf", "popcnt", "lzcnt"})
_BULLDOZER = V2 | {"avx", "lzcnt"}
_PILEDRIVER = _BULLDOZER | {"f16c", "fma", "bmi"}

_FEATURES: Mapping[str, frozenset[str]] = {
    **LEVELS,
    "nocona": frozenset({"sse3", "cx16"}),
    "core2 core_2_duo_ssse3": _CORE_2,
    "penryn core_2_duo_sse4_1": _PENRYN,
    "bonnell atom": _CORE_2 | {"movbe"},
    "silvermont slm atom_sse4_2": _SILVERMONT,
    "goldmont goldmont-plus goldmont_plus tremont atom_sse4_2_movbe": _SILVERMONT,
    "nehalem corei7 westmere core_i7_sse4_2 core_aes_pclmulqdq": _NEHALEM,
    "sandybridge corei7-avx core_2nd_gen_avx": _SANDY_BRIDGE,
    "ivybridge core-avx-i core_3rd_gen_avx": _SANDY_BRIDGE | {"f16c"},
    "haswell core-avx2 broadwell skylake": _HASWELL,
    "core_4th_gen_avx core_4th_gen_avx_tsx core_5th_gen_avx core_5th_gen_avx_tsx": _HASWELL,
    "knl knm mic_avx512": _KNIGHTS_LANDING,
    "skylake-avx512 skx skylake_avx512": _SKYLAKE_X,
    "cascadelake": _CASCADE_LAKE,
    "cooperlake": _COOPER_LAKE,
    "cannonlake": _CANNON_LAKE,
    "icelake-client icelake_client icelake-server icelake_server tigerlake rocketlake": _ICE_LAKE,
    "sapphirerapids emeraldrapids graniterapids graniterapids-d graniterapids_d": _SAPPHIRE_RAPIDS,
    "diamondrapids": _SAPPHIRE_RAPIDS | {"avxvnniint8"},
    "alderlake raptorlake meteorlake gracemont": _ALDER_LAKE,
    "arrowlake arrowlake-s arrowlake_s lunarlake pantherlake wildcatlake": _SIERRA_FOREST,
    "sierraforest grandridge clearwaterforest": _SIERRA_FOREST,
    "novalake": _NOVA_LAKE,
    "k8 opteron athlon64 athlon-fx": frozenset(),
    "k8-sse3 opteron-sse3 athlon64-sse3": frozenset({"sse3", "cx16"}),
    "amdfam10 barcelona": _AMD_10H,
    "btver1": _AMD_10H | {"ssse3"},
    "btver2": _BULLDOZER | {"f16c", "bmi", "movbe"},
    "bdver1": _BULLDOZER,
    "bdver2 bdver3": _PILEDRIVER,
    "bdver4": _PILEDRIVER | {"avx2", "bmi2", "movbe"},
    "znver1 znver2 znver3": V3,
    "znver4": _ZEN_4,
    "znver5": _ZEN_4 | {"avxvnni"},
    "znver6": _NOVA_LAKE,
    "c86-4g-m4 c86-4g-m6": V3,
    "c86-4g-m7 c86-4g-m8": _ICE_LAKE,
}
_OLD = """
athlon athlon-4 athlon-mp athlon-tbird athlon-xp c3 c3-2 geode i386 i486 i586 i686 k6 k6-2 k6-3 lakemont pentium
pentium-m pentium-mmx pentium2 pentium3 pentium3m pentium4 pentium4m pentium_4 pentium_4_sse3 pentium_ii pentium_iii
pentium_iii_no_xmm_regs pentium_m pentium_mmx pentium_pro pentiumpro prescott winchip-c6 winchip2 yonah
"""
WITHOUT_64_BIT = frozenset(_OLD.split())
"""LLVM's x86 CPUs that do not execute x86-64 code."""


CPUS: Mapping[str, frozenset[str]] = {name: own for names, own in _FEATURES.items() for name in names.split()}
"""The features of each CPU."""


# Vendor, family and a range of models, as the kernel shows them from CPUID's leaf 1.
_AMD, _INTEL = "AuthenticAMD", "GenuineIntel"
_MODELS: tuple[tuple[str, int, int, int, str], ...] = (
    (_AMD, 0x17, 0x00, 0x2F, "znver1"),
    (_AMD, 0x17, 0x30, 0xFF, "znver2"),
    (_AMD, 0x19, 0x10, 0x1F, "znver4"),
    (_AMD, 0x19, 0x60, 0xAF, "znver4"),
    (_AMD, 0x19, 0x00, 0x5F, "znver3"),
    (_AMD, 0x1A, 0x00, 0xFF, "znver5"),
    (_INTEL, 6, 0x3C, 0x3C, "haswell"),
    (_INTEL, 6, 0x3F, 0x3F, "haswell"),
    (_INTEL, 6, 0x45, 0x46, "haswell"),
    (_INTEL, 6, 0x3D, 0x3D, "broadwell"),
    (_INTEL, 6, 0x47, 0x47, "broadwell"),
    (_INTEL, 6, 0x4F, 0x4F, "broadwell"),
    (_INTEL, 6, 0x56, 0x56, "broadwell"),
    (_INTEL, 6, 0x4E, 0x4E, "skylake"),
    (_INTEL, 6, 0x5E, 0x5E, "skylake"),
    (_INTEL, 6, 0x8E, 0x8E, "skylake"),
    (_INTEL, 6, 0x9E, 0x9E, "skylake"),
    (_INTEL, 6, 0x6A, 0x6A, "icelake-server"),
    (_INTEL, 6, 0x6C, 0x6C, "icelake-server"),
    (_INTEL, 6, 0x7D, 0x7E, "icelake-client"),
    (_INTEL, 6, 0x8F, 0x8F, "sapphirerapids"),
    (_INTEL, 6, 0x97, 0x97, "alderlake"),
    (_INTEL, 6, 0x9A, 0x9A, "alderlake"),
    (_INTEL, 6, 0xA7, 0xA7, "rocketlake"),
    (_INTEL, 6, 0xAD, 0xAE, "graniterapids"),
    (_INTEL, 6, 0xB7, 0xB7, "raptorlake"),
    (_INTEL, 6, 0xBA, 0xBA, "raptorlake"),
    (_INTEL, 6, 0xBF, 0xBF, "raptorlake"),
    (_INTEL, 6, 0xAA, 0xAA, "meteorlake"),
    (_INTEL, 6, 0xAC, 0xAC, "meteorlake"),
    (_INTEL, 6, 0xCF, 0xCF, "emeraldrapids"),
)
_SKYLAKE_X_MODEL, _COOPER_LAKE_STEPPING = 0x55, 10


def host_cpu(features: frozenset[str]) -> str | None:
    """LLVM's name of this machine's CPU; None where it is not known, or has more `features` than a CPU of that name.

    A virtual machine may tell another model than that of the CPU that it runs on.
    """
    text = _cpu_info()
    vendor = re.search(r"^vendor_id\s*:\s*(\w+)$", text, re.MULTILINE)
    numbers = [re.search(rf"^{name}\s*:\s*(\d+)$", text, re.MULTILINE) for name in ("cpu family", "model", "stepping")]
    if vendor is None or None in numbers:
        return None
    family, model, stepping = (int(found[1]) for found in numbers if found)
    name = cpu_by_model(vendor[1], family, model, stepping)
    return name if name and features <= CPUS[name] else None


def cpu_by_model(vendor: str, family: int, model: int, stepping: int) -> str | None:
    """LLVM's name of a CPU by leaf 1 of CPUID; None if it is not known."""
    if (vendor, family, model) == (_INTEL, 6, _SKYLAKE_X_MODEL):
        # Three generations have one model.
        if stepping < 5:
            return "skylake-avx512"
        return "cascadelake" if stepping < _COOPER_LAKE_STEPPING else "cooperlake"
    known = (name for maker, of, low, high, name in _MODELS if (maker, of) == (vendor, family) and low <= model <= high)
    return next(known, None)


def host_machine(features: frozenset[str]) -> Machine:
    """This machine's core; of a CPU of which no more is known, the one that is like it in its `features`."""
    return machine_of(host_cpu(features) or "", features)


# Linux's permission to use matrix tiles: it saves their 8 KB at a switch of threads for processes that asked for it.
#
# The Linux kernel's documentation, "Using XSTATE features in user space applications": without permission the first
# instruction on a tile ends the process.  The permission is that of all threads and of processes that are forked later.

PERMISSION_CALL, REQUEST, COMPONENT = 158, 0x1023, 18
"""`arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA)` of x86-64, by numbers."""


@cache
def may_use_tiles() -> bool:
    """Ask, once in a process, for matrix tiles; false where Linux refuses or is too old to know them."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(PERMISSION_CALL, REQUEST, COMPONENT) == 0
