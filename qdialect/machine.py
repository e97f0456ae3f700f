"""What the core of a CPU does in a cycle and holds, as far as the choice of tiles depends on it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

_KB = 1 << 10
_MB = 1 << 20


@dataclass(frozen=True)
class Machine:
    """One core.

    Rates are of instructions on whole vectors of `vector_bits`: a dot product is `vpdpbusd` where the CPU has it,
    `vpmaddwd` elsewhere.  Figures are approximate: they follow Intel's and AMD's optimization manuals and Fog,
    "Instruction tables", and are good enough to rank tiles.  Only the tiles of Zen 4 were compared with measurements.
    """

    vector_bits: int
    vector_registers: int
    dot_products: float
    """Dot products that start in a cycle."""
    vector_instructions: int
    """Instructions of any kind on vectors that start in a cycle."""
    dot_latency: int
    """Cycles from the operands of a dot product to its sums."""
    loads: int
    """Loads of whole vectors in a cycle."""
    l1_bytes: int
    """Data cache of the first level."""
    l2_bytes: int
    l2_bandwidth: int
    """Bytes that arrive from the second level in a cycle, while loads go on."""
    tile_product_cycles: int = 0
    """Cycles from the start of a product of whole tiles to that of the next; 0 where the core has no tiles."""


_SSE = Machine(128, 16, 1, 3, 5, 1, 32 * _KB, 256 * _KB, 32)
_HASWELL = Machine(256, 16, 1, 3, 5, 2, 32 * _KB, 256 * _KB, 64)
_SKYLAKE = replace(_HASWELL, dot_products=2)
_ALDER_LAKE = Machine(256, 16, 2, 3, 5, 3, 48 * _KB, 1280 * _KB, 64)
_SKYLAKE_X = Machine(512, 32, 2, 2, 5, 2, 32 * _KB, _MB, 64)
_ICE_LAKE = replace(_SKYLAKE_X, l1_bytes=48 * _KB, l2_bytes=1280 * _KB)
_SAPPHIRE_RAPIDS = replace(_ICE_LAKE, l2_bytes=2 * _MB, tile_product_cycles=16)
_ZEN_1 = Machine(256, 16, 0.5, 2, 3, 1, 32 * _KB, 512 * _KB, 32)
_ZEN_2 = replace(_ZEN_1, dot_products=1, vector_instructions=4, loads=2)
_ZEN_3 = replace(_ZEN_2, dot_products=2)
_ZEN_4 = Machine(512, 32, 1, 2, 4, 1, 32 * _KB, _MB, 32)
_ZEN_5 = Machine(512, 32, 2, 4, 4, 2, 48 * _KB, _MB, 64)

MACHINES: Mapping[str, Machine] = {
    "haswell": _HASWELL,
    "core-avx2": _HASWELL,
    "broadwell": _HASWELL,
    "skylake": _SKYLAKE,
    "skylake-avx512": _SKYLAKE_X,
    "skx": _SKYLAKE_X,
    "cascadelake": _SKYLAKE_X,
    "cooperlake": _SKYLAKE_X,
    "icelake-client": replace(_ICE_LAKE, dot_products=1, l2_bytes=512 * _KB),
    "icelake-server": _ICE_LAKE,
    "alderlake": _ALDER_LAKE,
    "raptorlake": replace(_ALDER_LAKE, l2_bytes=2 * _MB),
    "meteorlake": replace(_ALDER_LAKE, l2_bytes=2 * _MB),
    "sapphirerapids": _SAPPHIRE_RAPIDS,
    "emeraldrapids": _SAPPHIRE_RAPIDS,
    "graniterapids": _SAPPHIRE_RAPIDS,
    "znver1": _ZEN_1,
    "znver2": _ZEN_2,
    "znver3": _ZEN_3,
    "znver4": _ZEN_4,
    "znver5": _ZEN_5,
}
"""What is known of CPUs, by LLVM's names."""

# Vendor, family and the models from one to another one; what the kernel shows of CPUID's leaf 1.
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
    (_INTEL, 6, 0xAD, 0xAE, "graniterapids"),
    (_INTEL, 6, 0xB7, 0xB7, "raptorlake"),
    (_INTEL, 6, 0xBA, 0xBA, "raptorlake"),
    (_INTEL, 6, 0xBF, 0xBF, "raptorlake"),
    (_INTEL, 6, 0xAA, 0xAA, "meteorlake"),
    (_INTEL, 6, 0xAC, 0xAC, "meteorlake"),
    (_INTEL, 6, 0xCF, 0xCF, "emeraldrapids"),
)
_SKYLAKE_X_MODEL, _COOPER_LAKE_STEPPING = 0x55, 10


def machine_of(cpu: str, features: frozenset[str]) -> Machine:
    """The machine of an LLVM name; of a CPU of which no more is known, the one that is like it in its `features`."""
    if cpu in MACHINES:
        return MACHINES[cpu]
    if "amx-int8" in features:
        return _SAPPHIRE_RAPIDS
    if "avx512f" in features:
        return _ICE_LAKE if "avx512vbmi" in features else _SKYLAKE_X
    if "avx2" in features:
        return _ALDER_LAKE if "avxvnni" in features else _HASWELL
    return _SSE


def host_cpu() -> str | None:
    """LLVM's name of this machine's CPU; None where it is not known."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return None
    vendor = re.search(r"^vendor_id\s*:\s*(\w+)$", text, re.MULTILINE)
    numbers = [re.search(rf"^{name}\s*:\s*(\d+)$", text, re.MULTILINE) for name in ("cpu family", "model", "stepping")]
    if vendor is None or None in numbers:
        return None
    family, model, stepping = (int(found[1]) for found in numbers if found)
    return cpu_by_model(vendor[1], family, model, stepping)


def cpu_by_model(vendor: str, family: int, model: int, stepping: int) -> str | None:
    """LLVM's name of a CPU by what leaf 1 of CPUID says of it; None where it is not known."""
    if (vendor, family, model) == (_INTEL, 6, _SKYLAKE_X_MODEL):
        # Three generations have one model.
        if stepping < 5:
            return "skylake-avx512"
        return "cascadelake" if stepping < _COOPER_LAKE_STEPPING else "cooperlake"
    known = (name for maker, of, low, high, name in _MODELS if (maker, of) == (vendor, family) and low <= model <= high)
    return next(known, None)
