"""Where buffers lie: in the arena, and in arrays of users."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, TABLE, check, ends, quantization, variants_together
from compiled_ops import tensor as tensor_type
from drawn_graphs import graph
from drawn_numbers import check_plan, lifetimes
from hypothesis import given
from hypothesis import strategies as st
from quantized_layers import add, conv

from qdialect.arithmetic import Rounding
from qdialect.dialect import ArgMaxOp, F32SumOp, LutOp, MaxPool2DOp, MeanOp, ReduceMaxOp, ReshapeOp, build
from qdialect.dialect.type_constraints import element_of
from qdialect.ir._mlir import arith, ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.program.program import Lifetime, peak, plan_arena
from qdialect.targets import TARGETS


@given(lifetimes(), st.sampled_from([1, 16, 64]))
def test_buffers_that_live_together_are_apart(buffers: list[Lifetime], alignment: int) -> None:
    check_plan(buffers, alignment, *plan_arena(buffers, alignment))


@given(lifetimes(), st.sampled_from([1, 16, 64]))
def test_the_arena_is_no_larger_than_all_buffers_in_a_row(buffers: list[Lifetime], alignment: int) -> None:
    _, size = plan_arena(buffers, alignment)
    assert size <= sum(-(-own.size // alignment) * alignment for own in buffers)
    assert size >= max((own.size for own in buffers), default=0)


@given(lifetimes())
def test_the_peak_is_that_of_the_fullest_step(buffers: list[Lifetime]) -> None:
    steps = [sum(own.size for own in buffers if own.first <= step <= own.last) for step in range(10)]
    assert peak(buffers) == max(steps)
    assert plan_arena(buffers, 1)[1] >= peak(buffers)


# Kernels that read and write users' arrays as they are: nothing is copied, whatever the rows and the sign.

SHAPE = (1, 5, 7, 3)


def table(value: ir.Value) -> ir.Value:
    element = element_of(value.type)
    return build(LutOp, value, element=element, table=TABLE, **quantization(element, element)).output


def same_values(value: ir.Value) -> ir.Value:
    """To the other sign, at the same position in the range: between stored quantized values nothing changes."""
    source, target = element_of(value.type), "ui8" if element_of(value.type) == "i8" else "i8"
    values = np.roll(np.arange(256), 128).astype(np.uint8)
    return build(LutOp, value, element=target, table=values, **quantization(source, target)).output


def sums(value: ir.Value) -> list[ir.Value]:
    total = add(value, value, element_of(value.type))
    return [total, table(total)]


def extremes(value: ir.Value) -> list[ir.Value]:
    element = element_of(value.type)
    where = build(ArgMaxOp, value, element="i64", axis=3, keep_dims=False, last=False).output
    return [where, build(ReduceMaxOp, value, element=element, axes=(1,), keep_dims=False).output]


def mean(value: ir.Value) -> ir.Value:
    element = element_of(value.type)
    scales = quantization(element, element)
    attributes: dict[str, Any] = {"axes": (1, 2), "keep_dims": False, "rounding": Rounding.FIXED64_UP, **scales}
    return build(MeanOp, value, element=element, **attributes).output


def labels(module: ir.Module) -> set[str]:
    return {label.split()[0] for label in lower(module, TARGETS["generic"], Phase.LINALG).labels}


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
@pytest.mark.parametrize("body", [table, same_values, sums, extremes, mean])
def test_nothing_is_copied(body: Callable[[ir.Value], Any], element: str) -> None:
    module = graph([tensor_type(SHAPE, element)], body)
    check(module)
    assert not labels(module) & {"input", "output"}


def test_the_operand_of_a_last_reshape_is_written_where_its_result_is() -> None:
    """Also where it is returned twice; what another op reads too is copied."""

    def body(x: ir.Value) -> list[ir.Value]:
        alone, read = arith.addf(x, x), arith.mulf(x, x)
        first, second = (build(ReshapeOp, one, element="f32", shape=(6, 8)).output for one in (alone, read))
        other = build(F32SumOp, read, element="f32", axes=(0,)).output
        return [first, first, second, other]

    module = graph(["tensor<3x16xf32>"], body)
    check(module)
    copied = [one for one in lower(module, TARGETS["generic"], Phase.LINALG).labels if one.startswith("output")]
    assert copied == ["output 1", "output 2"]


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_one_reader_that_needs_stored_values_is_enough_for_a_copy(element: str) -> None:
    low, high = ends(element)

    def body(value: ir.Value) -> list[ir.Value]:
        window: dict[str, Any] = {"kernel": (2, 2), "strides": (1, 1), "padding": (0, 0, 0, 0)}
        bounds: dict[str, Any] = {"output_min": low, "output_max": high}
        return [table(value), build(MaxPool2DOp, value, element=element, **window, **bounds).output]

    module = graph([tensor_type(SHAPE, element)], body)
    check(module)
    assert {"input", "output"} <= labels(module)


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_images_of_windows_alone_have_rows_without_padding_lanes(element: str) -> None:
    module = graph([tensor_type(SHAPE, element)], lambda value: conv(table(value), input_zero_point=3))
    check(module)
    lowered = lower(module, TARGETS["generic"], Phase.LINALG)
    assert [size for kind, size in lowered.buffers if kind == "i8"] == [7 * 9 * 3]
