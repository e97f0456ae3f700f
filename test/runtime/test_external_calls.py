"""Functions of other libraries, with any batch too: the bits of compiled ops, and errors at the call."""

import ctypes
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounds import HANG
from drawn_graphs import random_inputs
from drawn_networks import Array, branched, interpreted, with_externs

import qdialect
from qdialect.dialect import FusedOp
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter
from qdialect.support.externals import ExternalFunction, Source


@pytest.fixture(scope="module")
def network() -> ir.Module:
    return branched()


@pytest.fixture(scope="module")
def called(network: ir.Module) -> ir.Module:
    return with_externs(network)


def without_residual(op: FusedOp) -> bool:
    return len(op.operation.operands) < 4


@pytest.mark.parametrize(
    ("options", "count", "threads"),
    [({}, 4, 2), ({"merge": True}, 3, 1), ({"predicate": without_residual}, 3, 2)],
    ids=["each", "merged", "chosen"],
)
def test_they_compute_what_compiled_ops_compute(
    network: ir.Module, options: dict[str, Any], count: int, threads: int
) -> None:
    module = with_externs(network, **options)
    counter: Counter[str] = Counter()
    compute = interpreted(module)

    def counting(function: ExternalFunction, *arrays: Array) -> Array:
        counter[function.name] += 1
        return compute(function, *arrays)

    executable = qdialect.compile(module, externals={"npu": counting}, threads=threads)
    inputs = random_inputs(module)
    expected = interpreter.run(network, inputs)
    for _ in range(2):
        for found, wanted in zip(executable(*inputs), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert list(counter.values()) == [2] * count


def test_a_function_is_told_all_of_its_op(called: ir.Module) -> None:
    seen: list[tuple[ExternalFunction, tuple[Array, ...]]] = []
    compute = interpreted(called)

    def compute_and_keep(function: ExternalFunction, *arrays: Array) -> Array:
        seen.append((function, tuple(np.array(array) for array in arrays)))
        assert not any(array.flags.writeable for array in arrays)
        return compute(function, *arrays)

    inputs = random_inputs(called)
    qdialect.compile(called, externals={"npu": compute_and_keep})(*inputs)
    function, arrays = seen[0]
    assert (function.name, function.symbol, function.target) == ("main_fused_conv2d_0", "npu_fused_conv2d", "npu")
    np.testing.assert_array_equal(arrays[0], inputs[0])
    (op,) = function.operations
    assert op.attributes["weight_scales"] == (0.01, 0.02, 0.015, 0.008, 0.03)
    assert op.attributes["padding"] == (1, 1, 1, 1)
    assert (op.attributes["input_scale"], op.attributes["input_zero_point"]) == (0.02, 3)
    weight, bias = op.operands["weight"], op.operands["bias"]
    assert weight.source is Source.CONSTANT
    assert weight.data is not None
    assert (weight.data.shape, weight.data.dtype) == ((5, 3, 3, 3), np.int8)
    np.testing.assert_array_equal(bias.data, np.random.default_rng(1).integers(-2000, 2000, 5, dtype=np.int32))
    (stage,) = op.stages
    assert stage.name == "requantize"
    assert (stage.attributes["scale"], stage.attributes["element"]) == (function.output.scale, "i8")
    residuals = [one for one, _ in seen if "residual" in one.operations[0].operands]
    assert [len(one.inputs) for one in residuals] == [2]
    assert [stage.name for stage in residuals[0].operations[0].stages] == ["requantize", "add"]


def wrong_shape(function: ExternalFunction, *_: Array) -> Array:
    return np.zeros(function.output.shape[1:], function.output.dtype)


def wrong_dtype(function: ExternalFunction, *_: Array) -> Array:
    return np.zeros(function.output.shape, np.float64)


def nothing(*_: object) -> None:
    pass


def raising(*_: object) -> Array:
    raise ValueError("out of memory on the device")


def writing(_: ExternalFunction, array: Array) -> Array:
    array[...] = 0
    return array


@pytest.mark.parametrize(
    ("compute", "reason"),
    [
        (raising, "ValueError: out of memory on the device"),
        (wrong_shape, "InputError: the returned array must be int8[1, 7, 6, 5], but got int8[7, 6, 5]"),
        (wrong_dtype, "InputError: the returned array must be int8[1, 7, 6, 5], but got float64[1, 7, 6, 5]"),
        (nothing, "InputError: the returned array must be an array int8[1, 7, 6, 5], but got NoneType"),
        (writing, "ValueError: assignment destination is read-only"),
    ],
)
def test_a_failure_is_an_error_of_the_call(called: ir.Module, compute: Callable[..., Any], reason: str) -> None:
    executable = qdialect.compile(called, externals={"npu": compute})
    inputs = random_inputs(called)
    outputs = [np.empty(port.shape, port.dtype) for port in executable.outputs]
    bound = executable.bind(inputs, outputs)
    wanted = f"'qnn.fused_conv2d' op 'main_fused_conv2d_0' failed in 'npu_fused_conv2d' of target 'npu': {reason}"
    for call in (lambda: executable(*inputs), bound):
        with pytest.raises(qdialect.ExternalCallError) as failed:
            call()
        assert failed.value.message == wanted
        assert failed.value.__cause__ is not None


def test_an_executable_computes_again_after_a_failure(called: ir.Module) -> None:
    compute, fails = interpreted(called), [True, False]

    def sometimes(function: ExternalFunction, *arrays: Array) -> Array:
        if function.name == "main_fused_conv2d_1" and fails.pop(0):
            raise OSError("try again")
        return compute(function, *arrays)

    executable, inputs = qdialect.compile(called, externals={"npu": sometimes}), random_inputs(called)
    with pytest.raises(qdialect.ExternalCallError, match=r"main_fused_conv2d_1.*try again"):
        executable(*inputs)
    for found, wanted in zip(executable(*inputs), interpreter.run(called, inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_stays_an_interrupt(called: ir.Module, kind: type[BaseException]) -> None:
    def interrupted(*_: object) -> Array:
        raise kind

    with pytest.raises(kind):
        qdialect.compile(called, externals={"npu": interrupted})(*random_inputs(called))


def test_a_function_does_not_call_the_network_that_calls_it(called: ir.Module) -> None:
    inputs = random_inputs(called)

    def recursive(*_: object) -> Array:
        return executable(*inputs)[0]

    executable = qdialect.compile(called, externals={"npu": recursive})
    with pytest.raises(qdialect.ExternalCallError, match="must not be called by an external function that it calls"):
        executable(*inputs)


def test_other_threads_of_python_run_meanwhile(called: ir.Module) -> None:
    compute, other = interpreted(called), threading.Event()

    def waiting(function: ExternalFunction, *arrays: Array) -> Array:
        worker = threading.Thread(target=other.set)
        worker.start()
        worker.join(HANG)
        assert other.is_set()
        return compute(function, *arrays)

    executable, inputs = qdialect.compile(called, externals={"npu": waiting}), random_inputs(called)
    expected = interpreter.run(called, inputs)

    def call(_: int) -> Sequence[Array]:
        return tuple(executable(*inputs))

    with ThreadPoolExecutor(4) as pool:
        for results in pool.map(call, range(8)):
            for found, wanted in zip(results, expected, strict=True):
                np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("externals", "message"),
    [
        ({}, "'qnn.fused_conv2d' op 'main_fused_conv2d_0' goes to target 'npu', for which externals must have a"),
        ({"npu": raising, "dsp": raising}, "targets that functions of the module go to, 'npu', but got 'dsp'"),
        ({"npu": 3}, "external 'npu' must be the path of a library or a function, but got int"),
    ],
)
def test_every_target_needs_its_external(called: ir.Module, externals: dict[str, Any], message: str) -> None:
    with pytest.raises(qdialect.CompileError, match=message):
        qdialect.compile(called, externals=externals)


def test_an_external_of_a_module_without_such_functions_is_refused(network: ir.Module) -> None:
    with pytest.raises(qdialect.CompileError, match="go to, none, but got 'npu'; qnn-outline-fused hands ops to"):
        qdialect.compile(network, externals={"npu": raising})


def changed(module: ir.Module, old: str, new: str) -> ir.Module:
    text = str(module)
    assert old in text
    return qdialect.parse(text.replace(old, new))


@pytest.mark.parametrize(
    ("symbol", "message"),
    [
        ("not a name", "qnn.symbol must be an identifier of C, but got 'not a name'"),
        ("main", "qnn.symbol must not be a function of the network, but got 'main'"),
        ("kernel_0", "qnn.symbol must not be a function of the network, but got 'kernel_0'"),
        ("GOMP_parallel", "qnn.symbol must not be a function of the network"),
    ],
)
def test_the_symbol_is_checked(called: ir.Module, symbol: str, message: str) -> None:
    module = changed(called, 'qnn.symbol = "npu_fused_conv2d"', f'qnn.symbol = "{symbol}"')
    with pytest.raises(qdialect.CompileError, match=message):
        qdialect.compile(module, externals={"npu": raising})


def test_a_network_that_calls_python_cannot_be_saved(called: ir.Module, tmp_path: Any) -> None:
    executable = qdialect.compile(called, externals={"npu": interpreted(called)})
    with pytest.raises(qdialect.CompileError, match="must not call Python functions to be saved"):
        executable.save(tmp_path / "model.so")


# A batch of any size in a network that hands functions to a target: these compute one entry after the other.


@pytest.fixture(scope="module")
def rows_called() -> ir.Module:
    return with_externs(branched())


def entries(count: int) -> Array:
    return np.random.default_rng(count).integers(-128, 128, (count, 7, 6, 3), dtype=np.int8)


def test_every_entry_is_that_of_the_network(rows_called: ir.Module) -> None:
    compute, shapes = interpreted(rows_called), set[tuple[int, ...]]()

    def noting(function: ExternalFunction, *arrays: Array) -> Array:
        shapes.update(array.shape for array in arrays)
        return compute(function, *arrays)

    alone = qdialect.compile(rows_called, externals={"npu": compute})
    executable = qdialect.compile(rows_called, externals={"npu": noting}, batch="dynamic")
    assert [port.shape[0] for port in (*executable.inputs, *executable.outputs)] == [-1, -1, -1]
    for count in (0, 1, 3):
        given = entries(count)
        wanted = [alone(given[i : i + 1]) for i in range(count)]
        for index, found in enumerate(executable(given)):
            assert found.shape[0] == count
            np.testing.assert_array_equal(found, np.concatenate([one[index] for one in wanted] or [found]))
    assert {shape[0] for shape in shapes} == {1}


def test_the_first_failure_ends_the_call(rows_called: ir.Module) -> None:
    compute, calls = interpreted(rows_called), list[str]()

    def sometimes(function: ExternalFunction, *arrays: Array) -> Array:
        calls.append(function.name)
        if len(calls) == 6:
            raise ValueError("out of order")
        return compute(function, *arrays)

    executable = qdialect.compile(rows_called, externals={"npu": sometimes}, batch="dynamic", workspaces=1)
    with pytest.raises(qdialect.ExternalCallError, match="ValueError: out of order"):
        executable(entries(4))
    # The failure is of the first two entries, and the workspace is free again.
    assert len(calls) <= 8
    assert executable(entries(2))[0].shape[0] == 2


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
