"""Places around centres: buffers that live at the same time are apart, the halves of others on the same sides."""

import pytest
from drawn_lifetimes import check_plan, lifetimes
from hypothesis import given
from hypothesis import strategies as st

from qdialect.lowering.qnn_to_linalg.program.arena import Lifetime, plan_arena, plan_centred_arena


@given(lifetimes(), st.sampled_from([1, 16, 64]))
def test_what_lives_together_is_apart(buffers: list[Lifetime], alignment: int) -> None:
    check_plan(buffers, alignment, *plan_centred_arena(buffers, alignment))


@given(lifetimes(), st.sampled_from([1, 16, 64]))
def test_memory_grows_by_half_at_most(buffers: list[Lifetime], alignment: int) -> None:
    assert plan_centred_arena(buffers, alignment)[1] <= 1.5 * plan_arena(buffers, alignment)[1]


def test_halves_lie_on_the_same_sides() -> None:
    chain = [Lifetime(640, 0, 1), Lifetime(1280, 1, 2), Lifetime(256, 2, 3), Lifetime(1024, 3, 4)]
    offsets, size = plan_centred_arena(chain, 64)
    centres = [offset + own.size // 2 for offset, own in zip(offsets, chain, strict=True)]
    assert centres[0] == centres[2]
    assert centres[1] == centres[3]
    assert size == 640 + 1280
    assert plan_arena(chain, 64)[0] == [1280, 0, 1280, 0]


@pytest.mark.parametrize("size", [1, 63, 65, 190])
def test_odd_sizes_lie_around_a_multiple_of_the_alignment(size: int) -> None:
    offsets, _ = plan_centred_arena([Lifetime(1024, 0, 1), Lifetime(size, 2, 3)], 64)
    assert offsets[0] == 0
    assert offsets[1] < 512
    assert offsets[1] % 64 == 0
    assert abs((offsets[1] + size / 2) - 512) < 64


def test_the_smaller_plan_stays_where_centres_take_much_more() -> None:
    # Around centres each of the small buffers would have a place as large as the one that lives with the others.
    stairs = [Lifetime(640, step, step + 1) for step in range(0, 8, 2)]
    crowd = [*stairs, *(Lifetime(640, 0, 0) for _ in range(3)), Lifetime(2560, 9, 9)]
    plain, centred = plan_arena(crowd, 64), plan_centred_arena(crowd, 64)
    assert plain[1] == 2560
    assert centred == plain
