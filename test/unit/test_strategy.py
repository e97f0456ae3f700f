"""Tile sizes: everything is covered once, and a tile fits the registers."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdialect.lowering.cost.register_tiles import Layout, explained
from qdialect.lowering.cost.strategy import (
    ChannelBlock,
    Strategy,
    TiledOperand,
    depthwise_blocks,
    lane_blocks,
    lane_parts,
    row_tiles,
    rows_for,
    split,
    strategy_of,
    tile_model,
)
from qdialect.lowering.qnn_to_linalg.program.storage import lanes_for
from qdialect.targets import TARGETS, resolve
from qdialect.targets.cpus import CPUS

AVX512, GENERIC = strategy_of(TARGETS["avx512vbmi"]), strategy_of(TARGETS["generic"])
# Registers, and how many of them one vector of 16 lanes takes.
BUDGETS = [(AVX512, 32, 1), (GENERIC, 16, 2)]
CHANNELS = st.integers(1, 600).map(lanes_for)
EXTENTS = st.integers(1, 400)
DEPTHS = st.integers(1, 5000)


def _depthwise_blocks(lanes: int, _: int) -> list[ChannelBlock]:
    return depthwise_blocks(lanes)


def covered(parts: list[tuple[int, int, int]]) -> list[int]:
    return [position for start, extent, _ in parts for position in range(start, start + extent)]


@given(CHANNELS, DEPTHS)
@pytest.mark.parametrize("blocks_of", [AVX512.channel_blocks, GENERIC.channel_blocks, _depthwise_blocks])
def test_blocks_cover_every_lane_once(
    blocks_of: Callable[[int, int], list[ChannelBlock]], lanes: int, depth: int
) -> None:
    blocks = blocks_of(lanes, depth)
    position = 0
    for block in blocks:
        assert block.start == position
        assert block.channels == block.tiles * block.vectors * block.lanes
        assert block.lanes in (4, 8, 16)
        position += block.channels
    assert position == lanes


@given(CHANNELS, DEPTHS)
def test_at_most_one_block_has_narrow_vectors(lanes: int, depth: int) -> None:
    assert sum(block.lanes < 16 for block in AVX512.channel_blocks(lanes, depth)) <= 1


@given(CHANNELS, DEPTHS, st.lists(EXTENTS, min_size=1, max_size=4))
@pytest.mark.parametrize(("strategy", "registers", "width"), BUDGETS)
def test_rows_are_covered_by_tiles_that_fit_the_registers(
    strategy: Strategy, registers: int, width: int, lanes: int, depth: int, extents: list[int]
) -> None:
    for block in strategy.channel_blocks(lanes, depth):
        axes = row_tiles(extents, block.rows)
        for extent, parts in zip(extents, axes, strict=True):
            assert covered(parts) == list(range(extent))
            assert all(size % rows == 0 for _, size, rows in parts)
        for tile in product(*axes):
            rows = prod(rows for _, _, rows in tile)
            # Accumulators, weights and one broadcast row.
            assert width * (rows * block.vectors + block.vectors + 1) <= registers


@given(EXTENTS)
@pytest.mark.parametrize(("strategy", "registers", "width"), BUDGETS)
def test_depthwise_pixels_are_covered_by_tiles_that_fit_the_registers(
    strategy: Strategy, registers: int, width: int, extent: int
) -> None:
    segments = strategy.depthwise_segments(extent)
    assert covered(segments) == list(range(extent))
    assert all(size % pixels == 0 and width * (pixels + 2) <= registers for _, size, pixels in segments)


@pytest.mark.parametrize(
    ("weights", "data", "expected"),
    [
        # Small weights stay near whatever the order, and larger ones are read in a row.
        (TiledOperand(1 << 16, 4), TiledOperand(1 << 22, 100), False),
        (TiledOperand(1 << 21, 16), TiledOperand(1 << 17, 4), False),
        # Weights beyond that are fetched once, not for each tile of pixels.
        (TiledOperand(1 << 22, 16), TiledOperand(1 << 17, 4), True),
        # A single tile of pixels fetches them once either way.
        (TiledOperand(1 << 22, 16), TiledOperand(1 << 17, 1), False),
        # Neither stays near: the order decides which one is fetched again.
        (TiledOperand(1 << 22, 16), TiledOperand(1 << 21, 100), True),
        (TiledOperand(1 << 22, 16), TiledOperand(1 << 23, 10), False),
    ],
)
def test_the_order_of_the_loops_is_the_one_that_fetches_least(
    weights: TiledOperand, data: TiledOperand, *, expected: bool
) -> None:
    assert AVX512.is_weight_stationary(weights, data, 1 << 10) is expected


@pytest.mark.parametrize(
    ("weights", "data", "results", "expected"),
    [
        (TiledOperand(1 << 17, 8), TiledOperand(1 << 16, 100), 1 << 9, True),
        # Weights stay in the first level whatever the order.
        (TiledOperand(1 << 14, 8), TiledOperand(1 << 10, 100), 1 << 5, False),
        # The lines of the results cost more than the weights.
        (TiledOperand(1 << 17, 8), TiledOperand(1 << 16, 100), 1 << 12, False),
        # What does not stay near is read from afar for each tile of channels.
        (TiledOperand(1 << 17, 8), TiledOperand(1 << 20, 200), 1 << 9, False),
        (TiledOperand(1 << 20, 8), TiledOperand(1 << 20, 200), 1 << 9, True),
        # Few tiles of pixels.
        (TiledOperand(1 << 20, 8), TiledOperand(1 << 14, 3), 1 << 5, False),
    ],
)
def test_weights_of_256_bits_are_kept(
    weights: TiledOperand, data: TiledOperand, results: int, *, expected: bool
) -> None:
    assert strategy_of(resolve("alderlake")).is_weight_stationary(weights, data, results) is expected


@pytest.mark.parametrize("name", ["icelake-server", "haswell"])
def test_weights_of_other_products_are_not_kept(name: str) -> None:
    assert not strategy_of(resolve(name)).is_weight_stationary(
        TiledOperand(1 << 17, 8), TiledOperand(1 << 16, 100), 1 << 9
    )


def test_a_double_pumped_core_starts_twice_as_many_narrow_instructions() -> None:
    whole, half, quarter = (resolve(name).machine for name in ("znver4", "avx2,tune=znver4", "sse4.1,tune=znver4"))
    assert (whole.dot_products, whole.vector_instructions, whole.loads) == (1, 2, 1)
    for narrow in (half, quarter):
        assert (narrow.dot_products, narrow.vector_instructions, narrow.loads) == (2, 4, 2)
    skylake_x, zen_5 = resolve("avx2,tune=skx").machine, resolve("avx2,tune=znver5").machine
    assert (skylake_x.vector_bits, skylake_x.dot_products, zen_5.dot_products) == (256, 2, 2)


def test_additions_of_words_take_units_of_their_products_on_zen() -> None:
    zen, skylake = (tile_model(resolve(name)) for name in ("avx2,tune=znver4", "skylake"))
    assert zen is not None
    assert skylake is not None
    assert zen.machine.word_dots_started == 1.6
    assert skylake.machine.word_dots_started == skylake.machine.dot_products == 2
    words = replace(zen, layout=Layout.STORED_WORDS)
    assert words.cycles(6, 2, 1) == 15
    # What is fetched ahead from beyond the second level comes in time.
    assert words.cycles(6, 2, 1 << 30) == 15
    assert replace(words, machine=replace(words.machine, near_fetch_distance=0)).cycles(6, 2, 1 << 30) == 16


def test_pairs_are_taken_where_they_are_no_slower_than_words() -> None:
    haswell, skylake = strategy_of(resolve("haswell")), strategy_of(resolve("skylake"))
    # One product a cycle takes as long either way; of two a cycle the additions of words are in the way.
    assert haswell.takes_pairs(256, 256, 100, 0.0)
    assert not haswell.takes_pairs(256, 256, 100, 0.01)
    assert skylake.takes_pairs(256, 256, 100, 0.3)
    assert not skylake.takes_pairs(256, 256, 100, 0.9)
    # Weights that meet one row would be widened in registers.
    assert haswell.takes_pairs(256, 256, 1, 0.3)
    assert not AVX512.takes_pairs(256, 256, 100, 0.0)
    assert not strategy_of(resolve("x86-64")).takes_pairs(256, 256, 100, 0.0)


def test_tiles_fit_the_registers_of_every_machine() -> None:
    for name in (*TARGETS, *CPUS):
        target = resolve(name)
        model = tile_model(target)
        for choice in model.choices() if model else ():
            for vectors, rows in choice.tiles.rows.items():
                beside = 2 * rows + 3 if model and model.layout is Layout.WORDS else vectors + 1
                assert rows * vectors + beside <= target.machine.vector_registers
        strategy = strategy_of(target)
        pairs = strategy.model_of(Layout.PAIRS) if Layout.PAIRS in strategy.others else None
        for choice in pairs.choices() if pairs else ():
            for vectors, rows in choice.tiles.rows.items():
                # Weights, a broadcast row, a product and ones.
                assert rows * vectors + vectors + 3 <= target.machine.vector_registers


def test_the_best_candidate_takes_least_for_a_sum() -> None:
    model = tile_model(resolve("znver4"))
    assert model
    choices = list(model.choices())
    for choice in choices:
        costs = [one.cost for one in choice.candidates]
        assert costs == sorted(costs)
        assert choice.candidates[0].vectors == max(choice.tiles.rows)
    # 14 x 2 dot products, one a cycle; 128 bytes of weights at 8 a cycle are less.
    best = choices[-1].candidates[0]
    assert (best.rows, best.vectors, best.bound) == (14, 2, "products")
    assert (best.cycles["products"], best.cycles["weights"]) == (28, 16)
    assert "14 rows x 2 vectors: 28.0 cycles for 28 sums, 1.00 each, bound by products" in explained(model)


@given(EXTENTS, st.integers(1, 70))
def test_splits_are_whole_tiles_and_one_rest(extent: int, tile: int) -> None:
    parts = split(extent, tile)
    assert covered(parts) == list(range(extent))
    assert [own for _, _, own in parts[:-1]] == [tile] * (len(parts) - 1)
    assert 1 <= len(parts) <= 2
    assert all(size % own == 0 and own <= tile for _, size, own in parts)


@given(EXTENTS, st.sampled_from([16, 32, 64]), st.sampled_from([4, 8, 16]))
def test_lanes_of_a_row_are_whole_vectors_and_one_rest(extent: int, width: int, lanes: int) -> None:
    parts = lane_parts(extent, width, lanes)
    assert covered(parts) == list(range(extent))
    assert all(size % own == 0 and own <= width and (own < lanes or own % lanes == 0) for _, size, own in parts)


@given(EXTENTS, st.integers(2, 24))
def test_rows_leave_no_tiny_rest(extent: int, maximum: int) -> None:
    rows = rows_for(extent, maximum)
    assert 1 <= rows <= min(maximum, extent)
    tiles = -(-extent // rows)
    # No more tiles than with the largest tile, unless that makes them all equal.
    assert extent % rows == 0 or tiles == -(-extent // maximum)


@pytest.mark.parametrize(
    ("cpu", "channels", "rows"),
    [("alderlake", 128, 6), ("alderlake", 8, 14), ("sapphirerapids", 128, 14), ("znver4", 128, 4), ("haswell", 128, 2)],
)
def test_no_register_tile_waits_for_its_own_sums(cpu: str, channels: int, rows: int) -> None:
    # Two products a cycle, each five cycles late, keep ten sums busy: 6 rows of 2 vectors are enough, 4 are not.
    strategy = strategy_of(resolve(cpu))
    block = strategy.channel_blocks(channels, 300)[0]
    assert rows_for(28, block.rows, strategy.least_rows(block)) == rows


@given(CHANNELS, st.integers(1, 30), st.booleans(), st.sampled_from([64, 32, 16]))
def test_lane_blocks_cover_all_pixels_and_stay_inside(lanes: int, width: int, merge: bool, vector: int) -> None:
    blocks = lane_blocks(lanes, width, merge=merge, vector=vector)
    seen: set[int] = set()
    for block in blocks:
        assert block.pixels <= width
        assert block.tiles * vector == block.pixels * block.lanes
        assert block.start + block.lanes <= lanes
        seen |= set(range(block.start, block.start + block.lanes))
    assert seen == (set(range(lanes)) if blocks else set())


def test_accumulators_data_and_weights_of_interleaved_rows_fit_the_registers() -> None:
    for name in TARGETS:
        target = resolve(name)
        rows = strategy_of(target).interleaved_rows
        assert 4 * rows + 4 + 4 <= target.machine.vector_registers or rows == 0
        assert (rows == 0) == (name == "generic")


@given(EXTENTS)
def test_every_row_of_pixels_is_covered_once(extent: int) -> None:
    parts = AVX512.depthwise_rows(extent)
    assert covered(parts) == list(range(extent))
    assert all(size % tile == 0 and tile <= AVX512.interleaved_rows for _, size, tile in parts)
