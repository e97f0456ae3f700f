"""Parts of a contraction whose sums 32 bits hold, and how words are packed."""

import numpy as np
import pytest
from numpy.typing import NDArray

from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import pack_k_groups
from qdialect.lowering.qnn_to_linalg.conversions.i16_contraction import channel_parts, fits_words

LARGEST = 2**16 - 1


def parts_of(weights: NDArray[np.int8]) -> list[tuple[int, int]]:
    parts = channel_parts(weights)
    assert parts is not None
    ends = [first + count for first, count in parts]
    assert [first for first, _ in parts] == [0, *ends[:-1]]
    assert ends[-1] == weights.shape[3]
    sums = [
        np.abs(weights[..., first:end].astype(int)).sum(axis=(1, 2, 3))
        for (first, _), end in zip(parts, ends, strict=True)
    ]
    assert max(int(one.max()) for one in sums) <= LARGEST
    assert all(first % 2 == 0 for first, _ in parts)
    return parts


@pytest.mark.parametrize(("depth", "count"), [(1, 1), (2, 1), (511, 1), (512, 2), (1020, 2), (1024, 3), (5001, 10)])
def test_the_smallest_weights_fill_a_sum_with_511_products(depth: int, count: int) -> None:
    """``511 * 128 * 2^15 < 2^31``; of 512 products the last two are apart, for a K group is two."""
    assert len(parts_of(np.full((3, 1, 1, depth), -128, np.int8))) == count


def test_a_channel_with_large_weights_decides_for_all() -> None:
    weights = np.ones((4, 3, 3, 600), np.int8)
    assert len(parts_of(weights)) == 1
    weights[2] = 127
    # Nine taps by 56 channels by 127.
    assert parts_of(weights)[0] == (0, 56)


def test_drawn_weights() -> None:
    rng = np.random.default_rng(0)
    for depth in (1, 7, 64, 301, 2048):
        parts_of(rng.integers(-128, 128, (5, 3, 2, depth)).astype(np.int8))


def test_taps_of_one_channel_that_exceed_a_sum_have_no_parts() -> None:
    assert channel_parts(np.full((1, 25, 25, 1), 127, np.int8)) is None
    assert channel_parts(np.full((1, 17, 17, 2), 127, np.int8)) is None


def test_words_are_packed_in_pairs() -> None:
    taps = np.arange(15, dtype=np.int16).reshape(3, 5)
    packed = pack_k_groups(taps, 2, 1, 2)
    assert packed.shape == (2, 3, 1, 2, 2)
    assert packed.dtype == np.int16
    assert packed[0, :, 0, 1].tolist() == [[5, 6], [7, 8], [9, 0]]
    assert packed[1, :, 0].tolist() == [[[10, 11], [0, 0]], [[12, 13], [0, 0]], [[14, 0], [0, 0]]]


def test_what_fits_words() -> None:
    assert fits_words(np.full((3, 511), -128, np.int8))
    assert not fits_words(np.full((3, 512), -128, np.int8))
    assert fits_words(np.array([[32767, 32767, 1]], np.int16))
    assert not fits_words(np.array([[32767, -32768, 1]], np.int16))
