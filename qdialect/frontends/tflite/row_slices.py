"""Lists of rows that loops keep in one tensor: written back as a whole, every row costs a copy of all of them.

A row is replaced by a CONCATENATION of what precedes it, the row, and what follows it, each a SLICE of the list before.
Here the slices are tracked of which the tensor consists along the first dimension, so that only the last CONCATENATION
is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import tflite

from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.flatbuffer.reader import read_options

Fresh = Callable[[Tensor], Tensor]

_MAX_SLICES = 1024


class RowSlices:
    """The slices that tensors consist of, by index of the tensor."""

    def __init__(self) -> None:
        self._of: dict[int, list[Tensor]] = {}

    def taken(self, operator: Operator, fresh: Fresh) -> Operator | None:
        """A node of a loop, its inputs known, in terms of slices; None where nothing is left to compute.

        `fresh` gives a new tensor like another.
        """
        if operator.kind == "CONCATENATION":
            return self._joined(operator)
        return self._sliced(operator, fresh) if operator.kind == "SLICE" else operator

    def _joined(self, operator: Operator) -> Operator:
        def read(options: tflite.ConcatenationOptions) -> tuple[int, int]:
            return options.Axis(), options.FusedActivationFunction()

        parts = [self._of.get(tensor.index, [tensor]) for tensor in operator.inputs if tensor is not None]
        flat = [one for part in parts for one in part]
        is_plain = read_options(operator, tflite.ConcatenationOptions, read) == (0, 0)
        has_rows = len(parts) == len(operator.inputs) and all(one.shape for one in flat)
        if not is_plain or not has_rows or not 1 <= len(flat) <= _MAX_SLICES:
            return operator
        self._of[operator.outputs[0].index] = flat
        return replace(operator, inputs=tuple(flat))

    def _sliced(self, operator: Operator, fresh: Fresh) -> Operator | None:
        bounds = _rows_of(operator)
        if bounds is None:
            return operator
        data, output = operator.inputs[0], operator.outputs[0]
        assert data is not None
        slices = _between(self._of.get(data.index, [data]), *bounds, fresh)
        if slices is None:
            return operator
        self._of[output.index] = slices
        shape = (bounds[1] - bounds[0], *data.shape[1:])
        # Rows that are there are cut out as well, for whoever reads them other than to join them.
        return replace(operator, outputs=(replace(output, shape=shape),)) if slices else None


def _between(slices: Sequence[Tensor], begin: int, end: int, fresh: Fresh) -> list[Tensor] | None:
    found: list[Tensor] = []
    first = 0
    for one in slices:
        extent = one.shape[0]
        low, high = max(begin - first, 0), min(end - first, extent)
        first += extent
        if low >= high:
            continue
        if high - low < extent and one.data is None:
            return None
        found.append(one if high - low == extent else _part(one, low, high, fresh))
    return found


def _part(one: Tensor, low: int, high: int, fresh: Fresh) -> Tensor:
    assert one.data is not None
    return replace(fresh(one), shape=(high - low, *one.shape[1:]), data=one.data[low:high])


def _rows_of(operator: Operator) -> tuple[int, int] | None:
    """The rows [begin, end) of a SLICE that takes all of every dimension but the first."""
    if len(operator.inputs) != 3 or len(operator.outputs) != 1 or None in operator.inputs:
        return None
    data, begin, size = (tensor for tensor in operator.inputs if tensor is not None)
    if begin.data is None or size.data is None or not data.shape:
        return None
    firsts, counts = begin.data.ravel().tolist(), size.data.ravel().tolist()
    if len(firsts) != len(data.shape) or len(counts) != len(data.shape):
        return None
    ends = [
        extent if count == -1 else first + count
        for first, count, extent in zip(firsts, counts, data.shape, strict=True)
    ]
    is_whole = all(first == 0 for first in firsts[1:]) and tuple(ends[1:]) == data.shape[1:]
    return (firsts[0], ends[0]) if is_whole and 0 <= firsts[0] <= ends[0] <= data.shape[0] else None
