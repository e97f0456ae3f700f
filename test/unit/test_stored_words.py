"""Words of bytes that are stored before they are multiplied: when they are, and the bits of what is computed so."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT
from graphs import convolution
from numpy.typing import NDArray
from together import check_compiled, variants_together

from qdialect.lowering.cost.register_tiles import Layout
from qdialect.lowering.cost.strategy import Strategy, rows_for, strategy_of
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.contractions import emission
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction
from qdialect.reference.interpreter import run
from qdialect.targets import TARGETS, host_features, resolve

NAMES = ("avx512bw", "avx2", "sse4.1", "x86-64")
HERE = [name if TARGETS[name].features <= host_features() else f"{name},portable" for name in NAMES]
WIDE = ((1, 6, 6, 64), (64, 3, 3, 64), (1, 1), (1, 1, 1, 1), (1, 1), 1)
WINDOWS = [
    ((1, 5, 7, 3), (8, 3, 3, 3), (2, 2), (0, 1, 1, 0), (1, 1), 1),
    ((1, 6, 6, 6), (33, 2, 3, 6), (1, 1), (1, 1, 1, 1), (2, 1), 1),
    ((2, 3, 5, 36), (72, 1, 1, 18), (1, 1), (0, 0, 0, 0), (1, 1), 2),
    ((1, 4, 4, 12), (24, 3, 3, 2), (1, 1), (1, 1, 1, 1), (1, 1), 6),
    ((1, 1, 9, 131), (40, 1, 1, 131), (1, 1), (0, 0, 0, 0), (1, 1), 1),
]


def extreme(shape: tuple[int, ...], element: str) -> NDArray[Any]:
    ends = np.iinfo(np.uint8 if element == "ui8" else np.int8)
    return np.random.default_rng(shape[0]).choice([ends.min, ends.max - 1, ends.max], shape).astype(ends.dtype)


def always(op: Contraction, strategy: Strategy) -> bool:
    del op, strategy
    return True


@variants_together
@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("number", range(len(WINDOWS)))
def test_every_weight_and_zero_point_is_exact(target: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emission, "is_faster_on_words", always)
    channels, weight, data = WINDOWS[number][1][0], EIGHT_BIT[number // 2 % 2], EIGHT_BIT[number % 2]
    low = 0 if weight == "ui8" else -128
    points = tuple(low + (0, 255, 128, 1)[(number + k) % 4] for k in range(channels if number % 2 else 1))
    module = convolution(WINDOWS[number], data, extreme(WINDOWS[number][1], weight), points)
    arrays = [extreme(WINDOWS[number][0], data)]
    check_compiled(module, target, [arrays], [run(module, arrays)])


def lowered(target: str, weights: NDArray[Any] | None = None, window: Any = WIDE) -> str:
    chosen = extreme(window[1], "i8") if weights is None else weights
    return str(lower(convolution(window, "ui8", chosen, (0,)), resolve(target), Phase.LINALG).module)


def stores(text: str) -> bool:
    return 'qnn.label = "words"' in text


@pytest.mark.parametrize(
    ("target", "is_faster"),
    [
        ("avx2", True),
        ("avx512bw", True),
        ("znver3", True),
        ("haswell", False),
        ("znver2", False),
        ("avx2,tune=znver4", True),
        ("avx512vnni", False),
    ],
)
def test_words_are_stored_where_the_core_widens_more_slowly_than_it_multiplies(target: str, is_faster: bool) -> None:
    assert stores(lowered(target)) is is_faster


def test_pairs_that_fit_are_faster_than_stored_words() -> None:
    text = lowered("avx2", np.full(WIDE[1], 30, np.int8))
    assert "qnn.pair_sums_fit" in text
    assert not stores(text)


def test_a_copy_for_few_products_costs_more_than_it_saves() -> None:
    assert not stores(lowered("avx2", window=((1, 6, 6, 64), (8, 1, 1, 64), (2, 2), (0, 0, 0, 0), (1, 1), 1)))
    assert not stores(lowered("avx2", window=((1, 1, 2, 64), (64, 1, 1, 64), (1, 1), (0, 0, 0, 0), (1, 1), 1)))


def test_tiles_of_stored_words_are_tall() -> None:
    strategy = strategy_of(TARGETS["avx2"])
    (block,) = strategy.channel_blocks(64, 2048, Layout.STORED_WORDS)
    assert (block.rows, block.vectors) == (6, 2)
    assert rows_for(28, block.rows) == 4
    assert rows_for(28, block.rows, strategy.least_rows(block)) == 6
    assert rows_for(28, block.rows, strategy.least_rows(replace(block, layout=Layout.WORDS))) == 4
