"""Cutting the work of a kernel into parts, and which addresses a kernel touches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdialect.lowering.threads.accesses import Run
from qdialect.lowering.threads.division import Partition, Work, largest_share, partition

DIMS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 4)), max_size=3).map(tuple)
RUNS = st.builds(Run, st.integers(0, 12), DIMS)


def elements(run: Run) -> list[int]:
    found = np.full(1, run.start)
    for stride, extent in run.dims:
        found = (found[:, None] + np.arange(extent) * stride).reshape(-1)
    return found.tolist()


@given(RUNS, RUNS)
def test_runs_meet_where_they_have_an_element_in_common(one: Run, other: Run) -> None:
    assert one.meets(other) == bool(set(elements(one)) & set(elements(other)))


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
