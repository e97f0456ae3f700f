"""Features of CPUs: by name, and detected."""

import mmap
import re
import subprocess
from pathlib import Path

import pytest

from qdialect.ir import _mlir
from qdialect.support.diagnostics import CompileError
from qdialect.targets import TARGETS, Target, cpus, host, host_features, named, resolve
from qdialect.targets.cpus import (
    BASELINE,
    LEVELS,
    NEEDS,
    UNUSED,
    WITHOUT_64_BIT,
    cpu_by_model,
    host_cpu,
    host_machine,
    with_needed,
)
from qdialect.targets.cpus import CPUS as KNOWN_CPUS
from qdialect.targets.machine import MACHINES

AMX = "fpu avx2 avx512f avx512bw avx512vl avx512_vnni avx512vbmi avx512_bf16 avx_vnni amx_tile amx_int8"
VNNI = "fpu avx512f avx512bw avx512vl avx512_vnni"
CPUS = {
    "everything": (f"{VNNI} avx512vbmi avx512_vbmi2 avx512_bf16", "avx512bf16"),
    "no-bf16": (f"{VNNI} avx512vbmi avx512_vbmi2", "avx512vbmi"),
    "no-vbmi": (VNNI, "avx512vnni"),
    # The second generation of VBMI has another name and does not stand for the first.
    "vbmi2-alone": (f"{VNNI} avx512_vbmi2", "avx512vnni"),
    "no-vnni": ("fpu avx512f avx512bw avx512vl avx512vbmi", "avx512bw"),
    # 256-bit VNNI without AVX-512.
    "avx-vnni": ("fpu avx2 avx_vnni", "avxvnni"),
    "avx2": ("fpu sse4_1 avx avx2", "avx2"),
    "sse4": ("fpu pni ssse3 sse4_1", "sse4.1"),
    "old": ("fpu sse2 pni", "x86-64"),
    "no-avx": ("fpu sse2", "generic"),
}


def pretend(monkeypatch: pytest.MonkeyPatch, machine: str, cpuinfo: str | None) -> None:
    """Replace what the module asks the machine for; None where there is no such file."""

    def read_text(path: Path, encoding: str) -> str:
        assert (str(path), encoding) == ("/proc/cpuinfo", "utf-8")
        if cpuinfo is None:
            raise FileNotFoundError
        return cpuinfo

    monkeypatch.setattr(cpus.platform, "machine", lambda: machine)
    monkeypatch.setattr(Path, "read_text", read_text)


def cpuinfo(flags: str) -> str:
    core = f"processor\t: 0\nmodel name\t: a CPU with avx512vbmi in its name\nflags\t\t: {flags}\nbugs\t\t: none\n\n"
    return core * 2


@pytest.mark.parametrize(("flags", "name"), CPUS.values(), ids=list(CPUS))
def test_the_host_is_the_best_target_its_flags_allow(monkeypatch: pytest.MonkeyPatch, flags: str, name: str) -> None:
    pretend(monkeypatch, "x86_64", cpuinfo(flags))
    found = host()
    assert found == TARGETS[name]
    assert found.features <= host_features()
    assert resolve("host") == found


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        pytest.param("aarch64", cpuinfo(VNNI), id="other-architecture"),
        pytest.param("x86_64", None, id="no-cpuinfo"),
        pytest.param("x86_64", "", id="empty-cpuinfo"),
    ],
)
def test_an_unknown_machine_is_generic(monkeypatch: pytest.MonkeyPatch, machine: str, text: str | None) -> None:
    pretend(monkeypatch, machine, text)
    assert host_features() == frozenset()
    assert host() == TARGETS["generic"]


def test_instructions_of_targets() -> None:
    with_vbmi = ["avx512vbmi", "avx512bf16", "amxint8"]
    assert [name for name, found in TARGETS.items() if found.has_vnni] == ["avx512vnni", *with_vbmi]
    assert [name for name, found in TARGETS.items() if found.has_vbmi] == with_vbmi
    assert all(found.kind is found and found.features <= found.code_features for found in TARGETS.values())
    assert not Target("half", TARGETS["avx512vnni"].features - {"avx512vl"}).has_vnni


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(CompileError, match=r"target must be one of host, generic, avx512vnni, .*, but got 'neon'"):
        resolve("neon")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("haswell", "avx2"),
        ("core-avx2", "avx2"),
        ("x86-64-v3", "avx2"),
        ("znver3", "avx2"),
        ("znver5", "avx512bf16"),
        ("skylake-avx512", "avx512bw"),
        ("cascadelake", "avx512vnni"),
        ("sapphirerapids", "amxint8"),
        ("graniterapids,-amx-int8", "avx512bf16"),
        ("lunarlake", "avxvnniint8"),
        ("gracemont", "avxvnni"),
        ("sandybridge", "sse4.1"),
        ("knl", "avx2"),
        ("skylake_avx512", "avx512bw"),
        ("diamondrapids", "amxint8"),
        ("wildcatlake", "avxvnniint8"),
        ("novalake", "avx512bf16"),
        ("k8", "x86-64"),
        ("haswell,+avxvnni", "avxvnni"),
        ("haswell,-avx", "sse4.1"),
        ("znver4,-avx512bf16", "avx512vbmi"),
        ("znver4,-avx512vbmi,-avx512vnni", "avx512bw"),
        ("avx512vnni,+avx512vbmi", "avx512vbmi"),
        ("x86-64,+avx512vbmi", "avx2"),
    ],
)
def test_a_cpu_gets_the_best_kind_of_code_whose_features_it_has(name: str, kind: str) -> None:
    found = resolve(name)
    assert (found.name, found.kind.name) == (name, kind)
    assert resolve(found.name) == found
    assert found.kind.features <= found.code_features


def test_cpus_without_x86_64_are_refused() -> None:
    with pytest.raises(CompileError, match="target must be a CPU that executes x86-64 code, but got 'pentium4'"):
        resolve("pentium4")


@pytest.mark.parametrize("attribute", ["avx2", "+avx3", "", "*avx2", "+retpoline", "+prefer-256-bit"])
def test_unknown_features_are_refused(attribute: str) -> None:
    with pytest.raises(CompileError, match=r"feature must be '\+' or '-' and one of sse3, .*, but got"):
        named("haswell", f"+fma,{attribute}")


@pytest.mark.parametrize("name", ["avx2,portable,tune=znver3", "avx2,tune=znver3,portable", "avx2,portable,-fma"])
def test_portable_targets_keep_their_kind(name: str) -> None:
    found = resolve(name)
    assert (found.kind.name, found.is_portable, found.code_features) == ("avx2", True, frozenset())


ZEN_5 = "vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nstepping\t: 1\n"


def test_the_host_has_the_tiles_of_its_own_core(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "x86_64", ZEN_5 + cpuinfo(CPUS["everything"][0]))
    found = host()
    assert (found.name, found.kind, found.cpu) == ("avx512bf16,tune=znver5", TARGETS["avx512bf16"], "znver5")
    assert found.machine == MACHINES["znver5"]
    assert found.code_features == TARGETS["avx512bf16"].code_features, "what code may use is that of the kind"
    assert resolve(found.name) == found


def test_a_kind_of_code_does_not_rely_on_what_one_of_its_cores_has(monkeypatch: pytest.MonkeyPatch) -> None:
    zen_4 = ZEN_5.replace("26", "25").replace(": 2\n", ": 97\n")
    pretend(monkeypatch, "x86_64", zen_4 + cpuinfo(CPUS["everything"][0]))
    found, kind = host(), TARGETS["avx512bf16"]
    assert (found.name, found.kind, found.machine) == ("avx512bf16,tune=znver4", kind, MACHINES["znver4"])
    assert found.machine.scales_to_zero
    assert not kind.machine.scales_to_zero


def test_tiles_of_another_core_change_nothing_else() -> None:
    found = resolve("haswell,+avxvnni,tune=alderlake,-fma")
    assert (found.cpu, found.machine) == ("alderlake", MACHINES["alderlake"])
    assert found.features == resolve("haswell,+avxvnni,-fma").features
    with pytest.raises(CompileError, match=r"tune= must be followed by a CPU .* got 'znver55', did you mean 'znver5'"):
        resolve("avx2,tune=znver55")


EMERALD_RAPIDS = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\nstepping\t: 2\n"


@pytest.mark.parametrize(
    ("core", "flags", "name"),
    [(ZEN_5, "avx2", "avx2,tune=znver5"), (EMERALD_RAPIDS, "everything", "avx512bf16,tune=emeraldrapids")],
)
def test_a_host_that_hides_features_of_its_cpu_has_the_tiles_of_its_core(
    monkeypatch: pytest.MonkeyPatch, core: str, flags: str, name: str
) -> None:
    pretend(monkeypatch, "x86_64", core + cpuinfo(CPUS[flags][0]))
    kind, _, cpu = name.partition(",tune=")
    assert host().name == name
    assert host().kind is TARGETS[kind]
    assert host().code_features == TARGETS[kind].code_features
    assert host().machine.l2_bytes == MACHINES[cpu].l2_bytes


def test_a_host_with_more_than_its_model_has_is_taken_by_its_features(monkeypatch: pytest.MonkeyPatch) -> None:
    # A virtual machine that tells the model of a Rocket Lake, on a CPU with matrix tiles.
    rocket_lake = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 167\nstepping\t: 1\n"
    pretend(monkeypatch, "x86_64", rocket_lake + cpuinfo(AMX))
    monkeypatch.setattr(cpus, "may_use_tiles", lambda: True)
    features = host_features()
    assert host_cpu(features) is None
    assert host() is TARGETS["amxint8"]
    assert host_machine(features) == MACHINES["sapphirerapids"]
    fewer = resolve("rocketlake").features
    assert (host_cpu(fewer), host_machine(fewer)) == ("rocketlake", MACHINES["rocketlake"])


@pytest.mark.parametrize("name", ["znver5,-avx512f", "avx2,tune=znver5", "haswell,tune=sapphirerapids"])
def test_a_core_has_no_more_registers_than_the_code_uses(name: str) -> None:
    machine = resolve(name).machine
    assert (machine.vector_bits, machine.vector_registers) == (256, 16)
    assert machine.l2_bytes == resolve(name.rpartition("=")[2].partition(",")[0]).machine.l2_bytes


# The features of CPUs by name, compared with those that GCC knows.

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
    *("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "nocona", "core2", "bonnell", "silvermont", "goldmont"),
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
    assert found == KNOWN_CPUS[name]


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
    assert names - {"generic"} == set(KNOWN_CPUS) | WITHOUT_64_BIT


def test_features_that_are_known_are_those_of_llvm() -> None:
    strings = llvm_strings(b"16bit-mode", b"zu")
    assert len(strings) > 200
    assert strings >= {*NEEDS, *UNUSED, *BASELINE}


def test_every_cpu_has_what_its_features_need() -> None:
    for features in KNOWN_CPUS.values():
        assert with_needed(features) == features <= set(NEEDS)
    assert all(KNOWN_CPUS[name] == features for name, features in LEVELS.items())


def test_every_cpu_has_all_that_code_of_its_kind_may_use() -> None:
    for name, features in KNOWN_CPUS.items():
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
