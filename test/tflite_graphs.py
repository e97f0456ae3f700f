"""Pieces of small .tflite models: options tables without their schema, and integer constants."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flatbuffers import Builder
from numpy.typing import NDArray

from qdialect.frontends.tflite.writer import Quantization

HALF = Quantization((0.5,), (3,))
Entries = Sequence[int] | Sequence[Sequence[int]] | NDArray[Any]


def options(*entries: int) -> Callable[[Builder], int]:
    """An options table with these 32-bit fields, in the order of the schema."""

    def write(builder: Builder) -> int:
        builder.StartObject(len(entries))
        for slot, entry in enumerate(entries):
            builder.PrependInt32Slot(slot, entry, 0)
        return builder.EndObject()

    return write


def i32(entries: Entries | int) -> NDArray[np.int32]:
    return np.array(entries, dtype=np.int32)
