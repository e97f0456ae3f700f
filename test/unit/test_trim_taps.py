"""Kernels without the taps that meet padding alone give the same numbers, and keep every other tap."""

import numpy as np
import pytest
from graphs import Window, convolution, ops_of, run_both
from hypothesis import given
from hypothesis import strategies as st

from qdialect.dialect import Conv2DOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.passes.trim_taps import TrimTapsPass

SIZES, STEPS, BORDERS = st.integers(1, 6), st.integers(1, 3), st.integers(0, 12)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    """Images as small as kernels, with enough padding for an output; its sides need not be equal."""
    kernel, dilation, strides = (draw(st.tuples(sizes, sizes)) for sizes in (SIZES, STEPS, STEPS))
    image = draw(st.tuples(SIZES, SIZES))
    before = draw(st.tuples(BORDERS, BORDERS))
    missing = [dilation[i] * (kernel[i] - 1) + 1 - image[i] - before[i] for i in range(2)]
    behind = [max(0, missing[i]) + draw(st.integers(0, 4)) for i in range(2)]
    return (1, *image, 2), kernel, strides, (*before, behind[0], behind[1]), dilation, 1


def met(conv: Conv2DOp, axis: int) -> set[int]:
    """The rows or columns of taps that any output multiplies by an element of the image, by trying them all."""
    extent, outputs, taps = (shape_of(value.type)[1 + axis] for value in (conv.data, conv.output, conv.weight))
    starts = {tap: tap * conv.dilation[axis] - conv.padding[axis] for tap in range(taps)}
    return {
        tap
        for tap, start in starts.items()
        if any(0 <= start + out * conv.strides[axis] < extent for out in range(outputs))
    }


@given(windows(), st.integers(0, 99))
def test_taps_at_the_edges_meet_the_image_where_the_padding_reaches(window: Window, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-128, 128, (3, *window[1], 2)).astype(np.int8)
    before = convolution(window, "ui8", values, (3,))
    (old,) = ops_of(before, Conv2DOp.OPERATION_NAME)
    after = run_both(before, TrimTapsPass())
    (new,) = ops_of(after, Conv2DOp.OPERATION_NAME)
    for axis in range(2):
        found = met(new, axis)
        assert len(found) == len(met(old, axis))
        if found:
            assert min(found) == 0 or new.padding[axis] < new.dilation[axis]
            assert max(found) == shape_of(new.weight.type)[1 + axis] - 1 or new.padding[2 + axis] < new.dilation[axis]


@pytest.mark.parametrize(
    ("image", "kernel", "dilation", "kept"),
    [
        ((4, 4), (3, 3), (4, 4), (1, 1)),
        ((4, 4), (3, 3), (3, 3), (3, 3)),
        ((1, 1), (3, 3), (1, 1), (1, 1)),
        ((1, 9), (5, 5), (1, 1), (1, 5)),
        ((3, 5), (5, 5), (2, 2), (3, 5)),
    ],
)
def test_what_is_left_of_kernels_that_keep_the_size_of_an_image(
    image: tuple[int, int], kernel: tuple[int, int], dilation: tuple[int, int], kept: tuple[int, int]
) -> None:
    top, left = (step * (taps // 2) for step, taps in zip(dilation, kernel, strict=True))
    values = np.random.default_rng(1).integers(-128, 128, (3, *kernel, 2)).astype(np.int8)
    window: Window = ((1, *image, 2), kernel, (1, 1), (top, left, top, left), dilation, 1)
    after = run_both(convolution(window, "i8", values, (3,)), TrimTapsPass())
    (conv,) = ops_of(after, Conv2DOp.OPERATION_NAME)
    assert shape_of(conv.weight.type)[1:3] == kept
