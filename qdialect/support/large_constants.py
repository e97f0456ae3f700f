"""A table at the end of a network's constants, by which its code finds the large ones.

They lie among the constants, where the table locates them.  A process that has several networks with the same weights,
for other lengths or for the branches of an If, may hold one copy, and write into each table how far away that is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

LARGE = 1 << 17
"""Bytes of a constant from which on it is in the table."""
ROW = np.dtype([("offset", "<i8"), ("size", "<i8"), ("digest", "V16")])
"""Bytes from the start of the constants, and what tells a content from others."""
# The last row holds the number of rows before it.
_MARK = b"qnn large\0\0\0\0\0\0\0"


def append_table(constants: bytearray, large: Mapping[int, tuple[int, bytes]]) -> None:
    """Append the table of constants, by offset their size and digest, if there are any.

    A table of none follows constants that end as one: a model's weights may be any bytes.
    """
    if large or constants.endswith(_MARK):
        rows = [(offset, size, digest[:16]) for offset, (size, digest) in large.items()]
        constants.extend(bytes(-len(constants) % ROW.itemsize))
        constants.extend(np.array([*rows, (len(rows), 0, _MARK)], ROW).tobytes())


def table_of(constants: NDArray[np.uint8]) -> NDArray[np.void]:
    """The rows of the table, a view; empty where there is none."""
    # One byte that is repeated has no table.
    if constants.size % ROW.itemsize or constants.size == 0 or constants.strides != (1,):
        return np.empty(0, ROW)
    whole = constants.view(ROW)
    if whole[-1]["digest"].tobytes() != _MARK:
        return whole[:0]
    count = int(whole[-1]["offset"])
    return whole[len(whole) - 1 - count : -1] if 0 < count < len(whole) else whole[:0]
