"""Products with weights in blocks and rows of such weights: compiled for every kind of CPU they are the reference."""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np
import pytest
from compiled_ops import check_compiled, tensor
from drawn_graphs import graph
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from qdialect.arithmetic.block_weights import pack
from qdialect.dialect import (
    BlockDenseOp,
    BlockDynamicDenseOp,
    BlockGatherOp,
    BroadcastOp,
    F32Conv2DOp,
    F32MatmulOp,
    PadOp,
    ReshapeOp,
    build,
)
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import arith, ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference import interpreter
from qdialect.targets import TARGETS, host, host_features, resolve

HOST = host().name
EXECUTED = [name for name, target in TARGETS.items() if target.features <= host_features()]
PAIRS = "avx512bf16" if "avx512bf16" in EXECUTED else "avx512bf16,portable"
PORTABLE = [f"{name},portable" for name in ("avx512vbmi", "avxvnni", "avx2") if name not in EXECUTED]
I8: dict[str, Any] = {"activations": "i8_block", "order": "blocks"}
Case = tuple[int, int, int, str, str, dict[str, Any]]
CASES: Sequence[Case] = (
    # Channels, bits, block, scales, zero points, attributes; 100 terms.
    (72, 4, 32, "f16", "", {}),
    (3, 8, 100, "f32", "ui8", {"order": "scale_last"}),
    (45, 2, 16, "bf16", "ui8", {}),
    (9, 4, 48, "f16", "f32", {"order": "blocks"}),
    (13, 8, 32, "any", "ui8", {}),
    (29, 4, 32, "any", "ui8", {"rounded_products": True}),
    (72, 4, 32, "f16", "", I8),
    (21, 2, 32, "any", "ui8", {**I8, "activation_scale": "f16"}),
    (45, 8, 64, "f32", "ui8", {**I8, "activation_block": 32}),
    (5, 4, 100, "f16", "", {**I8, "activation_block": 48}),
)


def scales(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float32]:
    drawn = rng.normal(size=shape).astype(np.float32) * np.float32(0.01)
    if kind == "f16":
        drawn[0, 0] = 3e-7
        return drawn.astype(np.float16).astype(np.float32)
    if kind == "bf16":
        return (drawn.view(np.int32) & -(1 << 16)).view(np.float32)
    if kind == "any":
        drawn[0, 0], drawn[-1, -1] = 0, np.inf
    return drawn


def weights(case: Case, depth: int, rng: np.random.Generator) -> list[ir.Value]:
    channels, bits, block, kind, points, _ = case
    blocks = -(-depth // block)
    found = [pack(rng.integers(0, 1 << bits, (channels, depth)), bits), scales(kind, (channels, blocks), rng)]
    if points == "ui8":
        found.append(pack(rng.integers(0, 1 << bits, (channels, blocks)), bits))
    elif points:
        found.append(rng.normal(size=(channels, blocks)).astype(np.float32) * 3 + 8)
    return [constant(array) for array in found]


def products(shape: tuple[int, ...], cases: Sequence[Case] = CASES, *, are_chosen: bool = False) -> ir.Module:
    """Of data; if they `are_chosen`, of those for which a second input holds, and zeros."""
    rng = np.random.default_rng(5)

    def body(data: ir.Value, *conditions: ir.Value) -> list[ir.Value]:
        for condition in conditions:
            data = arith.select(condition, data, constant(np.broadcast_to(np.float32(-0.0), shape)))
        found: list[ir.Value] = []
        for case in cases:
            own, (_, bits, block, *_, attributes) = weights(case, shape[-1], rng), case
            block = min(block, shape[-1])
            product = build(BlockDenseOp, data, *own, element="f32", bits=bits, block=block, **attributes).output
            if case[0] % 2:
                found.append(product)
                continue
            # Bias and bound are computed in the kernel of the product.
            bias = constant(rng.normal(size=(case[0],)).astype(np.float32))
            bias = build(BroadcastOp, bias, element="f32", shape=shape_of(product.type)).output
            zeros = constant(np.broadcast_to(np.float32(0), shape_of(product.type)))
            found.append(arith.maximumf(arith.addf(product, bias), zeros))
        return found

    return graph([tensor(shape, "f32"), *([tensor(shape, "i1")] if are_chosen else [])], body)


@cache
def drawn(is_alike: bool) -> tuple[ir.Module, NDArray[np.float32], Sequence[NDArray[Any]]]:
    """Products, of integers alone where the others are as for another kind of CPU; data and results."""
    module = products(
        (3, 1, 100), [case for case in CASES if not is_alike or {"activations", "rounded_products"} & {*case[-1]}]
    )
    data = np.random.default_rng(1).normal(size=(3, 1, 100)).astype(np.float32)
    data[0, 0, 40], data[0, 0, 70], data[1, 0, :64] = np.inf, np.nan, 0
    # Ties, and a maximum so small that its reciprocal is infinite.
    data[2, 0, :32], data[2, 0, 48:64] = np.arange(-127, 129, 8) / 2, 1e-40
    return module, data, interpreter.run(module, [data])


@pytest.mark.parametrize("target", [*EXECUTED, *PORTABLE])
def test_compiled_products_are_the_reference(target: str) -> None:
    module, data, wanted = drawn(target in ("avx512bw", "avx512vnni", "avxvnni", "sse4.1"))
    check_compiled(module, target, [[data]], [wanted])


@pytest.mark.parametrize(("rows", "target"), [(14, HOST), (1, "avx2"), (5, "generic"), (99, HOST)])
def test_rows_of_zeros_are_passed_over(rows: int, target: str) -> None:
    """Those that are chosen may be zeros, too; weights that are not finite make no zeros of them."""
    module = products((rows, 100), [CASES[index] for index in (0, 3, 4, 6)], are_chosen=True)
    data = np.random.default_rng(1).normal(size=(rows, 100)).astype(np.float32)
    calls: list[list[NDArray[Any]]] = []
    for first in (0, rows // 2, rows - 1, rows):
        condition = np.zeros((rows, 100), np.bool_)
        condition[first:, 60:] = True
        calls.append([data, condition])
    check_compiled(module, target, calls, [interpreter.run(module, call) for call in calls])
    assert [call.label for call in lower(module, resolve(target), Phase.LINALG).calls].count("zeros") == 1


@pytest.mark.parametrize(
    ("shape", "count", "target"), [((20,), 9, HOST), ((5, 48), 9, HOST), ((41, 592), 1, HOST), ((36, 80), 1, "avx2")]
)
def test_any_number_of_rows_and_terms(shape: tuple[int, ...], count: int, target: str) -> None:
    cases = [case for case in CASES if case[2] % 16 == 0 and "activation_block" not in case[-1]]
    module = products(shape, cases[:count])
    data = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    name = target if TARGETS["avx2"].features <= host_features() else "generic"
    check_compiled(module, name, [[data]], [interpreter.run(module, [data])])


DYNAMIC: Sequence[Case] = [(72, 4, 32, "f16", "ui8", {}), (21, 2, 100, "any", "", {}), (45, 8, 48, "f32", "ui8", {})]
OFFSET: Sequence[Case] = [(72, 4, 32, "f16", "", {}), (21, 2, 48, "any", "", {}), (45, 8, 100, "f32", "", {})]


@pytest.mark.parametrize("target", [*EXECUTED, *PORTABLE])
def test_compiled_products_of_quantized_rows_are_the_reference(target: str) -> None:
    rng, rows = np.random.default_rng(7), (3, 1) if target in ("avx2", "generic") else (17, 1)
    types = [tensor((*rows, 100), "i8"), tensor((*rows, 1), "f32"), tensor((*rows, 1), "i8")]

    def body(data: ir.Value, scale: ir.Value, point: ir.Value) -> list[ir.Value]:
        found: list[ir.Value] = []
        # Of data plus 128 alone, too.
        offset = constant(np.ones(1, np.float32)), constant(np.full(1, -128, np.int8))
        for case, parameters in [*((case, (scale, point)) for case in DYNAMIC), *((case, offset) for case in OFFSET)]:
            weight, *own = weights(case, 100, rng)
            form: dict[str, Any] = {"bits": case[1], "block": case[2]}
            found.append(build(BlockDynamicDenseOp, data, weight, *parameters, *own, element="f32", **form).output)
        return found

    drawn = [rng.integers(-128, 128, (*rows, extent)).astype(np.int8) for extent in (100, 1)]
    drawn[0][0], drawn[1][:2] = -128, [[[127]], [[-128]]]
    inputs = [drawn[0], rng.normal(size=(*rows, 1)).astype(np.float32), drawn[1]]
    module = graph(types, body)
    check_compiled(module, target, [inputs], [interpreter.run(module, inputs)])


@pytest.mark.parametrize("target", [HOST, "generic"])
def test_compiled_rows_are_the_reference(target: str) -> None:
    rng, cases = (
        np.random.default_rng(6),
        [(72, 4, 32, "f16", ""), (45, 2, 16, "any", "ui8"), (11, 8, 48, "f32", "f32")],
    )

    def body(indices: ir.Value) -> list[ir.Value]:
        return [
            build(
                BlockGatherOp, indices, *weights((*case, {}), 100, rng), element="f32", bits=case[1], block=case[2]
            ).output
            for case in cases
        ]

    module, indices = graph([tensor((2, 5), "i64")], body), rng.integers(-80, 80, (2, 5))
    check_compiled(module, target, [[indices]], [interpreter.run(module, [indices])])


FLOATS = (
    (5, 70, 97, 1.0),
    (13, 1030, 100, 1e-9),
    (9, 35, 80, 1.0),
    (70, 36, 65, 1e-4),
    (6, 64, 64, 1e-39),
    (8, 40, 72, 1e-30),
    (6, 32, 64, 0),
)
"""Rows, terms, channels, and the size of the weights; 0 where all are 1 to 2."""
IMAGE, KINDS, SUBNORMAL = (1, 7, 10), 6, 3


def float_rows(rows: int, depth: int) -> list[NDArray[Any]]:
    """Rows of bf16 numbers: as drawn; of zeros and infinities, too; so small that sums are subnormal; subnormal.

    And of two numbers, just large enough for no sum of products with 1 to 2 to be subnormal, or just too small.
    """
    drawn, special = np.random.default_rng(7).normal(size=(2, rows, depth)).astype(np.float32)
    special[:, ::3], special[1, 4], special[2, :2] = 0, np.inf, np.nan
    small = drawn * np.where(np.arange(rows)[:, None] % 2, np.float32(1), np.float32(1e-36))
    close, apart = (np.zeros_like(drawn) for _ in range(2))
    close[:, :2] = np.array([1 + 2**-7, 1]) * 2.0**-113
    apart[:, :2] = close[:, :2] * 2
    return [array.astype(bfloat16) for array in (drawn, special, small, drawn * np.float32(2.0**-128), close, apart)]


@cache
def float_products() -> tuple[ir.Module, list[tuple[NDArray[Any], ...]], list[Sequence[NDArray[Any]]]]:
    """Products, rows and results."""

    def body(*data: ir.Value) -> list[ir.Value]:
        found: list[ir.Value] = []
        for value, (rows, depth, channels, size) in zip(data, FLOATS, strict=True):
            drawn = np.random.default_rng(8).normal(size=(depth, channels)) * size
            drawn[3, 64:] *= size
            if not size:
                drawn = 1 + np.arange(depth * channels).reshape(depth, channels) % 128 / 128
                drawn[:2] = [[1 + 2**-7], [-1 - 2**-6]]
            weight = drawn.astype(bfloat16).astype(np.float32)
            wide = arith.extf(ir.Type.parse(tensor((rows, depth), "f32")), value)
            found.append(build(F32MatmulOp, wide, constant(weight), element="f32").output)
            if rows == IMAGE[1] * IMAGE[2]:
                image = build(ReshapeOp, wide, element="f32", shape=(*IMAGE, depth)).output
                taps = constant(weight.T.reshape(channels, 1, 1, depth))
                found.append(build(F32Conv2DOp, image, taps, element="f32", strides=(1, 2)).output)
        return found

    module = graph([tensor((rows, depth), "bf16") for rows, depth, *_ in FLOATS], body)
    calls = [*zip(*(float_rows(rows, depth) for rows, depth, *_ in FLOATS), strict=True)]
    return module, calls, [interpreter.run(module, call) for call in calls]


@pytest.mark.parametrize("target", [PAIRS, "avx2", "generic"])
def test_products_of_bfloat16_numbers_are_the_reference(target: str) -> None:
    if target not in (*EXECUTED, PAIRS):
        pytest.skip("this CPU does not execute it")
    check_compiled(float_products()[0], target, *float_products()[1:])


WINDOWS: Sequence[tuple[tuple[int, int], dict[str, Any]]] = (
    ((3, 3), {}),
    ((2, 1), {"strides": (2, 1), "dilation": (3, 1)}),
    ((1, 3), {"strides": (1, 2)}),
)


@cache
def further_products() -> tuple[ir.Module, list[tuple[NDArray[Any], ...]], list[Sequence[NDArray[Any]]]]:
    """Of matrices that both are inputs, one or several to a matrix; and convolutions of images, perhaps padded."""
    shapes = (3, 37, 66), (3, 66, 97), (66, 80), (2, 7, 9, 16)

    def body(*data: ir.Value) -> list[ir.Value]:
        left, *right, image = (
            arith.extf(ir.Type.parse(tensor(shape, "f32")), one) for shape, one in zip(shapes, data, strict=True)
        )
        found = [build(F32MatmulOp, left, one, element="f32").output for one in right]
        padded = build(PadOp, image, element="f32", low=(0, 1, 1, 0), high=(0, 1, 2, 0), value=0).output
        for (height, width), how in WINDOWS:
            drawn = np.random.default_rng(9).normal(size=(67, height, width, 16))
            drawn[-3:] *= 1e-36
            taps = constant(drawn.astype(bfloat16).astype(np.float32))
            found += [build(F32Conv2DOp, one, taps, element="f32", **how).output for one in (image, padded)]
        return found

    def numbers(shape: tuple[int, ...], kind: int) -> NDArray[Any]:
        *outer, rows, depth = shape
        return float_rows(prod(outer) * rows, depth)[kind].reshape(shape)

    def call(kind: int, other: int) -> tuple[NDArray[Any], ...]:
        """The last kind of matrices tells whether sums of close rows are subnormal; subnormal ones meet large rows."""
        right = numbers((3, 97, 66), other) if other < KINDS else np.full((3, 97, 66), 1.5, bfloat16)
        if other == KINDS:
            right[..., :2] = 1 + 2**-7, -1 - 2**-6
        matrices = (np.ascontiguousarray(np.swapaxes(one, -1, -2)) for one in (right, right[0, :80]))
        scale = bfloat16(2.0**40 if other == SUBNORMAL else 1)
        return numbers(shapes[0], kind) * scale, *matrices, numbers(shapes[-1], kind)

    calls = [call(kind, other) for kind in range(KINDS) for other in ((kind + SUBNORMAL) % KINDS, KINDS)]
    module = graph([tensor(shape, "bf16") for shape in shapes], body)
    return module, calls, [interpreter.run(module, one) for one in calls]


@pytest.mark.parametrize("target", [PAIRS, "avx2", "generic"])
def test_further_products_of_bfloat16_numbers_are_the_reference(target: str) -> None:
    if target not in (*EXECUTED, PAIRS):
        pytest.skip("this CPU does not execute it")
    check_compiled(further_products()[0], target, *further_products()[1:])


def test_weights_stay_packed() -> None:
    module = products((1, 1024), [(256, 4, 32, "f16", "", {})])
    assert lower(module, resolve("avx512vbmi")).constants.size <= 1.1 * 256 * 1024 * (0.5 + 2 / 32)
