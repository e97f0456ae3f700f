"""x86-64 CPUs by LLVM's names, with the features of each, of those that matter here."""

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
_CORE_2 = frozenset({"sse3", "ssse3", "cx16", "sahf"})
_PENRYN = _CORE_2 | {"sse4.1"}
_SILVERMONT = V2 | {"movbe"}
_AMD_10H = frozenset({"sse3", "cx16", "sahf", "popcnt", "lzcnt"})
_BULLDOZER = V2 | {"avx", "lzcnt"}
_PILEDRIVER = _BULLDOZER | {"f16c", "fma", "bmi"}

_FEATURES: Mapping[str, frozenset[str]] = {
    **LEVELS,
    "nocona": frozenset({"sse3", "cx16"}),
    "core2": _CORE_2,
    "penryn": _PENRYN,
    "bonnell atom": _CORE_2 | {"movbe"},
    "silvermont slm": _SILVERMONT,
    "goldmont goldmont-plus tremont": _SILVERMONT,
    "nehalem corei7 westmere": _NEHALEM,
    "sandybridge corei7-avx": _SANDY_BRIDGE,
    "ivybridge core-avx-i": _SANDY_BRIDGE | {"f16c"},
    "haswell core-avx2 broadwell skylake": _HASWELL,
    "skylake-avx512 skx": _SKYLAKE_X,
    "cascadelake cooperlake": _CASCADE_LAKE,
    "cannonlake": _CANNON_LAKE,
    "icelake-client icelake-server tigerlake rocketlake": _ICE_LAKE,
    "sapphirerapids emeraldrapids graniterapids graniterapids-d": _SAPPHIRE_RAPIDS,
    "alderlake raptorlake meteorlake gracemont": _ALDER_LAKE,
    "arrowlake arrowlake-s lunarlake pantherlake": _SIERRA_FOREST,
    "sierraforest grandridge clearwaterforest": _SIERRA_FOREST,
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
}


def _each() -> Iterator[tuple[str, frozenset[str]]]:
    for names, features in _FEATURES.items():
        yield from ((name, features) for name in names.split())


CPUS: Mapping[str, frozenset[str]] = dict(_each())
"""The features of each CPU."""
