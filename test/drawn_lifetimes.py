"""Buffers of an arena, drawn, and what every plan of one must keep to."""

from collections.abc import Sequence

from hypothesis import strategies as st

from qdialect.lowering.qnn_to_linalg.program.arena import Lifetime


@st.composite
def lifetimes(draw: st.DrawFn) -> list[Lifetime]:
    """Up to twelve buffers of up to 300 bytes in ten steps."""
    steps = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)
    drawn = draw(st.lists(st.tuples(st.integers(1, 300), steps), max_size=12))
    return [Lifetime(size, first, last) for size, (first, last) in drawn]


def check_plan(buffers: Sequence[Lifetime], alignment: int, offsets: Sequence[int], size: int) -> None:
    """Assert that buffers that live at the same time are apart, and all aligned and inside the block."""
    placed = list(zip(offsets, buffers, strict=True))
    assert all(offset >= 0 and offset % alignment == 0 and offset + own.size <= size for offset, own in placed)
    for index, (low, own) in enumerate(placed):
        for other_low, other in placed[:index]:
            together = own.first <= other.last and other.first <= own.last
            assert not together or low + own.size <= other_low or other_low + other.size <= low
