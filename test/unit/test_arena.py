"""Places in the arena: buffers that live at the same time are apart, others share."""

import pytest
from drawn_lifetimes import check_plan, lifetimes
from hypothesis import given
from hypothesis import strategies as st

from qdialect.lowering.qnn_to_linalg.program import arena
from qdialect.lowering.qnn_to_linalg.program.arena import Lifetime, peak, plan_arena


@given(lifetimes(), st.sampled_from([1, 16, 64]))
def test_what_lives_together_is_apart(buffers: list[Lifetime], alignment: int) -> None:
    check_plan(buffers, alignment, *plan_arena(buffers, alignment))


@given(lifetimes(), st.sampled_from([1, 16, 64]))
def test_the_arena_is_no_larger_than_all_buffers_in_a_row(buffers: list[Lifetime], alignment: int) -> None:
    _, size = plan_arena(buffers, alignment)
    assert size <= sum(-(-own.size // alignment) * alignment for own in buffers)
    assert size >= max((own.size for own in buffers), default=0)


def test_buffers_of_different_steps_share_a_place() -> None:
    chain = [Lifetime(64, 0, 1), Lifetime(64, 1, 2), Lifetime(64, 2, 3), Lifetime(64, 3, 4)]
    offsets, size = plan_arena(chain, 64)
    assert offsets == [0, 64, 0, 64]
    assert size == 128


def test_a_small_buffer_goes_into_a_gap() -> None:
    # The two large ones leave the low part free in the second step; only the small one of that step fits there.
    offsets, size = plan_arena([Lifetime(128, 0, 0), Lifetime(96, 0, 1), Lifetime(64, 1, 1)], 64)
    assert offsets == [0, 128, 0]
    assert size == 224


@pytest.mark.parametrize(("first", "second", "met"), [((0, 1), (1, 2), True), ((0, 1), (2, 3), False)])
def test_lifetimes_include_their_last_step(first: tuple[int, int], second: tuple[int, int], met: bool) -> None:
    one, other = Lifetime(1, *first), Lifetime(1, *second)
    assert plan_arena([one, other], 1)[1] == plan_arena([other, one], 1)[1] == 1 + met


@pytest.mark.parametrize("size", [1, 60, 64, 65])
def test_no_second_plan_is_made_where_the_alignment_takes_the_rest(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[int] = []
    assign = vars(arena)["_assign_offsets"]

    def counted(*arguments: object) -> tuple[list[int], int]:
        plans.append(1)
        return assign(*arguments)

    monkeypatch.setattr(arena, "_assign_offsets", counted)
    chain = [Lifetime(size, step, step + 1) for step in range(40)]
    assert plan_arena(chain, 64)[1] == -(-size // 64) * 64 + size
    assert len(plans) == 1


def test_no_buffers() -> None:
    assert plan_arena([], 64) == ([], 0)
    assert peak([]) == 0


@given(lifetimes())
def test_the_peak_is_that_of_the_fullest_step(buffers: list[Lifetime]) -> None:
    steps = [sum(own.size for own in buffers if own.first <= step <= own.last) for step in range(10)]
    assert peak(buffers) == max(steps)
    assert plan_arena(buffers, 1)[1] >= peak(buffers)


def test_a_second_plan_is_made_where_the_first_leaves_a_hole() -> None:
    # Largest first, 5 lies at 0 and 4 on it; then 3 and 3, which meet 4 but not 5, fit only one below it.
    buffers = [Lifetime(5, 0, 1), Lifetime(4, 1, 2), Lifetime(3, 2, 2), Lifetime(3, 2, 2)]
    assert peak(buffers) == 10
    assert plan_arena(buffers, 1)[1] == 10
