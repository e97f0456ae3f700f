"""Which CPU this machine has, by LLVM's name: whose figures measured times are held against."""

from __future__ import annotations

import re
from pathlib import Path

from qdialect.target.cpu_names import CPUS
from qdialect.target.machine import Machine, machine_of

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
    name = _named_by_model()
    return name if name and features <= CPUS[name] else None


def _named_by_model() -> str | None:
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


def host_machine(features: frozenset[str]) -> Machine:
    """This machine's core; of a CPU of which no more is known, the one that is like it in its `features`."""
    return machine_of(host_cpu(features) or "", features)
