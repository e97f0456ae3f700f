"""Networks that were compiled ahead of time, called from C and C++: Python's bits, on whatever CPU the program runs."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from c_programs import EXAMPLES, HERE, STRICT, arrays_of_c, build_c, compiled, ran, tool
from graphs import random_inputs
from phase_networks import DIVISIBLE, NETWORKS
from tile_networks import tiled

import qdialect
from qdialect.ir.context import parse

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


def test_two_networks_in_one_program(tmp_path: Path) -> None:
    for name in ("first", "second"):
        compiled(tmp_path, PICTURES, "--emit", "obj", output=f"{name}.o")
    (tmp_path / "both.c").write_text(
        '#include "first.h"\n#include "second.h"\n'
        "int main(void) { return first_run(0, 0, 0) != QDIALECT_ERROR_NULL || first_network() == second_network(); }\n"
    )
    ran(tool("cc"), *STRICT, "both.c", "first.o", "second.o", "-o", "both", folder=tmp_path)
    ran("./both", folder=tmp_path)


@pytest.mark.parametrize("text", [DIVISIBLE, tiled()], ids=["divisible", "tiled"])
def test_threads_of_openmp(text: str, tmp_path: Path) -> None:
    compiled(tmp_path, text, "--threads", "2")
    build_c(tmp_path)
    check_c(tmp_path, text, threads=2)


def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    compiled(tmp_path, DIVISIBLE)
    build_c(tmp_path, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
    check_c(tmp_path, DIVISIBLE)


def test_valgrind_finds_nothing(tmp_path: Path) -> None:
    valgrind = tool("valgrind")
    compiled(tmp_path, PICTURES, "--mcpu", "x86-64")
    build_c(tmp_path)
    check_c(tmp_path, PICTURES, valgrind, "--quiet", "--error-exitcode=9", "--leak-check=full")


def test_a_cpu_without_the_features_runs_the_version_that_it_can(tmp_path: Path) -> None:
    # The CPU that valgrind shows to a program lacks AVX-512.
    valgrind = tool("valgrind")
    compiled(tmp_path, PICTURES, "--targets", "znver4,cascadelake,x86-64")
    build_c(tmp_path)
    check_c(tmp_path, PICTURES, valgrind, "--quiet", "--error-exitcode=9")
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
