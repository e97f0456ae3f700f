"""IREE for this CPU, compiled and run in the calling thread."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qdialect.bench.cases import Array, Case, EngineError, Session, foreign, session_of
from qdialect.bench.network import LEAKY_SLOPE

# A layer in the form of linalg that IREE compiles best: signed, NHWC, zero point in the bias, float requantization.

_OFFSET = 128


class _Layer:
    def __init__(self, numbers: dict[str, Array], source: Sequence[int], result: Sequence[int]) -> None:
        self._numbers = numbers
        self._source, self._result = list(source), list(result)
        self._is_depthwise = int(numbers["groups"]) > 1
        self._padding = int(numbers["padding"])

    def text(self) -> str:
        source, result = _tensor(self._source, "i8"), _tensor(self._result, "i8")
        sums = _tensor(self._result, "i32")
        lines = [
            f"func.func @network(%x: {source}) -> {result} {{",
            *self._constants(),
            "%c0 = arith.constant 0 : i32",
            *self._pad(),
            f"%e = tensor.empty() : {sums}",
            f"%f = linalg.fill ins(%c0 : i32) outs(%e : {sums}) -> {sums}",
            self._contraction(sums),
            f"%e8 = tensor.empty() : {result}",
            *self._epilogue(sums, result),
            f"return %y : {result}",
            "}",
        ]
        return "\n".join(lines)

    def _zero_point(self, name: str) -> int:
        return int(self._numbers[f"{name}_zero_point"]) - _OFFSET

    def _scale(self, name: str) -> float:
        return float(self._numbers[f"{name}_scale"])

    def _weights(self) -> Array:
        values = self._numbers["weights"]
        if values.ndim == 2:
            return values.T
        return values[:, 0].transpose(1, 2, 0) if self._is_depthwise else values.transpose(2, 3, 1, 0)

    def _constants(self) -> list[str]:
        numbers = self._numbers
        values = numbers["weights"]
        totals = values.astype(np.int64).reshape(values.shape[0], -1).sum(axis=1)
        bias = (numbers["bias"] - self._zero_point("x") * totals).astype(np.int32)
        multipliers = self._scale("x") * numbers["weight_scales"].astype(np.float64) / self._scale("c")
        return [
            f"%w = arith.constant {_dense(self._weights(), 'i8')}",
            f"%b = arith.constant {_dense(bias, 'i32')}",
            f"%m = arith.constant {_dense(multipliers.astype(np.float32), 'f32')}",
        ]

    def _padded_shape(self) -> list[int]:
        batch, height, width, channels = self._source
        return [batch, height + 2 * self._padding, width + 2 * self._padding, channels]

    def _pad(self) -> list[str]:
        if not self._padding:
            return []
        amount = f"[0, {self._padding}, {self._padding}, 0]"
        types = f"{_tensor(self._source, 'i8')} to {_tensor(self._padded_shape(), 'i8')}"
        indices = ", ".join(f"%i{axis}: index" for axis in range(4))
        return [
            f"%z = arith.constant {self._zero_point('x')} : i8",
            f"%p = tensor.pad %x low{amount} high{amount} {{",
            f"^bb0({indices}):",
            "tensor.yield %z : i8",
            f"}} : {types}",
        ]

    def _contraction(self, sums: str) -> str:
        weights = _tensor(self._weights().shape, "i8")
        if len(self._source) == 2:
            types = f"{_tensor(self._source, 'i8')}, {weights}"
            return f"%acc = linalg.matmul ins(%x, %w : {types}) outs(%f : {sums}) -> {sums}"
        operation = "depthwise_conv_2d_nhwc_hwc" if self._is_depthwise else "conv_2d_nhwc_hwcf"
        data = "%p" if self._padding else "%x"
        types = f"{_tensor(self._padded_shape(), 'i8')}, {weights}"
        ones = "{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}"
        return f"%acc = linalg.{operation} {ones} ins({data}, %w : {types}) outs(%f : {sums}) -> {sums}"

    def _epilogue(self, sums: str, result: str) -> list[str]:
        rank = len(self._result)
        names = ", ".join(f"d{axis}" for axis in range(rank))
        whole, channel = (f"affine_map<({names}) -> ({to})>" for to in (names, f"d{rank - 1}"))
        loops = ", ".join(['"parallel"'] * rank)
        types = f"{sums}, {_tensor(self._result[-1:], 'i32')}, {_tensor(self._result[-1:], 'f32')}"
        maps = f"indexing_maps = [{whole}, {channel}, {channel}, {whole}], iterator_types = [{loops}]"
        return [
            f"%y = linalg.generic {{{maps}}} ins(%acc, %b, %m : {types}) outs(%e8 : {result}) {{",
            "^bb0(%a: i32, %bb: i32, %mm: f32, %o: i8):",
            *self._body(),
            f"}} -> {result}",
        ]

    def _body(self) -> list[str]:
        lines = [
            _constant("low", -_OFFSET),
            _constant("high", _OFFSET - 1),
            "%s = arith.addi %a, %bb : i32",
            "%sf = arith.sitofp %s : i32 to f32",
            "%r = arith.mulf %sf, %mm : f32",
            *_rounded("r", "q", self._zero_point("c")),
        ]
        activation = str(self._numbers["activation"])
        last = "q"
        if activation != "none":
            last = "h"
            lines += [
                _constant("c_scale", self._scale("c")),
                "%v0 = arith.subf %q, %q_zero : f32",
                "%v = arith.mulf %v0, %c_scale : f32",
                *_ACTIVATIONS[activation],
                _constant("a_inverse", 1 / self._scale("a")),
                "%g = arith.mulf %t, %a_inverse : f32",
                *_rounded("g", "h", self._zero_point("a")),
            ]
        return [*lines, f"%quantized = arith.fptosi %{last} : f32 to i8", "linalg.yield %quantized : i8"]


def _rounded(source: str, result: str, zero_point: int) -> list[str]:
    """An f32 value as a quantized value in a float: rounded, shifted, clamped."""
    return [
        _constant(f"{result}_zero", zero_point),
        f"%{result}0 = math.roundeven %{source} : f32",
        f"%{result}1 = arith.addf %{result}0, %{result}_zero : f32",
        f"%{result}2 = arith.maximumf %{result}1, %low : f32",
        f"%{result} = arith.minimumf %{result}2, %high : f32",
    ]


def _constant(name: str, value: float) -> str:
    return f"%{name} = arith.constant {float(value):.9e} : f32"


_ACTIVATIONS = {
    "leaky_relu": [
        _constant("slope", LEAKY_SLOPE),
        "%t0 = arith.mulf %v, %slope : f32",
        "%t = arith.maximumf %v, %t0 : f32",
    ],
    "hardswish": [
        *(_constant(name, value) for name, value in (("three", 3), ("zero", 0), ("six", 6), ("sixth", 1 / 6))),
        "%t0 = arith.addf %v, %three : f32",
        "%t1 = arith.maximumf %t0, %zero : f32",
        "%t2 = arith.minimumf %t1, %six : f32",
        "%t3 = arith.mulf %t2, %sixth : f32",
        "%t = arith.mulf %v, %t3 : f32",
    ],
    "swish": [
        _constant("one", 1),
        "%t0 = arith.negf %v : f32",
        "%t1 = math.exp %t0 : f32",
        "%t2 = arith.addf %t1, %one : f32",
        "%t = arith.divf %v, %t2 : f32",
    ],
}


def _tensor(shape: Sequence[int], element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def _dense(array: Array, element: str) -> str:
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"> : {_tensor(array.shape, element)}'


# IREE for this CPU, compiled and run in the calling thread.

_OPTIONS = ("--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3")
_TILED = (
    "--iree-opt-data-tiling=true",
    "--iree-llvmcpu-enable-ukernels=all",
    "--iree-global-opt-use-im2col-for-convs=true",
)
# Variant: its options, and the form of its model and data. That of TFLite is signed and NHWC, as the text wants it.
_VARIANTS: Mapping[str, tuple[Sequence[str], str]] = {
    "linalg": (_OPTIONS, "tflite"),
    "linalg_tiled": ((*_OPTIONS, *_TILED), "tflite"),
    "onnx_tiled": ((*_OPTIONS, *_TILED), "qdq"),
}


def _session(runtime: Any, code: bytes, argument: Array, wanted: Array) -> Session:
    """A module of the virtual machine with its argument."""
    configuration = runtime.Config("local-sync")
    instance, device = configuration.vm_instance, configuration.device
    # The module refers to the code's bytes.
    module = runtime.VmModule.copy_buffer(instance, code)
    context = runtime.VmContext(instance, modules=[runtime.create_hal_module(instance, device), module])
    function = module.lookup_function("network")
    view = device.allocator.allocate_buffer_copy(
        memory_type=runtime.MemoryType.DEVICE_LOCAL,
        allowed_usage=runtime.BufferUsage.DEFAULT,
        device=device,
        buffer=argument.view(np.int8),
        element_type=runtime.HalElementType.SINT_8,
    )
    arguments = runtime.VmVariantList(1)
    arguments.push_ref(view)

    def call() -> Any:
        results = runtime.VmVariantList(1)
        context.invoke(function, arguments, results)
        return results

    def arrays(results: Any) -> list[Array]:
        view = results.get_as_object(0, runtime.HalBufferView)
        dtype = runtime.HalElementType.map_to_dtype(view.element_type)
        # Quantized values have no sign in the virtual machine.
        return [np.array(view.map().asarray(view.shape, dtype)).view(wanted.dtype)]

    return session_of(call, arrays, (configuration, module))


class Iree:
    """The packages `iree-base-compiler` and `iree-base-runtime`."""

    def __init__(self) -> None:
        self._compiler = foreign("iree.compiler")
        self._runtime = foreign("iree.runtime")

    def variants(self, case: Case) -> Mapping[str, str]:
        return {variant: form for variant, (_, form) in _VARIANTS.items()} if case.parameters else {}

    def load(self, case: Case, variant: str, threads: int) -> Session:
        if threads != 1:
            raise EngineError("measured on one thread alone")
        options, name = _VARIANTS[variant]
        form = case.forms[name]
        (data,), (wanted,) = form.inputs(), form.outputs()
        if name == "tflite":
            with np.load(case.parameters, allow_pickle=False) as archive:
                numbers = {key: archive[key] for key in archive.files}
            # The module of a layer; `source` and `result` are shapes, NHWC or [rows, columns], of tensors of i8.
            text = _Layer(numbers, data.shape, wanted.shape).text()
        else:
            # An ONNX file as a module; the function has the name of the graph, as in every model that is written
            # here.
            command = [sys.executable, "-m", "iree.compiler.tools.import_onnx", form.model]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        code = self._compiler.compile_str(text, target_backends=["llvm-cpu"], extra_args=list(options))
        return _session(self._runtime, code, data, wanted)
