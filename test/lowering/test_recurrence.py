"""Recurrent cells and resizing: compiled they are the reference."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import Attributes, check, check_variants, tensor, variants_together
from drawn_graphs import graph
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.arithmetic.choices import Coordinates, Interpolation
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import ELEMENT_RANGES
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter
from qdialect.reference.interpreter import run
from qdialect.runtime import compile_module

Array = NDArray[Any]
# More weights than the first level holds.
LARGE = [(5, 1, 96), (4, 3, 112)]
SIZES = [(5, 1, 19), (3, 2, 16), (4, 9, 8), (2, 1, 96), (3, 17, 33), (2, 1, 1), *LARGE]


def numbers(*shape: int, seed: int = 0) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) * 0.5).astype(np.float32)


def weights_of(hidden: int, dtype: type[np.integer[Any]] = np.int8) -> tuple[Array, Array]:
    """Weights [H, 4 * H] over the whole range of `dtype`, and scales."""
    random, limits = np.random.default_rng(4), np.iinfo(dtype)
    weights = random.integers(limits.min, limits.max, (hidden, 4 * hidden), dtype, endpoint=True)
    return weights, random.uniform(0.001, 0.01, 4 * hidden).astype(np.float32)


def module_of(
    sizes: tuple[int, int, int],
    dtype: type[np.integer[Any]] = np.int8,
    points: tuple[int, ...] = (0,),
    **attributes: Any,
) -> ir.Module:
    """Gates and initial states are arguments."""
    steps, batch, hidden = sizes
    types = [tensor((steps, batch, 4 * hidden), "f32"), tensor((batch, 2 * hidden), "f32")]
    weights, scales = weights_of(hidden, dtype)

    def body(*values: ir.Value) -> ir.Value:
        operands = (values[0], constant(weights), values[1], constant(scales))
        return qnn.build(qnn.DynamicLstmOp, *operands, element="f32", weight_zero_points=points, **attributes).output

    return graph(types, body)


@variants_together
@pytest.mark.parametrize("number", range(len(SIZES)))
def test_sizes(number: int) -> None:
    check(module_of(SIZES[number], reverse=bool(number % 2)))


@variants_together
@pytest.mark.parametrize("point", [0, 1, 128, 255])
def test_zero_points_of_unsigned_weights(point: int) -> None:
    check(module_of((3, 2, 21), np.uint8, (point,)))


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_zero_points_by_column(dtype: type[np.integer[Any]]) -> None:
    limits = np.iinfo(dtype)
    points = np.random.default_rng(5).integers(limits.min, limits.max, 4 * 18, endpoint=True)
    check(module_of((3, 3, 18), dtype, tuple(points.tolist())))


def test_limits_of_gates_and_other_functions() -> None:
    functions = dict.fromkeys(("gate_activation", "cell_activation", "output_activation"), "relu")
    check(module_of((3, 2, 7), clip=0.25, **functions))


def test_sums_that_float32_does_not_hold_are_exact() -> None:
    """600 products of 255 and 255 exceed 2^24: they are summed up as integers, and rounded once."""
    hidden, gates = 600, np.zeros((1, 1, 2400), np.float32)
    initial = np.ones((1, 1200), np.float32)
    weights = np.full((hidden, 4 * hidden), 255, np.uint8)
    weights[0] = np.arange(4 * hidden) % 256

    def body(*values: ir.Value) -> ir.Value:
        scales = constant(np.full(4 * hidden, 2.0**-26, np.float32))
        operands = (values[0], constant(weights), values[1], scales)
        return qnn.build(
            qnn.DynamicLstmOp, *operands, element="f32", gate_activation="relu", cell_activation="relu"
        ).output

    module = graph([tensor(gates.shape, "f32"), tensor(initial.shape, "f32")], body)
    (wanted,) = interpreter.run(module, [gates, initial])
    np.testing.assert_array_equal(compile_module(module)(gates, initial), wanted)
    sums = 255 * weights.astype(np.int64).sum(axis=0)
    assert sums.max() > 2**24
    scale = np.float32(1) / np.float32(255)
    i, f, g, _ = np.split(sums.astype(np.float32) * (scale * np.float32(2.0**-26)), 4)
    np.testing.assert_array_equal(wanted[1, 0, hidden:], f * np.float32(1) + i * g)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_become_bounds(value: float) -> None:
    module, gates, initial = module_of((2, 2, 9)), numbers(2, 2, 36), numbers(2, 18, seed=1)
    initial[1, 3] = value
    (wanted,) = interpreter.run(module, [gates, initial])
    np.testing.assert_array_equal(compile_module(module)(gates, initial), wanted)


# Recurrent cells: compiled they are the reference.

CELLS: tuple[type[qnn.F32RecurrentOp], ...] = (qnn.F32LstmOp, qnn.F32GruOp, qnn.F32RnnOp)
CELL_SIZES = [(5, 1, 19), (3, 2, 16), (4, 9, 8), (1, 3, 5), (2, 1, 96), (3, 17, 33)]


def cell_module(op: type[qnn.F32RecurrentOp], sizes: tuple[int, int, int], **attributes: Any) -> ir.Module:
    """Gates and initial states are arguments, weights constants."""
    steps, batch, hidden = sizes
    types = [tensor((steps, batch, op.gate_count * hidden), "f32"), tensor((batch, op.state_count * hidden), "f32")]

    def body(*values: ir.Value) -> ir.Value:
        weights = constant(numbers(hidden, op.gate_count * hidden, seed=2))
        bias = [constant(numbers(hidden, seed=3))] if attributes.get("reset_after") else []
        return qnn.build(op, values[0], weights, values[1], *bias, element="f32", **attributes).output

    return graph(types, body)


@variants_together
@pytest.mark.parametrize("number", range(len(CELL_SIZES)))
@pytest.mark.parametrize("op", CELLS)
def test_cells(op: type[qnn.F32RecurrentOp], number: int) -> None:
    check(cell_module(op, CELL_SIZES[number], reverse=bool((number + CELLS.index(op)) % 2)))


@variants_together
@pytest.mark.parametrize("sizes", CELL_SIZES)
def test_a_unit_that_resets_after_its_product(sizes: tuple[int, int, int]) -> None:
    check(cell_module(qnn.F32GruOp, sizes, reset_after=True))


def test_a_long_sequence_is_one_kernel_with_a_loop_of_lowering() -> None:
    """However long it is, the code is the same."""
    gates, initial = numbers(500, 1, 64), numbers(1, 32, seed=1)
    module = cell_module(qnn.F32LstmOp, (500, 1, 16))
    executable = compile_module(module)
    assert len(executable.calls) == 1
    np.testing.assert_array_equal(executable(gates, initial), interpreter.run(module, [gates, initial])[0])


# Compiled resized images equal the reference on every shape and arithmetic.


SHAPES = [
    ((2, 5, 7, 19), (13, 3)),
    ((1, 16, 16, 16), (32, 32)),
    ((1, 1, 1, 64), (3, 2)),
    ((1, 4, 6, 1), (7, 1)),
    ((3, 1, 9, 70), (1, 4)),
    # Eighths, each cell of the input eight times; then quarters that follow no pattern.
    ((1, 5, 9, 21), (33, 65)),
    ((2, 5, 8, 40), (3, 5)),
    # Half pixels of eighths: 8 fraction bits in all.
    ((1, 2, 3, 21), (16, 24)),
]


TAKEN = [
    ("i8", Interpolation.TFLITE_FIXED),
    ("ui8", Interpolation.TFLITE_FIXED),
    ("i8", Interpolation.XNNPACK_FIXED),
    ("ui8", Interpolation.XNNPACK_FIXED),
    ("ui8", Interpolation.TFLITE_FLOAT),
    ("f32", Interpolation.TFLITE_FLOAT),
    ("i8", Interpolation.ONNX_FLOAT),
    ("ui8", Interpolation.ONNX_FLOAT),
    ("f32", Interpolation.ONNX_FLOAT),
]


@variants_together
@pytest.mark.parametrize("arithmetic", range(len(TAKEN)))
@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_bilinear(shape: int, arithmetic: int) -> None:
    """Every arithmetic and every shape meets each way to place pixels."""
    (extents, size), (element, how) = SHAPES[shape], TAKEN[arithmetic]
    places = (Coordinates.ASYMMETRIC, Coordinates.HALF_PIXEL, Coordinates.ALIGN_CORNERS)
    variant: Attributes = {"size": size, "coordinates": places[(shape + arithmetic) % 3], "arithmetic": how}
    check_variants(qnn.ResizeBilinearOp, [tensor(extents, element)], element, [variant])


@pytest.mark.parametrize(("element", "arithmetic"), [taken for taken in TAKEN if taken[0] != "f32"])
def test_bilinear_blends_of_extreme_values_fit_their_numbers(element: str, arithmetic: Interpolation) -> None:
    how: Attributes = {"size": (16, 24), "coordinates": Coordinates.HALF_PIXEL, "arithmetic": arithmetic}
    module = graph(
        [tensor((1, 2, 3, 35), element)],
        lambda image: qnn.build(qnn.ResizeBilinearOp, image, element=element, **how).output,
    )
    lowest, highest = ELEMENT_RANGES[element]
    executable = compile_module(module)
    for left, right in ((highest, highest), (lowest, highest), (highest, lowest), (lowest, lowest)):
        image = np.full((1, 2, 3, 35), left, np.uint8 if element == "ui8" else np.int8)
        image[:, 1, 1:] = right
        np.testing.assert_array_equal(executable(image), run(module, [image])[0])


COORDINATES: Attributes = {"coordinates": Coordinates.ALIGN_CORNERS, "arithmetic": Interpolation.TFLITE_FIXED}


def _arg_of_resized(element: str, shape: tuple[int, ...], size: tuple[int, int], **attributes: Any) -> ir.Module:
    """Few distinct quantized values, so that many are equal."""
    low = ELEMENT_RANGES[element][0]

    def body(image: ir.Value) -> ir.Value:
        values = qnn.build(qnn.ClipOp, image, element=element, min=low + 126, max=low + 129).output
        resized = qnn.build(qnn.ResizeBilinearOp, values, element=element, size=size, **COORDINATES).output
        return qnn.build(attributes["op"], resized, element="i64", **attributes["how"]).output

    return graph([tensor(shape, element)], body)


@variants_together
@pytest.mark.parametrize("op", [qnn.ArgMaxOp, qnn.ArgMinOp])
@pytest.mark.parametrize(
    ("shape", "size"),
    [((1, 5, 9, 21), (33, 65)), ((2, 5, 7, 3), (13, 3)), ((1, 3, 5, 40), (5, 7)), ((2, 2, 3, 300), (3, 5))],
)
def test_extreme_channel_of_a_resized_image(op: Any, shape: tuple[int, ...], size: tuple[int, int]) -> None:
    for element, last, keep_dims in (("i8", False, False), ("ui8", True, True)):
        how = {"axis": 3, "last": last, "keep_dims": keep_dims}
        check(_arg_of_resized(element, shape, size, op=op, how=how))
