"""One level of instructions for all engines: the CPU that a run pretends to have.

oneDNN, which OpenVINO and PyTorch multiply by, takes the most that it may use from `ONEDNN_MAX_CPU_ISA`, and FBGEMM,
PyTorch's other library, from `FBGEMM_ENABLE_INSTRUCTIONS`; PyTorch's own vector code has `ATEN_CPU_CAPABILITY`.  The
other engines go by CPUID alone, so that they are left out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from qdialect.bench.engines import OURS
from qdialect.targets import resolve

HOST = "host"
TARGET = "QDIALECT_BENCH_TARGET"
"""The environment variable by which workers learn their target."""

LIMITED = (OURS, "openvino", "torch")
"""Engines that can be kept to a level."""

# oneDNN's documentation, "CPU dispatcher control".
_ONEDNN: Mapping[str, str] = {
    "amxint8": "AVX512_CORE_AMX",
    "avx512bf16": "AVX512_CORE_BF16",
    "avx512vbmi": "AVX512_CORE_VNNI",
    "avx512vnni": "AVX512_CORE_VNNI",
    "avx512bw": "AVX512_CORE",
    "avxvnniint8": "AVX2_VNNI_2",
    "avxvnni": "AVX2_VNNI",
    "avx2": "AVX2",
    "sse4.1": "SSE41",
}

# The instruction sets that its `fbgemmEnvGetIsa` knows; E1 is VNNI. It has no code for less than AVX2.
_FBGEMM: Mapping[str, str] = {
    **dict.fromkeys(("amxint8", "avx512bf16", "avx512vbmi", "avx512vnni"), "AVX512_E1"),
    "avx512bw": "AVX512",
    **dict.fromkeys(("avxvnniint8", "avxvnni", "avx2"), "AVX2"),
}


def environment(target: str) -> Mapping[str, str]:
    """The environment of a worker at the level of `target`; raises `CompileError` for a name that is not known."""
    settings = {TARGET: target}
    if target == HOST:
        return settings
    kind = resolve(target).kind.name
    if kind in _ONEDNN:
        settings |= {"ONEDNN_MAX_CPU_ISA": _ONEDNN[kind], "DNNL_MAX_CPU_ISA": _ONEDNN[kind]}
    if kind in _FBGEMM:
        settings["FBGEMM_ENABLE_INSTRUCTIONS"] = _FBGEMM[kind]
    settings["ATEN_CPU_CAPABILITY"] = _capability(kind)
    return settings


def target_name() -> str:
    """The target of this process."""
    return os.environ.get(TARGET, HOST)


def has_fbgemm(target: str) -> bool:
    """Whether FBGEMM has code for the level of `target`."""
    return target == HOST or resolve(target).kind.name in _FBGEMM


def reason_to_leave_out(engine: str, target: str) -> str:
    """Why an engine cannot be measured at the level of `target`; empty where it can."""
    if target == HOST or engine == OURS:
        return ""
    if engine not in LIMITED:
        return "it uses all that the CPU has, whatever the target"
    return "" if resolve(target).kind.name in _ONEDNN else f"it cannot be kept to '{target}'"


def _capability(kind: str) -> str:
    if kind.startswith(("avx512", "amx")):
        return "avx512"
    return "avx2" if kind.startswith("avx") else "default"
