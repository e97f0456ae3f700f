"""Blocks of a grouped convolution: every output channel once, its taps where its inputs are."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qdialect.lowering.qnn_to_linalg.kernels.geometry import ChannelGroup, group_blocks

COUNTS = (st.integers(1, 12), st.integers(1, 9), st.integers(1, 12))
"""Groups, input channels of each, output channels of each."""


def outputs(block: ChannelGroup) -> list[int]:
    return list(range(block.start, block.start + block.count * block.channels_out))


@given(*COUNTS)
def test_every_output_channel_is_in_one_block(groups: int, depth: int, width: int) -> None:
    blocks = group_blocks(groups, groups * depth, groups * width)
    assert sorted(channel for block in blocks for channel in outputs(block)) == list(range(groups * width))


@given(*COUNTS)
def test_only_the_last_block_may_leave_a_vector_half_written(groups: int, depth: int, width: int) -> None:
    *whole, last = group_blocks(groups, groups * depth, groups * width)
    assert all(block.channels_out % 8 == 0 for block in whole)
    assert last.count == 1 or last.channels_out % 8 == 0
    # No more groups join than that takes: what is multiplied by zeros is wasted.
    assert all(block.per_block <= 8 // math.gcd(width, 8) for block in [*whole, last])


@given(*COUNTS, st.integers(1, 2))
def test_a_block_reads_what_the_groups_read(groups: int, depth: int, width: int, kernel: int) -> None:
    rng = np.random.default_rng(groups * 100 + depth * 10 + width)
    weights = rng.integers(1, 100, (groups * width, kernel, kernel, depth), np.int8)
    x = rng.integers(0, 256, (kernel, kernel, groups * depth))
    expected = [
        (x[:, :, channel // width * depth :][:, :, :depth] * weights[channel].astype(np.int64)).sum()
        for channel in range(groups * width)
    ]
    found = dict[int, int]()
    for block in group_blocks(groups, groups * depth, groups * width):
        taps = block.taps(weights).astype(np.int64)
        assert taps.shape == (block.count * block.channels_out, kernel, kernel, block.channels_in)
        for index, channel in enumerate(outputs(block)):
            first = block.start_in + index // block.channels_out * block.channels_in
            found[channel] = int((x[:, :, first : first + block.channels_in] * taps[index]).sum())
    assert [found[channel] for channel in range(groups * width)] == expected


def test_one_group_is_one_dense_block() -> None:
    assert group_blocks(1, 6, 10) == [ChannelGroup(1, 0, 0, 6, 10, 1)]


def test_groups_join_until_their_outputs_are_whole_vectors() -> None:
    # 2 outputs each: four groups make 8; the tenth and ninth are left.
    assert group_blocks(10, 30, 20) == [ChannelGroup(2, 0, 0, 12, 8, 4), ChannelGroup(1, 16, 24, 6, 4, 2)]
