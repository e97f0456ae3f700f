"""Networks that were compiled ahead of time, called from C and C++: Python's bits, on whatever CPU the program runs."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from c_programs import EXAMPLES, HERE, STRICT, arrays_of_c, build_c, compiled, ran, tool
from drawn_graphs import random_inputs
from drawn_networks import DIVISIBLE, NETWORKS, STATES, tiled

import qdialect
from qdialect import targets
from qdialect.aot.cpu_dispatch import BITS, choose, target_of_cpu, versions_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.runtime.compiler import MachineCode
from qdialect.targets import TARGETS

PICTURES = """
func.func @main(%x: tensor<1x64xui8>) -> tensor<1x10xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<10x64xi8>} : () -> tensor<10x64xi8>
  %b = arith.constant dense<[0, 100, 200, 300, 900, 400, 500, 600, 700, 800]> : tensor<10xi32>
  %0 = "qnn.dense"(%x, %w, %b) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x64xui8>, tensor<10x64xi8>, tensor<10xi32>) -> tensor<1x10xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 64.0 : f64, output_zero_point = 3 : i64, axis = 1 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x10xi32>) -> tensor<1x10xui8>
  return %1 : tensor<1x10xui8>
}
"""
FLOATS = """
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = math.exp %x : tensor<2x3xf32>
  %1 = math.floor %y : tensor<2x3xf32>
  %2 = arith.addf %0, %1 : tensor<2x3xf32>
  return %2, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}
"""
TEXTS = {**NETWORKS, "floats": FLOATS, "pictures": PICTURES, "tiled": tiled()}


def check_c(folder: Path, text: str, *before: str, threads: int = 1) -> None:
    """The example in C gives the bits of a network that is compiled in Python."""
    module = parse(text)
    executable, inputs = qdialect.compile(module, threads=threads), random_inputs(module)
    expected = executable(*inputs)
    found = arrays_of_c(folder, inputs, executable.outputs, *before)
    for one, other in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("cpu", ["host", "x86-64"])
@pytest.mark.parametrize("name", TEXTS)
def test_c_computes_the_same(name: str, cpu: str, tmp_path: Path) -> None:
    compiled(tmp_path, TEXTS[name], "--mcpu", cpu)
    build_c(tmp_path)
    check_c(tmp_path, TEXTS[name])


def test_an_object_file_is_linked_into_a_program(tmp_path: Path) -> None:
    compiled(tmp_path, DIVISIBLE, "--emit", "obj", "--targets", "host,x86-64", output="model.o")
    for options in ([], ["-static"], ["-no-pie"], ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]):
        build_c(tmp_path, *options, "-lm", library="./model.o")
        check_c(tmp_path, DIVISIBLE)


@pytest.mark.parametrize("text", [DIVISIBLE, tiled()], ids=["divisible", "tiled"])
def test_threads_of_openmp(text: str, tmp_path: Path) -> None:
    compiled(tmp_path, text, "--threads", "2")
    build_c(tmp_path)
    check_c(tmp_path, text, threads=2)


def test_a_cpu_without_the_features_runs_the_version_that_it_can(tmp_path: Path) -> None:
    # The CPU that valgrind shows to a program lacks AVX-512.
    valgrind = tool("valgrind")
    compiled(tmp_path, PICTURES, "--targets", "znver4,cascadelake,x86-64")
    build_c(tmp_path)
    check_c(tmp_path, PICTURES, valgrind, "--quiet", "--error-exitcode=9", "--leak-check=full")
    names = ["input0.bin", "output0.bin"]
    assert "version 2 computed it" in ran(valgrind, "--quiet", "./run_model", *names, folder=tmp_path)


def test_a_cpu_that_no_version_fits_gets_an_error(tmp_path: Path) -> None:
    valgrind = tool("valgrind")
    compiled(tmp_path, PICTURES, "--mcpu", "cascadelake")
    build_c(tmp_path)
    (tmp_path / "input0.bin").write_bytes(bytes(64))
    names = ["input0.bin", "output0.bin"]
    said = ran(valgrind, "--quiet", "--error-exitcode=9", "./run_model", *names, folder=tmp_path, status=1)
    assert "this CPU can execute none of the versions of 'model': avx512vnni\n" in said
    assert not (tmp_path / "output0.bin").exists()


def test_errors_have_numbers_and_texts(tmp_path: Path) -> None:
    compiled(tmp_path, DIVISIBLE, "--threads", "2")
    (tmp_path / "errors.c").write_text(
        """
#include <stdio.h>
#include "model.h"
static _Alignas(64) unsigned char workspace[MODEL_WORKSPACE_SIZE + 1];
static unsigned char in[MODEL_INPUT_0_SIZE], out[MODEL_OUTPUT_0_SIZE];
static void say(int error) { printf("%d %s\\n", error, model_strerror(error)); }
int main(void) {
  const void *const inputs[] = {in}, *const no_inputs[] = {0};
  void *const outputs[] = {out}, *const no_outputs[] = {0};
  say(model_run(inputs, outputs, workspace));
  say(model_run(0, outputs, workspace));
  say(model_run(inputs, 0, workspace));
  say(model_run(inputs, outputs, 0));
  say(model_run(no_inputs, outputs, workspace));
  say(model_run(inputs, no_outputs, workspace));
  say(model_run(inputs, outputs, workspace + 1));
  say(model_run_threads(inputs, outputs, workspace, 0));
  say(model_run_threads(inputs, outputs, workspace, 1));
  printf("%s, %d\\n", model_strerror(-7), model_workspace_size() == MODEL_WORKSPACE_SIZE);
  return 0;
}
"""
    )
    ran(tool("cc"), *STRICT, "errors.c", "./model.so", HERE, "-o", "errors", folder=tmp_path)
    null = "2 inputs, outputs, each of their entries and the workspace must not be null"
    assert ran("./errors", folder=tmp_path).splitlines() == [
        "0 no error",
        *[null] * 5,
        "3 the address of the workspace must be a multiple of 64",
        "4 threads must be at least 1",
        "0 no error",
        "unknown error, 1",
    ]


def test_programs_have_states(tmp_path: Path) -> None:
    """In C a caller has them among the outputs, in C++ an object has its own."""
    compiled(tmp_path, STATES, "--targets", "host,x86-64")
    (tmp_path / "states.c").write_text(
        """
#include <stdio.h>
#include "model.h"
static _Alignas(64) unsigned char workspace[MODEL_WORKSPACE_SIZE];
static float x[16], rows[128], out[128];
static int32_t i;
static int64_t n[2];
int main(void) {
  const void *const inputs[] = {x, &i};
  void *outputs[] = {rows, out, n}, *const lacking[] = {rows, out, 0}, *const states[] = {rows, 0, n};
  rows[0] = 9;
  const qdialect_network *const network = model_network();
  const uint32_t *const numbers = (const uint32_t *)(const void *)((const char *)network + network->states);
  printf("%u states: %u, %u; %d %d %d\\n", network->state_count, numbers[0], numbers[1], model_reset(0),
         model_reset(lacking), model_reset(states));
  for (i = 0; i < 3; i++) {
    x[1] = (float)i - 2;
    if (model_run(inputs, outputs, workspace) != QDIALECT_OK) return 1;
    printf("%g %g %g, %g, ", rows[0], rows[16 * i + 1], rows[127], out[0]);
    printf("%lld %lld\\n", (long long)n[0], (long long)n[1]);
  }
  return 0;
}
"""
    )
    ran(tool("cc"), "-std=c11", *STRICT, "states.c", "./model.so", HERE, "-o", "states", folder=tmp_path)
    wanted = ["0 -2 0, 1, 10 14", "0 -1 0, 1, 20 28", "0 0 0, 1, 40 56"]
    assert ran("./states", folder=tmp_path).splitlines() == ["2 states: 0, 2; 2 2 0", *wanted]
    (tmp_path / "states.cpp").write_text(
        """
#include <iostream>
#include <vector>
#include "model.hpp"
int main() {
  std::vector<float> x(16), out(128);
  std::vector<std::int32_t> i(1);
  qdialect::model_network first, second;
  for (int call = 0; call < 5; call++) {
    if (call == 3) first.reset();
    x[1] = static_cast<float>(call + 1);
    i[0] = call;
    (call < 4 ? first : second).run(x, i, out);
    for (int row = 0; row < 5; row++) std::cout << static_cast<int>(out[static_cast<std::size_t>(16 * row + 1)]) << " ";
    std::cout << "\\n";
  }
}
"""
    )
    flags = ("-std=c++20", *STRICT, "-fsanitize=address,undefined")
    ran(tool("c++"), *flags, "states.cpp", "./model.so", HERE, "-o", "states++", folder=tmp_path)
    rows = ["2 1 1 1 1", "2 7 1 1 1", "2 7 20 1 1", "1 1 1 54 1", "1 1 1 1 148"]
    assert [line.strip() for line in ran("./states++", folder=tmp_path).splitlines()] == rows
    loaded = qdialect.load(tmp_path / "model.so")
    other = qdialect.compile(parse(STATES))
    for call in range(3):
        given = np.full((1, 16), call, np.float32), np.array([call], np.int32)
        np.testing.assert_array_equal(loaded(*given), other(*given))
    assert [port.name for port in (*loaded.inputs, *loaded.outputs)] == ["arg1", "arg2", "res1"]


@pytest.mark.parametrize("options", [[], ["-fsanitize=address,undefined"], ["-fsanitize=thread"]])
def test_cpp_runs_threads_of_its_own(options: list[str], tmp_path: Path) -> None:
    compiled(tmp_path, PICTURES)
    source = EXAMPLES / "cpp" / "classify.cpp"
    flags = ("-std=c++20", *STRICT, "-pthread", *options)
    ran(tool("c++"), *flags, "-I.", source, "./model.so", HERE, "-o", "classify", folder=tmp_path)
    executable, rng = qdialect.compile(parse(PICTURES)), np.random.default_rng(0)
    expected: list[str] = []
    for number in range(8):
        picture = rng.integers(0, 256, (1, 64), dtype=np.uint8)
        (tmp_path / f"{number}.bin").write_bytes(picture.tobytes())
        scores = np.asarray(executable(picture))[0]
        expected.append(f"{number}.bin: class {scores.argmax()}, score {scores.max()}")
    names = [f"{number}.bin" for number in range(8)]
    assert ran("./classify", *names, folder=tmp_path).splitlines() == expected
    (tmp_path / "short.bin").write_bytes(bytes(63))
    said = ran("./classify", "short.bin", folder=tmp_path, status=1)
    assert said == "short.bin: error: input0 must have 64 elements, but got 63\n"


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_the_examples_build_with_cmake(language: str, tmp_path: Path) -> None:
    cmake = tool("cmake")
    compiled(tmp_path, PICTURES)
    shutil.copytree(EXAMPLES / language, tmp_path / "source")
    ran(cmake, "-S", "source", "-B", "build", f"-DMODEL_DIR={tmp_path}", folder=tmp_path)
    ran(cmake, "--build", "build", folder=tmp_path)


# Which version of a network runs on which CPU: names, features, and the code that asks the CPU.

REGISTERS = ("eax", "ebx", "ecx", "edx")
ASKED = re.compile(r'llvm\.inline_asm has_side_effects "(cpuid|xgetbv|syscall)", "[^"]*" ([^:]*) :')
EVERYTHING = frozenset(BITS)
OSXSAVE = 27
SUBLEAF = 1 << 16
TILE_STATE, ZMM_STATE, YMM_STATE = 0x600E7, 0xE7, 0x7


def answers(features: frozenset[str], *, saves: bool = True, leaves: int = 0x20) -> dict[int, dict[str, int]]:
    """The answers of CPUID on a CPU, by leaf and register; of subleaf 1 at the leaf plus `SUBLEAF`."""
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
    assert [one.name for one in versions_of(ALL)] == ["avx512bf16", "avx512vnni", "x86-64"]
    assert chosen(ALL, answers(EVERYTHING)) == 0
    assert chosen(ALL, answers(EVERYTHING - {"avx512vbmi"})) == 1
    assert chosen(ALL, answers(EVERYTHING - {"avx512vnni"})) == 2
    assert chosen(ALL, answers(frozenset())) == 2


@pytest.mark.parametrize("feature", sorted(TARGETS["avx512bf16"].code_features))
def test_every_feature_that_code_may_use_is_asked_for(feature: str) -> None:
    assert chosen(["znver4"], answers(EVERYTHING - {feature})) == 1
    assert chosen(["znver4"], answers(TARGETS["avx512bf16"].code_features)) == 0


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


def test_old_cpus_are_not_asked_what_they_do_not_know() -> None:
    # On them a leaf beyond the highest gives the numbers of another one.
    assert chosen(ALL, answers(EVERYTHING, leaves=6)) == 2


def test_a_version_is_made_once_for_names_of_one_kind() -> None:
    assert versions_of(["tigerlake", "haswell", "icelake-server", "x86-64-v3", "x86-64", "k8"]) == (
        TARGETS["avx512vbmi"],
        TARGETS["avx2"],
        TARGETS["x86-64"],
    )


def test_versions_of_all_kinds_are_told_apart() -> None:
    names = ["sapphirerapids", "znver4", "icelake-server", "cascadelake", "arrowlake", "alderlake", "skx", "haswell"]
    kinds = versions_of(names := [*names, "nehalem", "x86-64"])
    assert {one.name for one in kinds} == {*TARGETS} - {"generic"}
    for index, one in enumerate(kinds):
        assert chosen(names, answers(one.code_features), state=TILE_STATE) == index


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
