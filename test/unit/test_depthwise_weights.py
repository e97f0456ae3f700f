"""Weights of depthwise kernels as K groups: they add up, and pairs of them keep the bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.lowering.cost.pair_sums import sums_fit
from qdialect.lowering.qnn_to_linalg.contractions.depthwise import KGroups, k_groups_of

EXTREMES = [-255, -129, -128, -127, -64, -1, 0, 1, 64, 127, 128, 129, 255]


def added_up(k_groups: list[KGroups], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The weights that K groups stand for."""
    total = np.zeros((shape[0], shape[1] + 4, shape[2] + 4), np.int64)
    for one in k_groups:
        for row in range(one.taps.shape[1]):
            for tap, steps in enumerate(np.ndindex(*one.steps)):
                down = one.row + row + (sum(steps) if one.is_vertical else 0)
                along = one.column + (0 if one.is_vertical else sum(steps))
                total[:, down, along] += one.taps[:, row, tap]
    assert not total[:, shape[1] :].any()
    assert not total[:, :, shape[2] :].any()
    return total[:, : shape[1], : shape[2]]


KERNELS = [(3, 3), (3, 2), (2, 3), (1, 3), (5, 5), (1, 7), (3, 1), (1, 5), (2, 9), (5, 1)]


@given(st.sampled_from(KERNELS), st.booleans(), st.data())
def test_k_groups_add_up_to_the_weights(kernel: tuple[int, int], in_pairs: bool, data: st.DataObject) -> None:
    size = 2 * kernel[0] * kernel[1]
    drawn = data.draw(st.lists(st.sampled_from(EXTREMES) | st.integers(-255, 255), min_size=size, max_size=size))
    weights = np.array(drawn, np.int32).reshape(2, *kernel)
    k_groups = k_groups_of(weights, in_pairs=in_pairs)
    np.testing.assert_array_equal(added_up(k_groups, weights.shape), weights)
    if in_pairs:
        padded = [np.pad(one.taps, ((0, 0), (0, 0), (0, one.taps.shape[2] % 2))) for one in k_groups]
        assert all(sums_fit(taps) for taps in padded)
    else:
        # One tap of one row would be multiplied element by element, by other instructions.
        assert all(one.taps[0].size > 1 for one in k_groups)


@pytest.mark.parametrize(("row", "products"), [([85, 85, 86], 1), ([127, 127, 3], 2), ([127, 127, 127], 2)])
def test_what_the_middle_column_has_too_much_of_is_one_more_product(row: list[int], products: int) -> None:
    weights = np.zeros((1, 3, 3), np.int32)
    weights[0, 1] = row
    k_groups = k_groups_of(weights, in_pairs=True)
    assert len(k_groups) == products
    assert [one.is_vertical for one in k_groups[1:]] == [True] * (products - 1)
