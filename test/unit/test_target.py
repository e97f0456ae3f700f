"""What a CPU can do: by name, and detected."""

from pathlib import Path

import pytest

from qdialect import target
from qdialect.diagnostics import CompileError
from qdialect.target import TARGETS, Target, host, host_features, resolve

VNNI = "fpu avx512f avx512bw avx512vl avx512_vnni"
CPUS = {
    "everything": (f"{VNNI} avx512vbmi avx512_vbmi2", "avx512vbmi"),
    "no-vbmi": (VNNI, "avx512vnni"),
    # The second generation of VBMI has another name and does not stand for the first.
    "vbmi2-alone": (f"{VNNI} avx512_vbmi2", "avx512vnni"),
    "no-vnni": ("fpu avx512f avx512bw avx512vl avx512vbmi", "generic"),
    # 256-bit VNNI without AVX-512.
    "avx-vnni": ("fpu avx2 avx_vnni", "generic"),
    "no-avx": ("fpu sse2", "generic"),
}


def pretend(monkeypatch: pytest.MonkeyPatch, machine: str, cpuinfo: str | None) -> None:
    """Replace what the module asks the machine for; None where there is no such file."""

    def read_text(path: Path, encoding: str) -> str:
        assert (str(path), encoding) == ("/proc/cpuinfo", "utf-8")
        if cpuinfo is None:
            raise FileNotFoundError
        return cpuinfo

    monkeypatch.setattr(target.platform, "machine", lambda: machine)
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


def test_targets_by_name() -> None:
    for name, wanted in TARGETS.items():
        assert resolve(name) is wanted
        assert wanted.name == name
        assert resolve(wanted) is wanted


def test_what_targets_have() -> None:
    has = {name: (found.has_vnni, found.has_vbmi) for name, found in TARGETS.items()}
    assert has == {"generic": (False, False), "avx512vnni": (True, False), "avx512vbmi": (True, True)}
    assert not Target("half", TARGETS["avx512vnni"].features - {"avx512vl"}).has_vnni


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(CompileError, match=r"target must be one of host, generic, avx512vnni, .*, but got 'neon'"):
        resolve("neon")
