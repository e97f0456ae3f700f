"""The phases of a transposed convolution cover every pair of a tap and a cell of the data once."""

from itertools import product

import pytest

from qdialect.lowering.qnn_to_linalg.graph.padding import TransposedPhase, border, phases

SIZE = 4


@pytest.mark.parametrize(("cut", "more"), [(0, 0), (1, 0), (2, 1), (0, 3)])
def test_every_tap_meets_every_cell(cut: int, more: int) -> None:
    for kernel, stride, dilation in product((1, 2, 3, 5), (1, 2, 3, 4), (1, 2, 3)):
        check_taps(kernel, stride, dilation, cut, more)


def check_taps(kernel: int, stride: int, dilation: int, cut: int, more: int) -> None:
    extent = (SIZE - 1) * stride + (kernel - 1) * dilation + 1 - cut + more
    if extent < 1:
        return
    found = phases(extent, kernel, stride, cut, dilation)
    met = {
        (phase.start + step * stride, tap, phase.first + step + order * phase.dilation)
        for phase in found
        for step in range(phase.count)
        for order, tap in enumerate(phase.taps)
    }
    cells = {(v * stride + i * dilation - cut, i, v) for v in range(SIZE) for i in range(kernel)}
    assert {one for one in met if 0 <= one[2] < SIZE} == {one for one in cells if 0 <= one[0] < extent}
    assert sorted(y.start + n * stride for y in found for n in range(y.count)) == list(range(extent))


def test_a_stride_beyond_the_kernel_leaves_cells_without_taps() -> None:
    assert phases(7, 2, 3, 0, 1) == [
        TransposedPhase(0, 3, (0,), 0, 1),
        TransposedPhase(1, 2, (1,), 0, 1),
        TransposedPhase(2, 2, (), 0, 1),
    ]


def test_the_reach_is_that_of_the_widest_phase() -> None:
    # Kernel 4, stride 2, one cell cut off: the shape of decoders, whose phases look one cell before or after.
    found = phases(8, 4, 2, 1, 1)
    assert [phase.taps for phase in found] == [(3, 1), (2, 0)]
    assert border(found, SIZE) == (1, 1)
    assert border(phases(2, 1, 2, 0, 1), 1) == (0, 0)
