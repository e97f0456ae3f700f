"""R12: convolution and dense whose weights are known at run time alone, fused and alone, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest
from compiled_ops import check, drawn, tensor
from graphs import failures, graph
from quantized_layers import add, fused, lut, random_table, requantize

from qdialect.dialect import ClipOp, Conv2DOp, ConvTranspose2DOp, DenseOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import ELEMENT_RANGES, dtype_of, element_of
from qdialect.ir._mlir import ir
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.fuse_requantize import FuseRequantizePass
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter
from qdialect.runtime import compile_module


@dataclass(frozen=True)
class Case:
    """A convolution: element types, shapes of data and weights [OC, KH, KW, IC], how the window moves, zero points."""

    elements: tuple[str, str]
    data: tuple[int, ...]
    weight: tuple[int, ...]
    points: tuple[int, tuple[int, ...]]
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    def types(self) -> list[str]:
        depth = (*self.weight[:-1], self.weight[-1] // self.groups)
        return [tensor(shape, element) for shape, element in zip((self.data, depth), self.elements, strict=True)]

    def sums(self, data: ir.Value, weight: ir.Value) -> ir.Value:
        bias = constant(np.arange(self.weight[0], dtype=np.int32) * 1000 - 700)
        return build(
            Conv2DOp, data, weight, bias, element="i32", input_scale=0.02, input_zero_point=self.points[0],
            weight_scales=(0.01,), weight_zero_points=self.points[1], strides=self.strides, padding=self.padding,
            dilation=self.dilation, groups=self.groups,
        ).output  # fmt: skip


CASES = (
    Case(("i8", "i8"), (1, 5, 5, 3), (5, 3, 3, 3), (-3, (0,)), padding=(1, 1, 1, 1)),
    Case(("ui8", "ui8"), (2, 7, 6, 5), (7, 3, 2, 5), (200, (128,)), (2, 1), (0, 1, 2, 0), (1, 2)),
    Case(("i8", "ui8"), (1, 6, 7, 6), (9, 2, 3, 6), (-128, tuple(range(100, 109))), (1, 2), (1, 0, 0, 1), (2, 1), 3),
    Case(("i8", "i8"), (1, 4, 3, 17), (19, 1, 1, 17), (7, (-5,))),
    Case(("ui8", "i8"), (1, 3, 3, 1), (2, 3, 3, 1), (255, (-128, 127)), padding=(2, 2, 2, 2)),
    # The weights of one tap suit the first cache, those of all taps do not: tiles follow all of them.
    Case(("ui8", "i8"), (1, 3, 3, 192), (160, 3, 3, 192), (3, (5,))),
)

DEPTHWISE = (
    Case(("ui8", "i8"), (1, 8, 7, 24), (24, 3, 3, 24), (7, (0,)), padding=(1, 1, 1, 1), groups=24),
    Case(("i8", "ui8"), (2, 7, 9, 5), (5, 3, 2, 5), (-128, tuple(range(250, 255))), (2, 1), (0, 1, 2, 0), (1, 2), 5),
    Case(("ui8", "ui8"), (1, 5, 6, 33), (33, 1, 3, 33), (255, (255,)), (1, 2), (0, 2, 0, 0), groups=33),
    Case(("i8", "i8"), (1, 9, 9, 16), (16, 5, 5, 16), (127, tuple(range(-128, -112))), padding=(2, 2, 2, 2), groups=16),
    # Stored as they are, the zero point is 0; one pixel, one tap.
    Case(("ui8", "i8"), (1, 1, 1, 2), (2, 1, 1, 2), (0, (127,)), groups=2),
    Case(("ui8", "ui8"), (3, 11, 1, 47), (47, 7, 1, 47), (1, (3,)), padding=(3, 0, 3, 0), groups=47),
)


def rescaled(value: ir.Value, element: str) -> ir.Value:
    return requantize(value, element, weight_scales=(0.01,))


def convolutions(cases: Sequence[Case], *, alone: bool) -> ir.Module:
    """All cases as one module with an argument for each operand; `alone` without requantization."""

    def body(*arguments: ir.Value) -> list[ir.Value]:
        pairs = zip(arguments[::2], arguments[1::2], strict=True)
        sums = [case.sums(*pair) for case, pair in zip(cases, pairs, strict=True)]
        return sums if alone else [rescaled(sum_, case.elements[0]) for case, sum_ in zip(cases, sums, strict=True)]

    return graph([type_ for case in cases for type_ in case.types()], body)


def test_fused_convolutions() -> None:
    module = convolutions(CASES, alone=False)
    PassManager(FuseQnnPass()).run(module)
    assert str(module).count("qnn.fused_conv2d") == len(CASES)
    check(module)


def test_depthwise_convolutions_have_a_kernel_of_their_own() -> None:
    module = convolutions(DEPTHWISE, alone=False)
    PassManager(FuseQnnPass()).run(module)
    check(module)
    # A dense kernel would multiply by the weights of all channels.
    compiled = compile_module(module)
    calls = [call for call in compiled.calls if call.label == "qnn.fused_conv2d"]
    assert len(calls) == len(DEPTHWISE)
    sizes = [prod((*port.shape, *case.weight[1:3])) for port, case in zip(compiled.outputs, DEPTHWISE, strict=True)]
    assert sorted(call.macs for call in calls) == sorted(sizes)


@pytest.mark.parametrize("case", [CASES[1], *DEPTHWISE])
def test_accumulators_at_the_ends_of_the_ranges(case: Case) -> None:
    module = convolutions([case], alone=True)
    types = [ir.RankedTensorType(value.type) for value in module.body.operations[0].regions[0].blocks[0].arguments]
    ends = [(*ELEMENT_RANGES[element_of(type_)], type_) for type_ in types]
    check(
        module,
        [np.full(type_.shape, low, dtype_of(type_)) for low, _, type_ in ends],
        [np.full(type_.shape, high, dtype_of(type_)) for _, high, type_ in ends],
        [np.full(type_.shape, (low, high)[i % 2], dtype_of(type_)) for i, (low, high, type_) in enumerate(ends)],
    )


DENSE = (
    (("i8", "ui8"), (2, 3, 9), 17, (-3, (77,))),
    (("i8", "i8"), (2, 2, 33), 3, (1, (1, 2, 3))),
)


def test_dense() -> None:
    types = [
        type_
        for elements, shape, channels, _ in DENSE
        for type_ in (tensor(shape, elements[0]), tensor((channels, shape[-1]), elements[1]))
    ]

    def body(*arguments: ir.Value) -> list[ir.Value]:
        results: list[ir.Value] = []
        for index, (elements, _, _, (point, points)) in enumerate(DENSE):
            attributes: dict[str, Any] = {"weight_scales": (0.01,), "weight_zero_points": points}
            data, weight = arguments[2 * index : 2 * index + 2]
            sums = build(
                DenseOp, data, weight, None, element="i32", input_scale=0.02, input_zero_point=point, **attributes
            )
            results.append(rescaled(sums.output, elements[0]))
        return results

    module = graph(types, body)
    PassManager(FuseQnnPass()).run(module)
    assert str(module).count("qnn.fused_dense") == len(DENSE)
    check(module)


def test_weights_that_the_network_computes_and_stages_after_them() -> None:
    case = Case(("ui8", "i8"), (1, 5, 5, 4), (5, 3, 3, 4), (3, (0,)), padding=(1, 1, 1, 1))

    def body(data: ir.Value, weight: ir.Value) -> ir.Value:
        limited = build(ClipOp, weight, element="i8", min=-100, max=90).output
        quantized = rescaled(case.sums(data, limited), "ui8")
        return lut(add(quantized, fused(quantized, input_scale=0.05)), random_table())

    module = graph(case.types(), body)
    PassManager(FuseQnnPass()).run(module)
    check(module)


def test_data_that_is_its_own_weight() -> None:
    case = Case(("ui8", "ui8"), (3, 2, 2, 3), (3, 2, 2, 3), (4, (4,)), padding=(1, 1, 0, 1))
    check(graph(case.types()[:1], lambda value: case.sums(value, value)))


@pytest.mark.parametrize(
    "case",
    [
        Case(("i8", "i8"), (1, 24, 24, 8), (24, 3, 3, 8), (5, (-7,)), padding=(1, 1, 1, 1)),
        Case(("i8", "i8"), (1, 48, 48, 64), (64, 3, 3, 64), (5, (-7,)), padding=(1, 1, 1, 1), groups=64),
    ],
)
def test_threads_share_the_work(case: Case) -> None:
    module = convolutions([case], alone=False)
    compiled = compile_module(module, threads=2)
    rng = np.random.default_rng(5)
    inputs = [drawn(port.dtype, port.shape, rng) for port in compiled.inputs]
    np.testing.assert_array_equal(compiled(*inputs), interpreter.run(module, inputs)[0])


def test_a_transposed_convolution_needs_constant_weights() -> None:
    def body(data: ir.Value, weight: ir.Value) -> ir.Value:
        sums = build(
            ConvTranspose2DOp, data, weight, None, element="i32", input_scale=0.02, input_zero_point=0,
            weight_scales=(0.01,),
        ).output  # fmt: skip
        return rescaled(sums, "ui8")

    module = graph(["tensor<1x3x3x2xui8>", "tensor<4x2x2x2xi8>"], body)
    assert failures(module, FuseRequantizePass()) == ["[fuse-requantize] 'qnn.requantize' needs a constant weight"]
