"""Scale and zero point of a range, on ranges whose results are known."""

import numpy as np
import pytest

from qdialect.arithmetic.ranges import range_scale, range_zero_point


@pytest.mark.parametrize(
    ("minimum", "maximum", "scale", "zero_point"),
    [
        (0.0, 0.0, 1.0, 0.0),
        (0.0, 255.0, 1.0, -128.0),
        (-255.0, 0.0, 1.0, 127.0),
        (-100.0, 155.0, 1.0, -28.0),
        (3.0, 255.0, 1.0, -128.0),
        (-255.0, -7.0, 1.0, 127.0),
        (-100.25, 154.75, 1.0, -28.0),
        (-100.5, 154.5, 1.0, -28.0),
        (-130.5, 124.5, 1.0, 3.0),
        (-np.inf, 1.0, np.inf, 127.0),
    ],
)
def test_known_ranges(minimum: float, maximum: float, scale: float, zero_point: float) -> None:
    """Ties, 127 - 154.5 and 127 - 124.5, go away from zero; a width of infinity leaves the other end."""
    ends = np.array([minimum], np.float32), np.array([maximum], np.float32)
    np.testing.assert_array_equal(range_scale(*ends), np.array([scale], np.float32))
    np.testing.assert_array_equal(range_zero_point(*ends), np.array([zero_point], np.float32))
