"""A batch of any size in a network that hands functions to a target: these compute one entry after the other."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from external_networks import Array, branched, interpreted, with_externs

import qdialect
from qdialect.aot.entry_points import Error
from qdialect.cli.compile import main as compile_command
from qdialect.externals.function import ExternalFunction
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import CompileError


@pytest.fixture(scope="module")
def called() -> ir.Module:
    return with_externs(branched())


def entries(count: int) -> Array:
    return np.random.default_rng(count).integers(-128, 128, (count, 7, 6, 3), dtype=np.int8)


def test_every_entry_is_that_of_the_network(called: ir.Module) -> None:
    compute, shapes = interpreted(called), set[tuple[int, ...]]()

    def noting(function: ExternalFunction, *arrays: Array) -> Array:
        shapes.update(array.shape for array in arrays)
        return compute(function, *arrays)

    alone = qdialect.compile(called, externals={"npu": compute})
    executable = qdialect.compile(called, externals={"npu": noting}, batch="dynamic")
    assert [port.shape[0] for port in (*executable.inputs, *executable.outputs)] == [-1, -1, -1]
    for count in (0, 1, 3):
        given = entries(count)
        wanted = [alone(given[i : i + 1]) for i in range(count)]
        for index, found in enumerate(executable(given)):
            assert found.shape[0] == count
            np.testing.assert_array_equal(found, np.concatenate([one[index] for one in wanted] or [found]))
    assert {shape[0] for shape in shapes} == {1}


def test_the_first_failure_ends_the_call(called: ir.Module) -> None:
    compute, calls = interpreted(called), list[str]()

    def sometimes(function: ExternalFunction, *arrays: Array) -> Array:
        calls.append(function.name)
        if len(calls) == 6:
            raise ValueError("out of order")
        return compute(function, *arrays)

    executable = qdialect.compile(called, externals={"npu": sometimes}, batch="dynamic", workspaces=1)
    with pytest.raises(qdialect.ExternalCallError, match="ValueError: out of order"):
        executable(entries(4))
    # What has failed is of the first two entries, and the workspace is free again.
    assert len(calls) <= 8
    assert executable(entries(2))[0].shape[0] == 2


def test_threads_wait_for_a_workspace_while_functions_of_python_run(called: ir.Module) -> None:
    executable = qdialect.compile(called, externals={"npu": interpreted(called)}, batch="dynamic", workspaces=1)
    given = [entries(count) for count in range(1, 5)]
    wanted, found = [executable(one) for one in given], dict[int, Any]()

    def call(index: int) -> None:
        found[index] = executable(given[index])

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(given))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for index, results in enumerate(wanted):
        for one, other in zip(found[index], results, strict=True):
            np.testing.assert_array_equal(one, other)


def refusing(_: ExternalFunction, *__: Array) -> NoReturn:
    raise AssertionError


def test_what_has_no_external_is_refused_with_every_batch(called: ir.Module) -> None:
    for batch in (1, "dynamic"):
        with pytest.raises(CompileError, match="goes to target 'npu', for which externals must have a"):
            qdialect.compile(called, batch=batch)


def test_a_network_of_several_entries_is_refused() -> None:
    text = str(branched()).replace("tensor<1x", "tensor<2x").replace("= [1, ", "= [2, ")
    module = with_externs(qdialect.parse(text))
    wanted = "batch must be 1 in a module that hands functions to a target, to be dynamic, but got 2: they compute one"
    with pytest.raises(CompileError, match=wanted):
        qdialect.compile(module, externals={"npu": refusing}, batch="dynamic")


def test_such_a_network_is_not_saved(called: ir.Module, tmp_path: Any) -> None:
    executable = qdialect.compile(called, externals={"npu": interpreted(called)}, batch="dynamic")
    with pytest.raises(CompileError, match="network must not call Python functions to be saved, but externals has one"):
        executable.save(tmp_path / "network.so")


DENSE = """
func.func @main(%x: tensor<1x8xui8>) -> tensor<1x4xui8> {
  %w = "qnn.constant"() {value = dense<1> : tensor<4x8xi8>} : () -> tensor<4x8xi8>
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x8xui8>, tensor<4x8xi8>) -> tensor<1x4xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 1.0 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 8.0 : f64, output_zero_point = 0 : i64, axis = 1 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4xi32>) -> tensor<1x4xui8>
  return %1 : tensor<1x4xui8>
}
"""
# The mean of eight values, and a failure where they begin with 255.
LIBRARY = """
int npu_fused_dense(const void *function, const void *const *inputs, void *const *outputs) {
  const unsigned char *data = inputs[0];
  unsigned char *means = outputs[0];
  int sum = 0;
  (void)function;
  if (data[0] == 255) return 7;
  for (int k = 0; k < 8; ++k) sum += data[k];
  for (int channel = 0; channel < 4; ++channel) means[channel] = (unsigned char)((sum + 4) / 8);
  return 0;
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(LIBRARY)
    subprocess.run(["cc", "-fPIC", "-shared", "-O1", "driver.c", "-o", "libdriver.so"], cwd=folder, check=True)
    # The functions that a file leaves undefined are found in it.
    ctypes.CDLL(str(folder / "libdriver.so"), mode=ctypes.RTLD_GLOBAL)
    return folder / "libdriver.so"


@pytest.fixture(scope="module")
def dense() -> ir.Module:
    return with_externs(qdialect.parse(DENSE))


def rows(count: int) -> Array:
    return np.random.default_rng(count).integers(0, 255, (count, 8), dtype=np.uint8)


def means(given: Array) -> Array:
    return np.repeat(((given.sum(axis=1, dtype=np.int64) + 4) // 8).astype(np.uint8)[:, None], 4, axis=1)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_calls_a_library_for_each_entry(dense: ir.Module, driver: Path, tmp_path: Path, threads: int) -> None:
    path = tmp_path / "network.so"
    qdialect.compile(dense, externals={"npu": driver}, batch="dynamic", threads=threads).save(path)
    executable = qdialect.load(path, workspaces=1)
    for count in (0, 1, 5):
        np.testing.assert_array_equal(executable(rows(count)), means(rows(count)))
    given = rows(6)
    given[2, 0] = 255
    with pytest.raises(qdialect.ExternalCallError, match=r"failed in 'npu_fused_dense' of target 'npu': it returned 7"):
        executable(given)
    np.testing.assert_array_equal(executable(rows(3)), means(rows(3)))


def test_a_program_gets_the_error_of_the_first_entry_that_fails(dense: ir.Module, driver: Path, tmp_path: Path) -> None:
    assert driver.exists()
    (tmp_path / "dense.mlir").write_text(str(dense))
    output = tmp_path / "net.so"
    assert compile_command([str(tmp_path / "dense.mlir"), "-o", str(output), "--batch", "dynamic"]) == 0
    library = ctypes.CDLL(str(output))
    library.net_workspace_size.restype = ctypes.c_size_t
    block = np.full(library.net_workspace_size(ctypes.c_int64(4)) + 64, 0xA5, np.uint8)
    workspace = ctypes.c_void_p(block.ctypes.data + -block.ctypes.data % 64)

    def run(given: Array) -> tuple[int, Array]:
        found = np.full((max(len(given), 1), 4), 99, np.uint8)
        lists = [(ctypes.c_void_p * 1)(array.ctypes.data) for array in (given, found)]
        block[:] = 0xA5
        return library.net_run(*lists, workspace, ctypes.c_int64(len(given))), found

    error, found = run(rows(0))
    assert error == Error.OK
    assert (found == 99).all()
    given = rows(4)
    error, found = run(given)
    assert error == Error.OK
    np.testing.assert_array_equal(found, means(given))
    given[1, 0] = 255
    error, found = run(given)
    assert error == Error.EXTERNAL
    np.testing.assert_array_equal(found[0], means(given)[0])
    assert (found[2:] == 99).all()
