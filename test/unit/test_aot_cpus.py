"""Which version of a network runs on which CPU: names, features, and the code that asks the CPU."""

import re
from collections.abc import Mapping

import numpy as np
import pytest

from qdialect import targets
from qdialect.aot.cpu_dispatch import BITS, choose, masks_of, symbol_part, target_of_cpu, versions_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.runtime.jit import MachineCode
from qdialect.support.diagnostics import CompileError
from qdialect.targets import TARGETS
from qdialect.targets.cpus import NEEDS

REGISTERS = ("eax", "ebx", "ecx", "edx")
ASKED = re.compile(r'llvm\.inline_asm has_side_effects "(cpuid|xgetbv|syscall)", "[^"]*" ([^:]*) :')
EVERYTHING = frozenset(BITS)
OSXSAVE = 27
SUBLEAF = 1 << 16
TILE_STATE, ZMM_STATE, YMM_STATE = 0x600E7, 0xE7, 0x7


def answers(features: frozenset[str], *, saves: bool = True, leaves: int = 0x20) -> dict[int, dict[str, int]]:
    """What CPUID says on a CPU, by leaf and register; of subleaf 1 at the leaf plus `SUBLEAF`."""
    asked = (0, 1, 7, 7 + SUBLEAF, 0x80000001)
    found: dict[int, dict[str, int]] = {leaf: dict.fromkeys(REGISTERS, 0) for leaf in asked}
    found[0]["eax"] = leaves
    found[1]["ecx"] = saves << OSXSAVE
    for feature in features:
        bit = BITS[feature]
        found[bit.leaf + SUBLEAF * bit.subleaf][bit.register] |= 1 << bit.number
    return found


def chosen(names: list[str], cpuid: Mapping[int, Mapping[str, int]], state: int = ZMM_STATE, answer: int = 0) -> int:
    """The version that code chooses where CPUID, XGETBV and the system call for tiles give these answers."""
    words_type, pair_type = "!llvm.struct<(i32, i32, i32, i32)>", "!llvm.struct<(i32, i32)>"
    text = ASKED.sub(r"llvm.call @\1(\2) :", choose("choose", versions_of(names)))
    cases = "".join(
        f"""
          %leaf{leaf} = llvm.mlir.constant({signed(leaf)} : i32) : i32
          %is{leaf} = llvm.icmp "eq" %asked, %leaf{leaf} : i32
          %answer{leaf} = llvm.mlir.constant(dense<[{", ".join(str(signed(words[r])) for r in REGISTERS)}]>
            : vector<4xi32>) : vector<4xi32>
          %found{leaf} = llvm.select %is{leaf}, %answer{leaf}, %found{before} : i1, vector<4xi32>"""
        for before, (leaf, words) in zip(["", *cpuid], cpuid.items(), strict=False)
    )
    parts = "".join(
        f"""
          %n{i} = llvm.mlir.constant({i} : i32) : i32
          %word{i} = llvm.extractelement %found{[*cpuid][-1]}[%n{i} : i32] : vector<4xi32>
          %part{i + 1} = llvm.insertvalue %word{i}, %part{i}[{i}] : {words_type}"""
        for i in range(4)
    )
    module = f"""
      llvm.func @cpuid(%leaf: i32, %subleaf: i32) -> {words_type} {{
          %found = llvm.mlir.zero : vector<4xi32>
          %shift = llvm.mlir.constant({SUBLEAF.bit_length() - 1} : i32) : i32
          %high = llvm.shl %subleaf, %shift : i32
          %asked = llvm.or %leaf, %high : i32{cases}
          %part0 = llvm.mlir.undef : {words_type}{parts}
          llvm.return %part4 : {words_type}
      }}
      llvm.func @xgetbv(%index: i32) -> {pair_type} {{
          %low = llvm.mlir.constant({state} : i32) : i32
          %part0 = llvm.mlir.undef : {pair_type}
          %part1 = llvm.insertvalue %low, %part0[0] : {pair_type}
          llvm.return %part1 : {pair_type}
      }}
      llvm.func @syscall(%number: i64, %request: i64, %component: i64) -> i64 {{
          %answer = llvm.mlir.constant({answer} : i64) : i64
          llvm.return %answer : i64
      }}
      {text.replace("internal ", "")}
      llvm.func @main(%result: !llvm.ptr) {{
          %found = llvm.call @choose() : () -> i32
          llvm.store %found, %result : i32, !llvm.ptr
          llvm.return
      }}"""
    with make_context():
        code = MachineCode(ir.Module.parse(module))
    result = np.full(1, -1, np.int32)
    code.bind("main", [result.ctypes.data]).call()
    return int(result[0])


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


ALL = ["x86-64", "znver4", "cascadelake"]


def test_the_best_version_that_fits_is_chosen() -> None:
    assert [one.name for one in versions_of(ALL)] == ["avx512vbmi", "avx512vnni", "x86-64"]
    assert chosen(ALL, answers(EVERYTHING)) == 0
    assert chosen(ALL, answers(EVERYTHING - {"avx512vbmi"})) == 1
    assert chosen(ALL, answers(EVERYTHING - {"avx512vnni"})) == 2
    assert chosen(ALL, answers(frozenset())) == 2


@pytest.mark.parametrize("feature", sorted(TARGETS["avx512vbmi"].code_features))
def test_every_feature_that_code_may_use_is_asked_for(feature: str) -> None:
    assert chosen(["znver4"], answers(EVERYTHING - {feature})) == 1
    assert chosen(["znver4"], answers(TARGETS["avx512vbmi"].code_features)) == 0


def test_the_operating_system_must_save_the_registers() -> None:
    assert chosen(ALL, answers(EVERYTHING), state=YMM_STATE) == 2
    assert chosen(ALL, answers(EVERYTHING, saves=False)) == 2
    assert chosen(["znver4"], answers(EVERYTHING, saves=False)) == 1


def test_tiles_are_used_where_linux_permits_them() -> None:
    names = ["sapphirerapids", "icelake-server", "x86-64"]
    assert [one.name for one in versions_of(names)] == ["amxint8", "avx512vbmi", "x86-64"]
    assert chosen(names, answers(EVERYTHING), state=TILE_STATE) == 0
    assert chosen(names, answers(EVERYTHING), state=TILE_STATE, answer=-22) == 1
    assert chosen(names, answers(EVERYTHING), state=ZMM_STATE) == 1
    assert chosen(names, answers(EVERYTHING - {"amx-int8"}), state=TILE_STATE) == 1


def test_linux_is_asked_for_tiles_where_all_else_fits() -> None:
    text = choose("choose", versions_of(["sapphirerapids", "haswell"]))
    assert text.count('"syscall"') == 1
    assert "llvm.call @choose_may_use_tiles(%shown0)" in text
    assert "syscall" not in choose("choose", versions_of(["znver4", "haswell"]))


def test_old_cpus_are_not_asked_what_they_do_not_know() -> None:
    # On them a leaf beyond the highest gives the numbers of another one.
    assert chosen(ALL, answers(EVERYTHING, leaves=6)) == 2


def test_masks_are_those_of_the_manuals() -> None:
    assert masks_of(TARGETS["generic"]) == {}
    assert masks_of(TARGETS["avx512vbmi"]) == {
        (1, 0, "ecx"): 0x30D82201 | 1 << 12 | 1 << 22,
        (7, 0, "ebx"): 0xD0030128,
        (7, 0, "ecx"): 0x802,
        (0x80000001, 0, "ecx"): 0x21,
    }
    assert masks_of(TARGETS["avxvnni"])[7, 1, "eax"] == 0x10


def test_cpuid_shows_every_feature_that_a_target_may_have() -> None:
    assert set(NEEDS) == EVERYTHING


def test_code_may_use_what_its_target_has() -> None:
    for one in TARGETS.values():
        assert one.features <= one.code_features <= EVERYTHING


def test_a_version_is_made_once_for_names_of_one_kind() -> None:
    assert versions_of(["znver4", "haswell", "icelake-server", "x86-64-v3", "x86-64", "k8"]) == (
        TARGETS["avx512vbmi"],
        TARGETS["avx2"],
        TARGETS["x86-64"],
    )


def test_versions_of_all_kinds_are_told_apart() -> None:
    names = ["sapphirerapids", "znver4", "cascadelake", "arrowlake", "alderlake", "skx", "haswell", "nehalem", "x86-64"]
    kinds = versions_of(names)
    assert {one.name for one in kinds} == {*TARGETS} - {"generic"}
    for index, one in enumerate(kinds):
        assert chosen(names, answers(one.code_features), state=TILE_STATE) == index


def test_host_is_the_machine_that_compiles() -> None:
    assert target_of_cpu("host") == targets.host()


def test_a_version_has_the_tiles_of_the_core_that_tune_names() -> None:
    (found,) = versions_of(["avx512vbmi,tune=graniterapids"])
    assert found == targets.resolve("avx512vbmi,tune=graniterapids")
    assert found.machine != targets.resolve("avx512vbmi").machine
    assert target_of_cpu("znver5,-avx512f,tune=haswell").name == "avxvnni,tune=haswell"


def test_a_cpu_that_lacks_a_feature_of_its_kind_gets_code_without_it() -> None:
    (found,) = versions_of(["haswell,-fma"])
    assert (found.name, found.kind.name) == ("haswell,-fma", "avx2")
    assert "fma" not in found.code_features
    assert target_of_cpu("x86-64,+avx2").code_features < TARGETS["avx2"].code_features
    assert target_of_cpu("haswell,-fma,+fma") is TARGETS["avx2"]


def test_portable_code_stays_portable() -> None:
    assert target_of_cpu("avx2,portable").is_portable


def test_this_machine_has_two_names() -> None:
    assert target_of_cpu("native") == target_of_cpu("host") == targets.host()


def test_an_unknown_cpu_is_an_error() -> None:
    with pytest.raises(CompileError, match=r"lists, but got 'znver44', did you mean 'znver4'\?"):
        target_of_cpu("znver44")


def test_functions_of_opposite_targets_have_different_names() -> None:
    assert symbol_part(targets.resolve("haswell,+aes")) != symbol_part(targets.resolve("haswell,-aes"))


@pytest.mark.parametrize("name", ["avx512vbmi,tune=znver5", "haswell,+avxvnni,-fma", "sse4.1", "x86-64"])
def test_names_of_functions_have_a_name_for_every_target(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.]+", symbol_part(targets.resolve(name)))
