"""The arithmetic that machines on NumPy arrays of either precision share."""

from __future__ import annotations

from typing import Any, cast

import numpy as np


class NumpyArithmetic:
    """Operations that NumPy rounds to the precision of its operands."""

    def add(self, a: Any, b: Any) -> Any:
        """See `Machine`."""
        return a + b

    def subtract(self, a: Any, b: Any) -> Any:
        """See `Machine`."""
        return a - b

    def multiply(self, a: Any, b: Any) -> Any:
        """See `Machine`."""
        return a * b

    def divide(self, a: Any, b: Any) -> Any:
        """See `Machine`."""
        return a / b

    def where_less(self, a: Any, b: Any, then: Any, other: Any) -> Any:
        """See `Machine`."""
        return cast("Any", np.where(a < b, then, other))
