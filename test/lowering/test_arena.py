"""Where buffers lie: the arena, storage of tensors, and arrays of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, TABLE, check, ends, quantization, variants_together
from compiled_ops import tensor as tensor_lowering_arrays
from drawn_graphs import graph
from drawn_numbers import check_plan, lifetimes
from hypothesis import given
from hypothesis import strategies as st
from quantized_layers import add, conv

from qdialect.arithmetic import Rounding
from qdialect.dialect import ArgMaxOp, LutOp, MaxPool2DOp, MeanOp, ReduceMaxOp, build
from qdialect.dialect.type_constraints import element_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Window
from qdialect.lowering.qnn_to_linalg.program import arena
from qdialect.lowering.qnn_to_linalg.program.arena import Lifetime, peak, plan_arena, plan_centred_arena
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
from qdialect.targets import TARGETS


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


# Places around centres: buffers that live at the same time are apart, the halves of others on the same sides.


@given(lifetimes(), st.sampled_from([1, 16, 64]))
def test_what_lives_together_is_apart_of_centred(buffers: list[Lifetime], alignment: int) -> None:
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


# Where the elements of a stored tensor are.

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


# Kernels that read and write users' arrays as they are: nothing is copied, whatever the rows and the sign.

SHAPE = (1, 5, 7, 3)


def table(value: ir.Value) -> ir.Value:
    element = element_of(value.type)
    return build(LutOp, value, element=element, table=TABLE, **quantization(element, element)).output


def same_values(value: ir.Value) -> ir.Value:
    """To the other sign, at the same position in the range: between stored quantized values nothing changes."""
    source, target = element_of(value.type), "ui8" if element_of(value.type) == "i8" else "i8"
    values = np.roll(np.arange(256), 128).astype(np.uint8)
    return build(LutOp, value, element=target, table=values, **quantization(source, target)).output


def sums(value: ir.Value) -> list[ir.Value]:
    total = add(value, value, element_of(value.type))
    return [total, table(total)]


def extremes(value: ir.Value) -> list[ir.Value]:
    element = element_of(value.type)
    where = build(ArgMaxOp, value, element="i64", axis=3, keep_dims=False, last=False).output
    return [where, build(ReduceMaxOp, value, element=element, axes=(1,), keep_dims=False).output]


def mean(value: ir.Value) -> ir.Value:
    element = element_of(value.type)
    scales = quantization(element, element)
    attributes: dict[str, Any] = {"axes": (1, 2), "keep_dims": False, "rounding": Rounding.FIXED64_UP, **scales}
    return build(MeanOp, value, element=element, **attributes).output


def both_ways(value: ir.Value) -> list[ir.Value]:
    """A result that is read again, returned twice, and an argument that is returned as it is."""
    first = table(value)
    return [first, same_values(first), first, value]


def labels(module: ir.Module) -> set[str]:
    return {label.split()[0] for label in lower(module, TARGETS["generic"], Phase.LINALG).labels}


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
@pytest.mark.parametrize("body", [table, same_values, sums, extremes, mean])
def test_nothing_is_copied(body: Callable[[ir.Value], Any], element: str) -> None:
    module = graph([tensor_lowering_arrays(SHAPE, element)], body)
    check(module)
    assert not labels(module) & {"input", "output"}


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_results_may_be_read_and_returned_again(element: str) -> None:
    check(graph([tensor_lowering_arrays(SHAPE, element)], both_ways))


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_one_reader_that_needs_stored_values_is_enough_for_a_copy(element: str) -> None:
    low, high = ends(element)

    def body(value: ir.Value) -> list[ir.Value]:
        window: dict[str, Any] = {"kernel": (2, 2), "strides": (1, 1), "padding": (0, 0, 0, 0)}
        bounds: dict[str, Any] = {"output_min": low, "output_max": high}
        return [table(value), build(MaxPool2DOp, value, element=element, **window, **bounds).output]

    module = graph([tensor_lowering_arrays(SHAPE, element)], body)
    check(module)
    assert {"input", "output"} <= labels(module)


@variants_together
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_what_windows_alone_read_has_rows_without_padding_lanes(element: str) -> None:
    module = graph([tensor_lowering_arrays(SHAPE, element)], lambda value: conv(table(value), input_zero_point=3))
    check(module)
    lowered = lower(module, TARGETS["generic"], Phase.LINALG)
    assert [size for kind, size in lowered.buffers if kind == "i8"] == [7 * 9 * 3]
