"""Every form of RESCALE gives what the specification's pseudo-code gives."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from together import variants_together
from tosa_checks import check_spec
from tosa_text import TosaText

MODES = ("SINGLE_ROUND", "DOUBLE_ROUND")
ELEMENTS = ("i8", "i16", "i32")


@variants_together
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("source", "target"), list(product(ELEMENTS, ELEMENTS)))
def test_between_all_widths(mode: str, source: str, target: str) -> None:
    text = TosaText(f"tensor<7x50x{source}>")
    points = (5 if source == "i8" else 0, -7 if target == "i8" else 0)
    value = text.rescale("%x0", f"tensor<7x50x{target}>", [(1518500250, 35)], points, mode)
    check_spec(text.render(value))


@variants_together
@pytest.mark.parametrize("pair", [(1000, 32), (12345, 40), (3, 33), (2**29, 31), (2**30 - 1, 62), (0, 50)])
def test_short_multipliers_that_are_rounded_twice(pair: tuple[int, int]) -> None:
    text = TosaText("tensor<4097xi32>")
    check_spec(text.render(text.rescale("%x0", "tensor<4097xi32>", [pair], mode="DOUBLE_ROUND")), bits=31)


def test_short_multipliers_of_channels_that_are_rounded_twice() -> None:
    text = TosaText("tensor<50x3xi32>")
    pairs = [(2**30, 33), (77, 20), (100_000, 41)]
    check_spec(text.render(text.rescale("%x0", "tensor<50x3xi8>", pairs, (0, -9), "DOUBLE_ROUND")), bits=19)


@variants_together
@pytest.mark.parametrize(("source", "target"), [("i16", "i8"), ("i16", "i16"), ("i8", "i16"), ("i16", "i32")])
@pytest.mark.parametrize("unsigned", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("mode", MODES)
def test_unsigned_words(source: str, target: str, unsigned: tuple[bool, bool], mode: str) -> None:
    text, is_wide = TosaText(f"tensor<700x{source}>"), target == "i32"
    unsigned = (unsigned[0], unsigned[1] and not is_wide)
    points = [
        100 if flag and element == "i8" else 2**15 if flag else 0
        for flag, element in zip(unsigned, (source, target), strict=True)
    ]
    value = text.rescale("%x0", f"tensor<700x{target}>", [(2**30, 33)], (points[0], points[1]), mode, unsigned)
    check_spec(text.render(value))


def test_parameters_that_are_known_at_run_time() -> None:
    text = TosaText("tensor<6x3xi32>", "tensor<3xi32>", "tensor<3xi8>")
    points = [text.constant(0, "int32"), text.constant(4, "int8")]
    flags = "per_channel = true, input_unsigned = false, output_unsigned = false, scale32 = true"
    attributes = f"rounding_mode = DOUBLE_ROUND, {flags}"
    value = text.op("rescale", ["%x0", "%x1", "%x2", *points], attributes, "tensor<6x3xi8>")
    multipliers, shifts = np.array([2**30, 77, 2**31 - 1], np.int32), np.array([36, 20, 40], np.int8)
    x = np.random.default_rng(4).integers(-(2**18), 2**18, (6, 3)).astype(np.int32)
    check_spec(text.render(value), [x, multipliers, shifts])


@variants_together
@pytest.mark.parametrize("pairs", [[(2**14, 15)], [(2**15 - 1, 14), (77, 9), (2**14, 20)]])
def test_multipliers_of_16_bits(pairs: list[tuple[int, int]]) -> None:
    text = TosaText("tensor<100x3xi16>")
    check_spec(text.render(text.rescale("%x0", "tensor<100x3xi32>", pairs, scale32=False)), bits=8)


def test_a_scalar() -> None:
    text = TosaText("tensor<i32>")
    check_spec(text.render(text.rescale("%x0", "tensor<i8>", [(1000, 32)], mode="DOUBLE_ROUND")))
