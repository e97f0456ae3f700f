"""x86 CPUs by LLVM's names, with the features of each, of those that matter here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qdialect.target.cpu_features import LEVELS, V2, V3, V4

_NEHALEM = V2
_SANDY_BRIDGE = V2 | {"avx"}
_HASWELL = V3
_SKYLAKE_X = V4
_CASCADE_LAKE = _SKYLAKE_X | {"avx512vnni"}
_CANNON_LAKE = _SKYLAKE_X | {"avx512vbmi"}
_ICE_LAKE = _CASCADE_LAKE | {"avx512vbmi"}
_SAPPHIRE_RAPIDS = _ICE_LAKE | {"avxvnni", "amx-tile", "amx-int8"}
_ALDER_LAKE = V3 | {"avxvnni"}
_SIERRA_FOREST = _ALDER_LAKE | {"avxvnniint8"}
_NOVA_LAKE = _ICE_LAKE | {"avxvnni", "avxvnniint8"}
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
    "cascadelake cooperlake": _CASCADE_LAKE,
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
    "znver4": _ICE_LAKE,
    "znver5": _ICE_LAKE | {"avxvnni"},
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


def _each() -> Iterator[tuple[str, frozenset[str]]]:
    for names, features in _FEATURES.items():
        yield from ((name, features) for name in names.split())


CPUS: Mapping[str, frozenset[str]] = dict(_each())
"""The features of each CPU."""
