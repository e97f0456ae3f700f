"""Where the elements of a stored tensor are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Window
from qdialect.lowering.qnn_to_linalg.program.storage import (
    NO_PADS,
    Pads,
    Storage,
    dense_storage_of,
    image_shape,
    lanes_for,
    signed_shift,
    storage_of,
)

CONTEXT = make_context()
SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(1, 20))
PADS = st.tuples(*[st.integers(0, 3)] * 4)


def tensor(text: str) -> ir.Type:
    return ir.Type.parse(f"tensor<{text}>", CONTEXT)


@given(SHAPES, PADS)
def test_elements_and_pads_fill_the_buffer(shape: tuple[int, int, int, int], pads: Pads) -> None:
    storage = storage_of(tensor("x".join(map(str, [*shape, "ui8"]))), pads)
    top, left, bottom, right = pads
    images, height, width, channels = shape
    assert storage.padded == (height + top + bottom, width + left + right)
    # The buffer is the dense array of images with their pads; the elements are its interior.
    whole = np.arange(storage.length).reshape(images, *storage.padded, storage.pitch)
    inside = whole[:, top : top + height, left : left + width, :channels]
    offsets = sum(index * stride for index, stride in zip(np.indices(shape), storage.strides, strict=True))
    np.testing.assert_array_equal(storage.origin + offsets, inside)


@given(st.integers(1, 300))
def test_channels_are_rounded_up_to_whole_vectors(channels: int) -> None:
    lanes = lanes_for(channels)
    assert lanes >= channels
    assert lanes == 4 if channels <= 4 else lanes % 8 == 0 and lanes - channels < 8


def test_values_are_stored_unsigned() -> None:
    assert [signed_shift(tensor(f"4x{name}")) for name in ("i8", "ui8", "i16", "ui16", "i32")] == [128, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((2, 3, 4, 5), (2, 3, 4, 5)), ((), (1, 1, 1, 1)), ((7,), (1, 1, 1, 7)), ((2, 3, 5), (6, 1, 1, 5))],
)
def test_shapes_of_any_rank_are_images(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert image_shape(shape) == expected


def test_sizes_in_bytes() -> None:
    assert storage_of(tensor("2x3xi32")).bytes() == 2 * 4 * 4
    assert storage_of(tensor("2x3xi16")).bytes() == 2 * 4 * 2
    padded = storage_of(tensor("2x3xui8"), (0, 1, 0, 1))
    assert padded.bytes() == 2 * 3 * 4
    assert padded.live_bytes() == 2 * 3


def test_a_users_array_has_no_padding_lanes() -> None:
    assert dense_storage_of(tensor("1x2x2x3xui8")).length == 12
    assert storage_of(tensor("1x2x2x3xui8")).length == 16
    assert dense_storage_of(tensor("1x2x2x8xui8")) == storage_of(tensor("1x2x2x8xui8"))


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
def test_a_window_starts_in_the_padding_and_steps_over_it(
    kernel: tuple[int, int], strides: tuple[int, int], dilation: tuple[int, int], padding: tuple[int, int]
) -> None:
    storage = Storage((2, 6, 7, 3), "i8", 4, (*padding, 2, 2))
    window = Window(2, (2, 2), kernel, strides, dilation, padding)
    assert window.pixels == (2, 2, 2)
    image, row, column = window.pixel_strides(storage)
    tap_row, tap_column = window.tap_strides(storage)
    whole = np.arange(storage.length).reshape(2, *storage.padded, 4)
    for n, oh, ow, kh, kw in np.ndindex(2, 2, 2, *kernel):
        found = window.start(storage) + n * image + oh * row + ow * column + kh * tap_row + kw * tap_column
        # Rows of the buffer start with the padding, so input row -padding is row 0.
        assert found == whole[n, oh * strides[0] + kh * dilation[0], ow * strides[1] + kw * dilation[1], 0]


def test_no_pads_are_the_default() -> None:
    assert storage_of(tensor("1x2x2x8xi8")).pads == NO_PADS
