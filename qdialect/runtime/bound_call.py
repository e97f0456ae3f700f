"""Calls of machine code whose arguments are known."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import partial

# Their arguments need no conversion, which would cost as much as the call.
_PACKED = ctypes.CFUNCTYPE(None)
_RUN = ctypes.CFUNCTYPE(ctypes.c_int)


class BoundCall:
    """A function and the values of its arguments in one block: calling it again costs no more than the call."""

    def __init__(
        self,
        function: Callable[..., object],
        arguments: Sequence[object],
        values: ctypes.Array[ctypes.c_int64],
        keep: Sequence[object],
    ) -> None:
        self._values = values
        call = partial(function, *arguments)
        # It holds what it needs by itself: it may outlive this object.
        call.__dict__["keep"] = (values, *keep)
        self.call: Callable[[], object] = call
        """Call the function, without the interpreter's lock; as an attribute, with no frame of Python's in between."""

    def writer(self, count: int) -> Callable[..., None]:
        """What replaces the first `count` values by its arguments."""
        return partial(struct.Struct(f"={count}q").pack_into, self._values, 0)


def packed_call(address: int, values: Sequence[int], keep: Sequence[object]) -> BoundCall:
    """A call of the function at `address`, which takes an array of pointers to its arguments, 64 bits each."""
    block = (ctypes.c_int64 * len(values))(*values)
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(block) + 8 * i for i in range(len(values))))
    return BoundCall(_PACKED(address), [ctypes.byref(pointers)], block, keep)


def run_call(
    address: int,
    inputs: Sequence[int],
    outputs: Sequence[int],
    workspace: int,
    limits: Sequence[object],
    keep: Sequence[object],
) -> BoundCall:
    """A call of the function at `address`, which takes lists of pointers, a workspace and `limits`, and returns an int.

    Its values are `inputs` and `outputs`; what `limits` hold is read at each call.
    """
    block = (ctypes.c_int64 * max(len(inputs) + len(outputs), 1))(*inputs, *outputs)
    start = ctypes.addressof(block)
    lists = ctypes.c_void_p(start), ctypes.c_void_p(start + ctypes.sizeof(ctypes.c_int64) * len(inputs))
    return BoundCall(_RUN(address), [*lists, ctypes.c_void_p(workspace), *limits], block, keep)
