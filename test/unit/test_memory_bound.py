"""test/memory_bound.py: the bound holds for the block alone."""

import pytest
from memory_bound import memory_at_most

MIB = 1 << 20


def test_a_block_within_the_bound_passes_after_one_that_took_more() -> None:
    with memory_at_most(300 * MIB):
        bytearray(200 * MIB)
    with memory_at_most(100 * MIB):
        bytearray(MIB)


def test_memory_that_is_free_again_at_the_end_counts() -> None:
    with (
        pytest.raises(AssertionError, match=r"^a block must take at most 104857600 bytes, but took \d{9}"),
        memory_at_most(100 * MIB, "a block"),
    ):
        bytearray(200 * MIB)


def test_a_peak_of_an_earlier_test_hides_nothing() -> None:
    bytearray(400 * MIB)
    with pytest.raises(AssertionError, match="must take at most"), memory_at_most(100 * MIB):
        bytearray(200 * MIB)


def test_what_the_block_raises_is_not_replaced() -> None:
    with pytest.raises(ValueError, match="other"), memory_at_most(0):
        raise ValueError("other")
