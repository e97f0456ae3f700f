"""Products of bytes that are summed in pairs: exact whatever the weights, the zero points and the data."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT
from graphs import convolution
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from together import check_compiled, variants_together

from qdialect.lowering.cost.pair_sums import parts_that_fit, sums_fit
from qdialect.lowering.cost.strategy import Strategy, strategy_of
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.contractions import emission
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ChannelGroup, ReductionAxes
from qdialect.lowering.qnn_to_linalg.program.program import Kernel, Program
from qdialect.reference.interpreter import run
from qdialect.targets import TARGETS, host_features

AVX2 = TARGETS["avx2"]
HERE = "avx2" if AVX2.features <= host_features() else "avx2,portable"
EXTREMES = [-255, -129, -128, -127, -65, -64, -1, 0, 1, 63, 64, 65, 127, 128, 129, 255]


def test_the_bound_is_just_what_16_bits_hold() -> None:
    weights = np.arange(-128, 128)
    first, second = (each.ravel() for each in np.meshgrid(weights, weights))
    corners = [x * first + y * second for x in (0, 255) for y in (0, 255)]
    is_exact = (np.max(corners, axis=0) < 2**15) & (np.min(corners, axis=0) >= -(2**15))
    fits = [sums_fit(np.array(pair, np.int8)) for pair in zip(first, second, strict=True)]
    np.testing.assert_array_equal(fits, is_exact)


@given(st.lists(st.lists(st.sampled_from(EXTREMES) | st.integers(-255, 255), min_size=7, max_size=7), min_size=1))
def test_parts_add_up_and_every_pair_of_each_fits(rows: list[list[int]]) -> None:
    taps = np.array(rows, np.int16)
    parts = parts_that_fit(taps)
    np.testing.assert_array_equal(np.sum(parts, axis=0, dtype=np.int64), taps)
    assert all(sums_fit(np.pad(part, ((0, 0), (0, 1)))) for part in parts)


def test_weights_that_fit_are_one_part() -> None:
    taps = np.array([[127, 1, -128, 0, 100, -100, 64, 64]], np.int16)
    assert sums_fit(taps)
    assert len(parts_that_fit(taps)) == 1


def test_a_kernel_refuses_pairs_that_may_saturate() -> None:
    kernel = Kernel(Program([], [], strategy_of(AVX2)))
    with pytest.raises(ValueError, match="weights must have pairs of weights whose sums of products fit 16 bits"):
        kernel.data("weights", np.array([0, 0, 64, 65], np.int8), is_weight=True, in_pairs=True)


def test_rare_pairs_beyond_the_bound_are_multiplied_once_more() -> None:
    weights = np.full((16, 1, 1, 64), 30, np.int8)
    weights[3, 0, 0, 20:22] = 127
    window = ((1, 4, 4, 64), weights.shape, (1, 1), (0, 0, 0, 0), (1, 1), 1)
    text = str(lower(convolution(window, "ui8", weights, (0,)), AVX2, Phase.LINALG).module)
    assert "qnn.pair_sums_fit" in text
    assert "remainder0" in text
    assert "remainder1" not in text
    weights[:] = 127
    text = str(lower(convolution(window, "ui8", weights, (0,)), AVX2, Phase.LINALG).module)
    assert "qnn.pair_sums_fit" not in text
    assert "xi16>" in text


WINDOWS = [
    ((1, 5, 7, 3), (8, 3, 3, 3), (2, 2), (0, 1, 1, 0), (1, 1), 1),
    ((1, 6, 6, 6), (33, 2, 3, 6), (1, 1), (1, 1, 1, 1), (2, 1), 1),
    ((1, 3, 5, 36), (72, 1, 1, 18), (1, 1), (0, 0, 0, 0), (1, 1), 2),
    ((1, 4, 4, 12), (24, 3, 3, 2), (1, 1), (1, 1, 1, 1), (1, 1), 6),
    ((1, 1, 1, 132), (40, 1, 1, 132), (1, 1), (0, 0, 0, 0), (1, 1), 1),
]


def extreme(shape: tuple[int, ...], element: str) -> NDArray[Any]:
    """Weights at both ends of their range and between."""
    rng = np.random.default_rng(len(shape) + shape[0])
    kind = np.uint8 if element == "ui8" else np.int8
    ends = np.iinfo(kind)
    return rng.choice([ends.min, ends.min + 1, ends.max // 2, ends.max - 1, ends.max], shape).astype(kind)


def always(op: Contraction, strategy: Strategy, group: ChannelGroup, axes: ReductionAxes) -> bool:
    del op, strategy, group, axes
    return True


def never(op: Contraction, strategy: Strategy) -> bool:
    del op, strategy
    return False


@variants_together
@pytest.mark.parametrize("number", range(len(WINDOWS)))
@pytest.mark.parametrize("weight", EIGHT_BIT)
def test_extreme_weights_and_zero_points(number: int, weight: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contraction, "sums_pairs", always)
    monkeypatch.setattr(emission, "is_faster_on_words", never)
    channels = WINDOWS[number][1][0]
    low = 0 if weight == "ui8" else -128
    points = tuple(low + (0, 255, 128, 1)[(number + k) % 4] for k in range(channels if number % 2 else 1))
    data = EIGHT_BIT[number % 2]
    module = convolution(WINDOWS[number], data, extreme(WINDOWS[number][1], weight), points)
    arrays = [extreme(WINDOWS[number][0], data)]
    check_compiled(module, HERE, [arrays], [run(module, arrays)])
