"""Functions that go to a target, computed by Python functions: the bits of compiled ops, and errors at the call."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from deadline import HANG
from external_networks import Array, branched, interpreted, with_externs
from graphs import graph, random_inputs
from quantized_layers import add, fused, requantize

import qdialect
from qdialect.dialect import DenseOp, FusedOp, MatMulOp, build
from qdialect.dialect.constants import constant
from qdialect.externals.function import ExternalFunction, Source
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, compile_to, target_of
from qdialect.reference import interpreter


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


def test_any_fused_op_goes() -> None:
    def body(data: ir.Value, weight: ir.Value) -> ir.Value:
        known = constant(np.arange(21, dtype=np.int8).reshape(3, 7))

        def layer(value: ir.Value) -> ir.Value:
            sums = build(
                DenseOp, value, weight, None, element="i32", input_scale=0.02, input_zero_point=3, weight_scales=(0.01,)
            )
            return requantize(sums.output, "i8", weight_scales=(0.01,))

        total = add(layer(data), layer(known), "i8")
        product = build(
            MatMulOp, total, weight, None, element="i32", input_scale=0.09, input_zero_point=20, weight_scales=(0.01,)
        )
        return requantize(product.output, "i8", input_scale=0.09, weight_scales=(0.01,))

    network = graph(["tensor<3x7xi8>", "tensor<5x7xi8>"], body)
    module = with_externs(network)
    symbols = [f"npu_fused_{kind}" for kind in ("dense", "dense", "matmul")]
    executable = qdialect.compile(module, externals={"npu": interpreted(module)})
    assert [call.label for call in executable.calls if call.label in symbols] == symbols
    inputs = random_inputs(network)
    np.testing.assert_array_equal(executable(*inputs), interpreter.run(network, inputs)[0])


def test_a_function_that_is_called_twice() -> None:
    network = graph(["tensor<1x4x4x5xi8>"], lambda value: fused(value, "i8"))
    call, type_ = "call @main_fused_conv2d_0", "(tensor<1x4x4x5xi8>) -> tensor<1x4x4x5xi8>"
    text = str(with_externs(network)).replace(f"%0 = {call}(%arg0)", f"%9 = {call}(%arg0) : {type_}\n%0 = {call}(%9)")
    module = qdialect.parse(text)
    executable, inputs = qdialect.compile(module, externals={"npu": interpreted(module)}), random_inputs(module)
    np.testing.assert_array_equal(executable(*inputs), interpreter.run(module, inputs)[0])


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


def test_the_error_says_where_the_op_stands(network: ir.Module) -> None:
    module = qdialect.parse(str(with_externs(network)))
    with pytest.raises(qdialect.ExternalCallError, match=r"^-:\d+:\d+: 'qnn.fused_conv2d' op"):
        qdialect.compile(module, externals={"npu": raising})(*random_inputs(module))


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


def test_after_a_failure_no_other_function_is_called(called: ir.Module) -> None:
    names: list[str] = []

    def failing(function: ExternalFunction, *_: Array) -> Array:
        names.append(function.name)
        raise OSError

    with pytest.raises(qdialect.ExternalCallError):
        qdialect.compile(called, externals={"npu": failing}, threads=2)(*random_inputs(called))
    assert names == ["main_fused_conv2d_0"]


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


@pytest.mark.parametrize("phase", [Phase.LINALG, Phase.LLVM])
def test_every_phase_keeps_extern_functions(called: ir.Module, phase: Phase) -> None:
    module = qdialect.parse(str(compile_to(called, phase, target_of(called, "host"))))
    inputs = random_inputs(called)
    executable = qdialect.compile(module, externals={"npu": interpreted(called)})
    for found, wanted in zip(executable(*inputs), interpreter.run(called, inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)


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


def test_a_damaged_record_is_an_error(called: ir.Module) -> None:
    module = compile_to(called, Phase.LINALG, target_of(called, "host"))
    for old, new in (("externals = [[0, ", "externals = [[64, "), ("externals = [[0, ", "externals = [[9999999, ")):
        with pytest.raises(qdialect.CompileError, match="record of an external function is damaged"):
            qdialect.compile(changed(module, old, new), externals={"npu": raising})


def test_a_network_that_calls_python_cannot_be_saved(called: ir.Module, tmp_path: Any) -> None:
    executable = qdialect.compile(called, externals={"npu": interpreted(called)})
    with pytest.raises(qdialect.CompileError, match="must not call Python functions to be saved"):
        executable.save(tmp_path / "model.so")
