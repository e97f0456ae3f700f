"""Single layers: convolutions as large as users asked about, each with its activation in one kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect.arithmetic import Multiplier, Rounding
from qdialect.arithmetic.choices import LeakyMode
from qdialect.bench import throughput
from qdialect.cli import terminal
from qdialect.dialect import Conv2DOp, HardswishOp, LeakyReluOp, MulOp, RequantizeOp, SigmoidOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import func, ir
from qdialect.ir.context import make_context, verify
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.runtime.comparison import differing, random_inputs
from qdialect.support.interface import Array
from tools.demo import heading, op_names, say, show_ir

_BATCH = 128
# The reference computes this number of images at a time.
_REFERENCE_BATCH = 8
_HEIGHT, _WIDTH, _CHANNELS, _FILTERS = 640, 64, 4, 128
_INPUT = {"input_scale": 0.02, "input_zero_point": 121}
_WEIGHT_SCALE = 0.01
_LIKE_TVM: dict[str, Any] = {"rounding": Rounding.F32_UP_ZP_FIRST, "multiplier": Multiplier.F32_PRODUCT}
# The quantized values of a convolution cover about [-8, 8], so that every part of an activation is reached.
_CONV: dict[str, Any] = {"output_scale": 0.0625, "output_zero_point": 128}
_ACTIVATION: dict[str, Any] = {"output_scale": 0.05, "output_zero_point": 30}
_AFTER_CONV = {"input_scale": _CONV["output_scale"], "input_zero_point": _CONV["output_zero_point"]}

Activation = Callable[[ir.Value], ir.Value]


@dataclass(frozen=True)
class Layer:
    """A convolution without padding whose kernel is as wide as its data, and the activation after it."""

    name: str
    kernel_height: int
    activation: Activation

    def module(self, batch: int) -> ir.Module:
        """The layer as a front end gives it: one op a step."""
        with make_context(), ir.Location.unknown():
            module = ir.Module.create()
            data = ir.Type.parse(f"tensor<{batch}x{_HEIGHT}x{_WIDTH}x{_CHANNELS}xui8>")
            with ir.InsertionPoint(module.body):
                main = func.FuncOp("main", ir.FunctionType.get([data], []))
                block = main.add_entry_block()
            with ir.InsertionPoint(block):
                result = self.activation(self._convolution(block.arguments[0]))
                func.ReturnOp([result])
            main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([data], [result.type]))
            verify(module)
            return module

    def _convolution(self, data: ir.Value) -> ir.Value:
        rng = np.random.default_rng(1)
        shape = (_FILTERS, self.kernel_height, _WIDTH, _CHANNELS)
        # Weights shrink as the sum grows: results keep their range.
        largest = 3000 // (self.kernel_height * _WIDTH)
        weight = constant(rng.integers(-largest, largest, shape, dtype=np.int8, endpoint=True))
        bias = constant(rng.integers(-3000, 3000, _FILTERS, dtype=np.int32))
        scales: dict[str, Any] = {"input_scale": _INPUT["input_scale"], "weight_scales": (_WEIGHT_SCALE,)}
        zero_point = _INPUT["input_zero_point"]
        sums = build(Conv2DOp, data, weight, bias, element="i32", **scales, input_zero_point=zero_point).output
        return build(RequantizeOp, sums, element="ui8", **scales, **_CONV, axis=3, **_LIKE_TVM).output


def _leaky_relu(x: ir.Value) -> ir.Value:
    mode = LeakyMode.FIXED
    return build(LeakyReluOp, x, element="ui8", **_AFTER_CONV, **_ACTIVATION, alpha=0.01, mode=mode).output


def _hardswish(x: ir.Value) -> ir.Value:
    return build(HardswishOp, x, element="ui8", **_AFTER_CONV, **_ACTIVATION).output


def _swish(x: ir.Value) -> ir.Value:
    """As a front end gives it: ``x * sigmoid(x)`` in two ops."""
    sigmoid = build(SigmoidOp, x, element="ui8", **_AFTER_CONV, output_scale=1 / 256, output_zero_point=0).output
    scales: dict[str, Any] = {"lhs_scale": _CONV["output_scale"], "rhs_scale": 1 / 256}
    zero_points: dict[str, Any] = {"lhs_zero_point": _CONV["output_zero_point"], "rhs_zero_point": 0}
    bounds: dict[str, Any] = {"output_min": 0, "output_max": 255}
    return build(MulOp, x, sigmoid, element="ui8", **scales, **zero_points, **_ACTIVATION, **bounds, **_LIKE_TVM).output


LAYERS = (
    Layer("4x64 + leaky_relu", 4, _leaky_relu),
    Layer("2x64 + hardswish", 2, _hardswish),
    Layer("2x64 + swish", 2, _swish),
)


def show() -> int:
    """Print what becomes of the layers; the number of elements that differ from the reference."""
    heading(f"Convolutions of uint8 [{_BATCH}, {_HEIGHT}, {_WIDTH}, {_CHANNELS}] with {_FILTERS} filters")
    say(
        "Each is a convolution, a requantization and an activation. It becomes one kernel; its table is the activation."
    )
    _show_fusion(LAYERS[0])
    for layer in LAYERS[1:]:
        module = layer.module(_BATCH)
        before = op_names(module)
        PassManager("fuse-qnn").run(module)
        say(f"{layer.name}: {', '.join(before)} -> {', '.join(op_names(module))}")
    rows, different, speeds = zip(*map(measured, LAYERS), strict=True)
    of_loop = f"of {speeds[0].loop}"
    header = ("layer", "ms", "GMAC/s", of_loop, "kernels", "calls", "arena", "compiled in", "different")
    print("\n" + terminal.render_table(header, rows, right=range(1, len(header))) + "\n")
    say(f"'different': elements unlike the NumPy reference of the separate ops, of all {_BATCH} images.")
    if speeds[0].peak:
        rate = f"{speeds[0].peak * 1e-9:.1f} GMAC/s"
        say(f"'{of_loop}': share of what a loop of that instruction alone reaches here, {rate}, measured in between.")
    return sum(different)


def _show_fusion(layer: Layer) -> None:
    module = layer.module(_BATCH)
    show_ir(f"{layer.name}, as a front end gives it:", module)
    PassManager("fuse-qnn").run(module)
    show_ir("After --fuse-qnn, one op with every scale, every zero point and a table:", module)


def measured(layer: Layer) -> tuple[tuple[str, ...], int, throughput.Speed]:
    """The row of the table, the number of elements that differ, and the speed of one layer."""
    module = layer.module(_BATCH)
    terminal.progress(f"{layer.name}: compiling")
    start = time.perf_counter()
    executable = compile_module(module)
    seconds = time.perf_counter() - start
    data = random_inputs(executable.inputs, seed=2)[0]
    result = executable(data)
    assert isinstance(result, np.ndarray)
    terminal.progress(f"{layer.name}: comparing with the reference")
    different = _differing(layer, data, result)
    terminal.progress(f"{layer.name}: measuring")
    speed, macs = throughput.measure(executable, [data]), throughput.multiply_accumulates(module)
    share = speed.share(macs)
    row = (
        layer.name,
        f"{speed.seconds * 1e3:.2f}",
        f"{speed.rate(macs) * 1e-9:.1f}",
        f"{100 * share:.1f} %" if share else "-",
        f"{executable.kernels}",
        f"{len(executable.calls)}",
        f"{executable.working_memory}",
        f"{seconds:.1f} s",
        f"{different} of {result.size}",
    )
    return row, different, speed


def _differing(layer: Layer, data: Array, result: Array) -> int:
    small = layer.module(_REFERENCE_BATCH)
    total = 0
    for first in range(0, _BATCH, _REFERENCE_BATCH):
        images = slice(first, first + _REFERENCE_BATCH)
        total += differing(interpreter.run(small, [data[images]])[0], result[images])
    return total
