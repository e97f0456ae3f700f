"""Weights of matrix tiles: in which order they are read, and what is fetched ahead or leaves the first level alone."""

import re

import pytest
from tile_networks import AMX, assert_same_bits, network

from qdialect.aot.object_file import object_code
from qdialect.ir.context import parse
from qdialect.lowering.cost.matrix_tiles import meets_pixels_first
from qdialect.lowering.cost.strategy import TiledOperand
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.qnn_to_linalg.contractions import tile_contraction
from tools.hot_loop import disassembled, hot_loop


def always(near: tuple[int, int], weights: TiledOperand, data: TiledOperand, results: int) -> bool:
    del near, weights, data, results
    return True


def test_columns_of_channels_that_meet_all_pixels_have_the_bits_of_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tile_contraction, "meets_pixels_first", always)
    drawn = network(13, (1, 5, 19, 68), (72, 1, 1), (40, 3, 1))
    assert_same_bits(drawn, (1, 5, 19, 68))


def test_large_weights_are_fetched_once() -> None:
    near, small, large = (1 << 20, 1 << 20), TiledOperand(1 << 16, 4), TiledOperand(1 << 21, 32)
    assert meets_pixels_first(near, large, small, 0)
    assert not meets_pixels_first(near, small, large, 0)
    assert not meets_pixels_first(near, small, small, 0)
    # One block of pixels fetches all weights once in either order.
    assert not meets_pixels_first(near, large, TiledOperand(1 << 16, 1), 0)


def test_weights_that_many_blocks_of_pixels_would_read_from_the_second_level_are_fetched_once() -> None:
    near, data = (1 << 20, 48 << 10), TiledOperand(115 << 10, 28)
    # 147 + 4 * 115 KB in place of 115 + 28 * 147, and 4 or 2 times the results.
    assert meets_pixels_first(near, TiledOperand(147 << 10, 4), data, 100 << 10)
    assert not meets_pixels_first(near, TiledOperand(147 << 10, 4), data, 1000 << 10)
    # Weights that stay in the first level are fetched once in either order.
    assert not meets_pixels_first(near, TiledOperand(36 << 10, 4), data, 100 << 10)
    # Many columns read the data as often as many blocks the weights.
    assert not meets_pixels_first(near, TiledOperand(147 << 10, 28), data, 100 << 10)


@pytest.mark.parametrize(
    ("pixels", "taps", "channels", "near", "far"),
    [
        # Of 16 KB, nothing; of 64 KB, the 2 x 16 rows of the next step, but nothing for 16 blocks of pixels, as they
        # stay near; of 128 KB, those rows for any number; of 1.25 MB, which meet four blocks of pixels, a fourth of the
        # rows of the next channels; of 128 KB that one block of pixels meets, rows again.
        (64, 256, 64, 0, 0),
        (480, 256, 256, 32, 0),
        (512, 256, 256, 0, 0),
        (512, 512, 256, 32, 0),
        (128, 1024, 1280, 0, 8),
        (32, 512, 256, 32, 0),
    ],
)
def test_weights_are_fetched_ahead(pixels: int, taps: int, channels: int, near: int, far: int) -> None:
    drawn = network(8, (1, 1, pixels, taps), (channels, 1, 1))
    loop = hot_loop(disassembled(object_code(lower(parse(drawn.text()), AMX).module, AMX)), "tdpbusd")
    assert (loop.count("prefetcht0"), loop.count("prefetcht1")) == (near, far)


@pytest.mark.parametrize(
    ("pixels", "taps", "channels", "passing"),
    [
        # 32 KB of a block's data and as many of a column's weights displace each other.
        (64, 1024, 64, 2),
        # 24 KB of both stay, and so do 16; no other column meets the data; 96 KB of it would be displaced by itself.
        (64, 768, 64, 0),
        (64, 512, 64, 0),
        (64, 1024, 32, 0),
        (64, 3072, 64, 0),
    ],
)
def test_weights_that_would_displace_the_data_of_a_block_pass(
    pixels: int, taps: int, channels: int, passing: int
) -> None:
    shape = (1, 1, pixels, taps)
    drawn = network(8, shape, (channels, 1, 1))
    loop = hot_loop(disassembled(object_code(lower(parse(drawn.text()), AMX).module, AMX)), "tdpbusd")
    assert (loop.count("tileloaddt1"), loop.count("tileloadd")) == (passing, 4 - passing)
    assert not passing or not loop.count("prefetcht0")
    assert_same_bits(drawn, shape)


def test_weights_that_are_read_once_are_fetched_four_steps_ahead() -> None:
    for pixels, steps in ((64, 1), (32, 4)):
        drawn = network(8, (1, 1, pixels, 2048), (64, 1, 1))
        code = str(lower(parse(drawn.text()), AMX, Phase.X86).module)
        (body,) = re.findall(r"llvm.x86.tileloadd64.*llvm.x86.tdpbusd", code, re.DOTALL)
        # Of 32 channels, whose tiles lie side by side, a row is 128 bytes.
        rows = {int(row) for row in re.findall(r"arith.addi %[^,]*, %c(\d+)(?:_\d+)? : index\s+memref.prefetch", body)}
        assert rows == set(range(16 * steps, 16 * steps + 16))
