"""Cutting the work of a kernel into parts, and which addresses a kernel touches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdialect.lowering.ir.accesses import Run
from qdialect.lowering.threads.loop_nests import Partition, Work, chained_partition, largest_share, partition

DIMS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 4)), max_size=3).map(tuple)
RUNS = st.builds(Run, st.integers(0, 12), DIMS)


def elements(run: Run) -> list[int]:
    found = np.full(1, run.start)
    for stride, extent in run.dims:
        found = (found[:, None] + np.arange(extent) * stride).reshape(-1)
    return found.tolist()


@given(RUNS, RUNS)
def test_runs_meet_where_they_have_an_element_in_common(one: Run, other: Run) -> None:
    common = set(elements(one)) & set(elements(other))
    assert one.count_in_common(other) == len(common)
    assert one.overlaps(other) == bool(common)


@given(RUNS)
def test_an_injective_run_has_no_element_twice(run: Run) -> None:
    found = elements(run)
    assert run.end == max(found) + 1
    if run.is_injective:
        assert len(set(found)) == len(found)


@given(RUNS, st.sampled_from((1, 2, 4)), st.integers(0, 64))
def test_a_run_in_bytes(run: Run, size: int, offset: int) -> None:
    wanted = {offset + element * size + byte for element in elements(run) for byte in range(size)}
    assert set(elements(run.scaled(size, offset))) == wanted


def test_rows_of_a_row_major_image_are_injective_and_overlapping_windows_are_not() -> None:
    assert Run(3, ((64, 16), (1, 64), (1024, 31))).is_injective
    assert not Run(0, ((2, 8), (1, 3))).is_injective


@st.composite
def works(draw: st.DrawFn) -> Work:
    trips = tuple(draw(st.lists(st.integers(1, 9), max_size=3)))
    strides = tuple(4 ** (len(trips) - i) for i in range(len(trips)))
    return Work(trips, draw(st.floats(1, 1000)), draw(st.integers(0, 100)), strides)


@given(st.lists(works(), min_size=1, max_size=4), st.integers(2, 9))
def test_every_unit_belongs_to_one_part(drawn: list[Work], parts: int) -> None:
    for work, found in zip(drawn, partition(drawn, parts), strict=True):
        assert found.bounds[0] == 0
        assert found.bounds[-1] == work.units(found.depth)
        assert list(found.bounds) == sorted(found.bounds)
        assert len(found.bounds) == parts + 1


def test_an_even_loop_is_cut_at_the_outermost_level() -> None:
    work = Work((8, 5), 100.0, 0, (50, 10))
    assert partition([work], 2) == [Partition(1, (0, 4, 8))]
    assert largest_share([work], partition([work], 2)) == pytest.approx(0.5)


def test_an_odd_loop_is_cut_inside_a_step() -> None:
    assert partition([Work((3, 10), 90.0, 0, (100, 10))], 2) == [Partition(2, (0, 15, 30))]


def test_borders_go_with_their_rows() -> None:
    top, rows, bottom = Work((10,), 10.0, 0, (1,)), Work((20,), 100.0, 10, (5,)), Work((10,), 10.0, 120, (1,))
    assert partition([top, rows, bottom], 2) == [
        Partition(1, (0, 10, 10)),
        Partition(1, (0, 10, 20)),
        Partition(1, (0, 0, 10)),
    ]


def test_the_rest_of_a_row_makes_up_for_a_coarse_cut() -> None:
    tiles, rest = Work((3,), 90.0, 0, (40,)), Work((8,), 8.0, 120, (1,))
    found = partition([tiles, rest], 2)
    assert found == [Partition(1, (0, 2, 3)), Partition(1, (0, 0, 8))]


def test_loops_over_the_same_columns_are_cut_alike() -> None:
    """However much their costs differ: the weights of a column are read by one thread."""
    tiles, rest = Work((16, 3), 90.0, 0, (64, 512)), Work((16,), 1.0, 1536, (64,))
    assert partition([tiles, rest], 2) == [Partition(1, (0, 8, 16))] * 2


def test_an_odd_number_of_columns_is_cut_where_the_costs_are_even() -> None:
    tiles, rest = Work((3, 10), 90.0, 0, (100, 10)), Work((3,), 3.0, 300, (100,))
    assert partition([tiles, rest], 2)[0].depth == 2


@st.composite
def row_nests(draw: st.DrawFn) -> Work:
    """A loop over groups of the rows of a buffer of 60 rows, and what is left behind them as one iteration."""
    group, width = draw(st.sampled_from((1, 2, 3, 4, 5, 6))), draw(st.integers(1, 5))
    trips = draw(st.integers(60 // group - 1, 60 // group))
    return Work((trips,), draw(st.floats(1, 1000)), 0, (group * width,), 60 * width, group * width)


@given(st.lists(row_nests(), min_size=1, max_size=4), st.integers(2, 5))
def test_no_iteration_of_chained_nests_is_on_both_sides_of_a_cut(drawn: list[Work], parts: int) -> None:
    found = chained_partition(drawn, parts)
    if found is None:
        return
    for cut in range(1, parts):
        # In sixtieths of a buffer, where the nests of the first parts end and those of the others begin.
        ends = [one.bounds[cut] * work.span * 60 // work.extent for work, one in zip(drawn, found, strict=True)]
        begins = [
            60 if one.bounds[cut] == work.trips[0] else end for work, one, end in zip(drawn, found, ends, strict=True)
        ]
        assert max(ends) <= min(begins)


def test_chained_nests_are_cut_where_their_costs_are_even() -> None:
    groups, rest, rows = (
        Work((14,), 40.0, 0, (4,), 59, 4),
        Work((), 4.0, 56, (), 59, 3),
        Work((59, 2), 100.0, 0, (200, 64), 59 * 200, 197),
    )
    assert chained_partition([groups, rest, rows], 2) == [
        Partition(1, (0, 7, 14)),
        Partition(0, (0, 0, 1)),
        Partition(1, (0, 28, 59)),
    ]
