"""Merging axes never changes which elements are visited, nor their order."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.lowering.ir.strides import Axis, collapse


@st.composite
def axis_lists(draw: st.DrawFn) -> list[Axis]:
    """Axes of two operands; strides are often those of a dense array, so that neighbours merge."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=0, max_size=5))
    axes: list[Axis] = []
    dense = [1, 1]
    for size in reversed(sizes):
        strides = tuple(step if draw(st.booleans()) else draw(st.integers(0, 6)) for step in dense)
        axes.insert(0, Axis(size, strides))
        dense = [stride * size for stride in strides]
    return axes


def visited(axes: Sequence[Axis], operand: int) -> NDArray[np.int64]:
    """Offsets of an operand in the order in which a loop nest of `axes` visits them."""
    offsets = np.zeros(1, np.int64)
    for axis in axes:
        offsets = (offsets[:, None] + np.arange(axis.size) * axis.strides[operand]).reshape(-1)
    return offsets


@given(axis_lists())
def test_collapsing_keeps_the_walk(axes: list[Axis]) -> None:
    merged = collapse(axes)
    for operand in range(2):
        np.testing.assert_array_equal(visited(axes, operand), visited(merged, operand))


@given(axis_lists())
def test_what_is_collapsed_cannot_be_collapsed_further(axes: list[Axis]) -> None:
    merged = collapse(axes)
    assert collapse(merged) == merged
    assert all(axis.size > 1 for axis in merged)
    for outer, inner in pairwise(merged):
        assert any(wide != inner.size * narrow for wide, narrow in zip(outer.strides, inner.strides, strict=True))


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        pytest.param([Axis(3, (4,)), Axis(4, (1,))], [Axis(12, (1,))], id="dense"),
        pytest.param([Axis(3, (5,)), Axis(4, (1,))], [Axis(3, (5,)), Axis(4, (1,))], id="gap"),
        pytest.param([Axis(3, (2,)), Axis(4, (1,))], [Axis(3, (2,)), Axis(4, (1,))], id="overlap"),
        pytest.param([Axis(3, (4, 9)), Axis(4, (1, 1))], [Axis(3, (4, 9)), Axis(4, (1, 1))], id="one-operand-objects"),
        pytest.param([Axis(3, (0,)), Axis(4, (0,))], [Axis(12, (0,))], id="broadcast"),
        pytest.param([Axis(1, (7,)), Axis(4, (1,)), Axis(1, (9,))], [Axis(4, (1,))], id="unit-axes-vanish"),
        pytest.param([Axis(1, (7,))], [], id="nothing-left"),
        pytest.param([Axis(2, (12,)), Axis(3, (4,)), Axis(4, (1,))], [Axis(24, (1,))], id="three-into-one"),
    ],
)
def test_when_axes_merge(axes: list[Axis], expected: list[Axis]) -> None:
    assert collapse(axes) == expected
