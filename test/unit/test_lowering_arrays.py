"""Kernels that read and write users' arrays as they are: nothing is copied, whatever the rows and the sign."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, TABLE, check, ends, quantization, tensor
from graphs import graph
from quantized_layers import add, conv
from together import variants_together

from qdialect.arithmetic import Rounding
from qdialect.dialect import ArgMaxOp, LutOp, MaxPool2DOp, MeanOp, ReduceMaxOp, build
from qdialect.dialect.type_constraints import element_of
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.targets import TARGETS

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


def both_ways(value: ir.Value) -> list[ir.Value]:
    """A result that is read again, returned twice, and an argument that is returned as it is."""
    first = table(value)
    return [first, same_values(first), first, value]


def labels(module: ir.Module) -> set[str]:
    return {label.split()[0] for label in lower(module, TARGETS["generic"], Phase.LINALG).labels}


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
@pytest.mark.parametrize("body", [table, same_values, sums, extremes, mean])
def test_nothing_is_copied(body: Callable[[ir.Value], Any], element: str) -> None:
    module = graph([tensor(SHAPE, element)], body)
    check(module)
    assert not labels(module) & {"input", "output"}


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_results_may_be_read_and_returned_again(element: str) -> None:
    check(graph([tensor(SHAPE, element)], both_ways))


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_one_reader_that_needs_stored_values_is_enough_for_a_copy(element: str) -> None:
    low, high = ends(element)

    def body(value: ir.Value) -> list[ir.Value]:
        window: dict[str, Any] = {"kernel": (2, 2), "strides": (1, 1), "padding": (0, 0, 0, 0)}
        bounds: dict[str, Any] = {"output_min": low, "output_max": high}
        return [table(value), build(MaxPool2DOp, value, element=element, **window, **bounds).output]

    module = graph([tensor(SHAPE, element)], body)
    check(module)
    assert {"input", "output"} <= labels(module)


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_what_windows_alone_read_has_rows_without_padding_lanes(element: str) -> None:
    module = graph([tensor(SHAPE, element)], lambda value: conv(table(value), input_zero_point=3))
    check(module)
    lowered = lower(module, TARGETS["generic"], Phase.LINALG)
    assert [size for kind, size in lowered.buffers if kind == "i8"] == [7 * 9 * 3]
