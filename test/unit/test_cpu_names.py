"""The features of CPUs by name, compared with those that GCC knows."""

import mmap
import re
import subprocess
from pathlib import Path

import pytest

from qdialect.ir import _mlir
from qdialect.targets import resolve
from qdialect.targets.cpus import BASELINE, CPUS, LEVELS, NEEDS, UNUSED, WITHOUT_64_BIT, cpu_by_model, with_needed
from qdialect.targets.machine import MACHINES, machine_of

MACROS = {
    "cx16": "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16",
    "sahf": "__LAHF_SAHF__",
    "sse4.1": "__SSE4_1__",
    "sse4.2": "__SSE4_2__",
    "amx-tile": "__AMX_TILE__",
    "amx-int8": "__AMX_INT8__",
}
# A CPU of each family whose name means the same to GCC.
COMPARED = (
    *(
        "x86-64",
        "x86-64-v2",
        "x86-64-v3",
        "x86-64-v4",
        "nocona",
        "core2",
        "bonnell",
        "silvermont",
        "goldmont",
        "nehalem",
    ),
    *("nehalem", "sandybridge", "ivybridge", "haswell", "skylake", "skylake-avx512", "cascadelake", "cannonlake"),
    *("icelake-server", "sapphirerapids", "alderlake", "k8", "amdfam10", "btver1", "btver2", "bdver1", "bdver2"),
    *("bdver4", "znver1", "znver3"),
)


@pytest.mark.parametrize("name", COMPARED)
def test_features_are_those_that_gcc_knows(name: str) -> None:
    command = ["gcc", f"-march={name}", "-dM", "-E", "-x", "c", "/dev/null"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    macros = {line.split()[1] for line in ran.stdout.splitlines()}
    found = {feature for feature in NEEDS if MACROS.get(feature, f"__{feature.upper()}__") in macros}
    assert found == CPUS[name]


def llvm_strings(first: bytes, last: bytes) -> set[str]:
    """The table of strings in the library of the bindings that has `first` and ends with `last`."""
    bindings = Path(str(_mlir.ir.__file__)).parent / "_mlir_libs"
    (library,) = bindings.glob("lib*CAPI.so*")
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = re.search(rb"\x00%b\x00[\x00\x20-\x7e]*?\x00%b\x00" % (first, last), content)
        assert found
        return {name.decode() for name in found[0].split(b"\0") if name}


def test_every_cpu_that_llvm_knows_is_known() -> None:
    names = llvm_strings(b"alderlake", b"znver6")
    assert len(names) > 100
    assert names - {"generic"} == set(CPUS) | WITHOUT_64_BIT


def test_features_that_are_known_are_those_of_llvm() -> None:
    strings = llvm_strings(b"16bit-mode", b"zu")
    assert len(strings) > 200
    assert strings >= {*NEEDS, *UNUSED, *BASELINE}


def test_every_cpu_has_what_its_features_need() -> None:
    for features in CPUS.values():
        assert with_needed(features) == features <= set(NEEDS)
    assert all(CPUS[name] == features for name, features in LEVELS.items())


def test_every_cpu_has_all_that_code_of_its_kind_may_use() -> None:
    for name, features in CPUS.items():
        assert resolve(name).kind.code_features <= features, name


@pytest.mark.parametrize(
    ("cpuid", "name"),
    [
        (("AuthenticAMD", 0x17, 0x08, 2), "znver1"),
        (("AuthenticAMD", 0x17, 0x71, 0), "znver2"),
        (("AuthenticAMD", 0x19, 0x01, 1), "znver3"),
        (("AuthenticAMD", 0x19, 0x11, 1), "znver4"),
        (("AuthenticAMD", 0x19, 0x61, 2), "znver4"),
        (("AuthenticAMD", 0x1A, 0x02, 1), "znver5"),
        (("GenuineIntel", 6, 0x3C, 3), "haswell"),
        (("GenuineIntel", 6, 0x55, 4), "skylake-avx512"),
        (("GenuineIntel", 6, 0x55, 7), "cascadelake"),
        (("GenuineIntel", 6, 0x55, 11), "cooperlake"),
        (("GenuineIntel", 6, 0x97, 2), "alderlake"),
        (("GenuineIntel", 6, 0xCF, 2), "emeraldrapids"),
        (("GenuineIntel", 6, 0x01, 2), None),
        (("CentaurHauls", 6, 0x3C, 2), None),
    ],
)
def test_cpus_are_known_by_their_model(cpuid: tuple[str, int, int, int], name: str | None) -> None:
    assert cpu_by_model(*cpuid) == name


def test_every_cpu_has_a_machine_of_its_vectors() -> None:
    for name, features in CPUS.items():
        machine = machine_of(name, features)
        assert (machine.vector_bits, machine.vector_registers) == (
            (512, 32) if "avx512f" in features else (256 if "avx2" in features else 128, 16)
        )
        assert machine.l1_bytes < machine.l2_bytes
    assert MACHINES["haswell"] is machine_of("haswell", CPUS["haswell"])
