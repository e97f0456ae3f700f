"""Compilation step by step: where it can stop, what it leaves as it was, and that no view leaves its buffer."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from graphs import graph
from hypothesis import example, given, settings
from hypothesis import strategies as st
from quantized_layers import CHANNELS, WEIGHT_SCALES, add, conv, fused, requantize, sigmoid

from qdialect.dialect import ReshapeOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import Phase, compile_to, lower
from qdialect.lowering.qnn_to_linalg.program.program import ALIGNMENT
from qdialect.lowering.qnn_to_linalg.program.storage import EXTRA_BYTES
from qdialect.support.diagnostics import CompileError
from qdialect.support.interface import Port
from qdialect.targets import GENERIC, TARGETS

VBMI = TARGETS["avx512vbmi"]
PREFIXES = {
    Phase.QNN: {"qnn", "func"},
    Phase.FUSED: {"qnn", "func"},
    Phase.LINALG: {"linalg", "tensor", "arith", "math", "memref", "bufferization", "func"},
    Phase.VECTOR: {"vector", "scf", "arith", "math", "memref", "ub", "func"},
    Phase.X86: {"vector", "scf", "arith", "math", "memref", "ub", "func", "llvm"},
    Phase.LLVM: {"llvm"},
}


def chain() -> ir.Module:
    """Two convolutions with padding, an activation between them, a residual sum at the end."""

    def body(x: ir.Value, y: ir.Value) -> ir.Value:
        return add(fused(sigmoid(requantize(conv(x)))), y)

    return graph(["tensor<1x6x5x3xi8>", f"tensor<1x6x5x{CHANNELS}xui8>"], body)


def walk(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                yield from walk(child.operation)


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_has_its_own_ops(phase: Phase) -> None:
    module = compile_to(chain(), phase, VBMI)
    assert module.operation.verify()
    assert {op.name.split(".")[0] for op in walk(module.operation)} <= PREFIXES[phase]


@pytest.mark.parametrize("phase", Phase)
def test_the_module_given_stays_as_it_is(phase: Phase) -> None:
    module = chain()
    before = module.operation.get_asm(enable_debug_info=True)
    lowered = lower(module, GENERIC, phase)
    assert module.operation.get_asm(enable_debug_info=True) == before
    assert lowered.module is not module


def test_phases_are_in_order() -> None:
    assert list(Phase) == ["qnn", "fused", "linalg", "vector", "x86", "llvm"]


def test_lowering_twice_gives_the_same_text() -> None:
    module = chain()
    first, second = lower(module, VBMI), lower(module, VBMI)
    assert str(first.module) == str(second.module)
    np.testing.assert_array_equal(first.constants, second.constants)


def test_one_kernel_per_layer() -> None:
    lowered = lower(chain(), GENERIC, Phase.LINALG)
    assert [label for label in lowered.labels if label.startswith("qnn.")] == ["qnn.fused_conv2d"] * 2
    assert lowered.kernels <= len(lowered.labels)
    assert lowered.constants.dtype == np.uint8


def test_nothing_is_planned_before_there_are_kernels() -> None:
    lowered = lower(chain(), GENERIC, Phase.FUSED)
    assert (lowered.kernels, lowered.arena_bytes, lowered.labels, lowered.constants.size) == (0, 0, (), 0)


def test_ports_come_from_attributes() -> None:
    module = parse("""
    func.func @main(%x: tensor<1x4xi8> {qnn.name = "image", qnn.scale = 0.5 : f64, qnn.zero_point = -3 : i64},
                    %y: tensor<1x4xi8>) -> (tensor<1x4xi8> {qnn.name = "scores", qnn.scale = 0.25 : f64}) {
      %0 = "qnn.relu"(%x) {
        input_scale = 0.5 : f64, input_zero_point = -3 : i64, output_scale = 0.5 : f64, output_zero_point = -3 : i64,
        entries = "half_away_divide", nan = "max"
      } : (tensor<1x4xi8>) -> tensor<1x4xi8>
      return %0 : tensor<1x4xi8>
    }""")
    lowered = lower(module, GENERIC, Phase.QNN)
    int8 = np.dtype(np.int8)
    assert lowered.inputs == (Port("image", (1, 4), int8, 0.5, -3), Port("arg1", (1, 4), int8, None, None))
    assert lowered.outputs == (Port("scores", (1, 4), int8, 0.25, None),)


def test_the_main_function_is_found() -> None:
    relay = "func.func @{name}(%x: tensor<4xi8>) -> tensor<4xi8> {{ return %x : tensor<4xi8> }}"
    assert lower(parse(relay.format(name="only")), GENERIC).kernels == 1
    both = parse("\n".join(relay.format(name=name) for name in ("other", "main")))
    assert lower(both, GENERIC).kernels == 1
    with pytest.raises(CompileError, match=r"one function, or one named main, .* but got 2"):
        lower(parse("\n".join(relay.format(name=name) for name in ("other", "another"))), GENERIC)


@st.composite
def convolutions(draw: st.DrawFn) -> ir.Module:
    """A convolution of any geometry, alone or with another one after it, its input and output a user's arrays."""
    groups, depth = draw(st.sampled_from([1, 2, 3, 4, 8])), draw(st.sampled_from([1, 2, 3, 4, 8]))
    width = draw(st.sampled_from([1, 2, 8, 12]))
    kernel, strides, dilation = (draw(st.tuples(st.integers(1, 3), st.integers(1, 3))) for _ in range(3))
    padding = draw(st.just((0, 0, 0, 0)) | st.tuples(*[st.integers(0, 2)] * 4))
    sizes = [draw(st.integers(0, 3)) + 1 + dilation[i] * (kernel[i] - 1) for i in range(2)]
    weight = draw(st.sampled_from([0, 3]))
    shape = (groups * width, *kernel, depth)

    def body(x: ir.Value) -> ir.Value | list[ir.Value]:
        taps = np.arange(math.prod(shape), dtype=np.int64).reshape(shape) % 256 - 128
        result = requantize(
            conv(
                x,
                weight=constant(taps.astype(np.int8)),
                weight_scales=(0.01,),
                weight_zero_points=(weight,),
                strides=strides,
                dilation=dilation,
                padding=padding,
                groups=groups,
            ),
            weight_scales=(0.01,),
        )
        # A value that is returned and read again may live in a user's array too.
        return [result, fused(result, padding=(1, 1, 1, 1), weight_scales=WEIGHT_SCALES)]

    element = draw(st.sampled_from(["i8", "ui8"]))
    return graph([f"tensor<2x{sizes[0]}x{sizes[1]}x{groups * depth}x{element}>"], body)


def reshaped() -> ir.Module:
    """A user's array under another shape, as the data of a convolution whose groups are no whole K groups."""

    def body(x: ir.Value) -> ir.Value:
        image = build(ReshapeOp, x, element="ui8", shape=(1, 1, 1, 8)).output
        weight = constant(np.ones((32, 1, 1, 2), np.int8))
        accumulators = conv(image, weight=weight, weight_scales=(0.01,), padding=(0, 0, 0, 0), groups=4)
        return requantize(accumulators, weight_scales=(0.01,))

    return graph(["tensor<8xui8>"], body)


def functions_of(module: ir.Module) -> dict[str, ir.Operation]:
    return {ir.StringAttr(op.attributes["sym_name"]).value: op.operation for op in module.body.operations}


def number(index: ir.Value, actuals: Sequence[ir.Value]) -> int:
    """An index of a kernel that is a sum of constants and of numbers handed to it."""
    if isinstance(index, ir.BlockArgument):
        return number(actuals[index.arg_number], ())
    owner = index.owner
    assert isinstance(owner, ir.OpView)
    if owner.operation.name == "arith.addi":
        return sum(number(operand, actuals) for operand in owner.operands)
    return ir.IntegerAttr(owner.attributes["value"]).value


def acc_range(view: ir.Operation, actuals: Sequence[ir.Value]) -> tuple[int, int]:
    """First and last element that a `memref.reinterpret_cast` shows, in a kernel that gets `actuals`."""
    offsets, sizes, strides = (
        list(ir.DenseI64ArrayAttr(view.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    offset = number(view.operands[1], actuals) if len(view.operands) > 1 else offsets[0]
    steps = [(size - 1) * stride for size, stride in zip(sizes, strides, strict=True)]
    return offset + sum(step for step in steps if step < 0), offset + sum(step for step in steps if step > 0)


def spare_bytes(actual: ir.Value, arena: ir.Value) -> int:
    """What may be read beyond a buffer handed to a kernel: nothing of a user's array nor of the constants."""
    owner = actual.owner
    return EXTRA_BYTES if not isinstance(owner, ir.Block) and owner.operands[0] == arena else 0


@settings(max_examples=60)
@given(convolutions())
@example(reshaped())
def test_no_view_leaves_its_buffer(module: ir.Module) -> None:
    linalg = compile_to(module, Phase.LINALG, GENERIC)
    functions = functions_of(linalg)
    arena = functions["main"].regions[0].blocks[0].arguments[-1]
    for call in walk(functions["main"]):
        if call.name != "func.call":
            continue
        kernel = functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value]
        for formal, actual in zip(kernel.regions[0].blocks[0].arguments, call.operands, strict=True):
            for use in formal.uses:
                if use.owner.operation.name != "memref.reinterpret_cast":
                    continue
                first, last = acc_range(use.owner.operation, list(call.operands))
                assert first >= 0
                assert last < ir.MemRefType(formal.type).shape[0] + spare_bytes(actual, arena), use.owner


def test_the_arena_is_aligned_and_holds_what_may_be_read() -> None:
    lowered = lower(chain(), GENERIC, Phase.LINALG)
    arena = functions_of(lowered.module)["main"].regions[0].blocks[0].arguments[-1]
    ends: list[int] = []
    for use in arena.uses:
        view = use.owner.operation
        constant_op = view.operands[1].owner
        assert isinstance(constant_op, ir.OpView)
        offset = ir.IntegerAttr(constant_op.attributes["value"]).value
        assert offset % ALIGNMENT == 0
        ends.append(offset + ir.MemRefType(view.results[0].type).shape[0] + EXTRA_BYTES)
    assert max(ends) == lowered.arena_bytes
