"""TFLite models that nobody means well: any operator, with any tensors and any options, drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray
from tflite_graphs import HALF

from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization

_SHAPES: tuple[tuple[int, ...], ...] = ((1, 8, 8, 4), (8, 4), (4,), (), (1, 1, 1, 1), (2, 8, 8, 4), (1,) * 6, (0, 4))
_LARGE: tuple[tuple[int, ...], ...] = ((1, 20000, 20000, 4), (1, 2**15, 2**15, 1), (2**31 - 1,))
_NUMBERS = (0, 1, 1, 1, 2, 2, 3, -1, 4, 127, 1000, 2**31 - 1, -(2**31))
_QUANTIZATIONS = (
    HALF,
    HALF,
    HALF,
    Quantization((1 / 256,), (-128,)),
    Quantization((1 / 128,), (0,)),
    Quantization((1e-30,), (0,)),
    Quantization((0.0,), (0,)),
    Quantization((float("inf"),), (0,)),
    Quantization((0.5,), (2**40,)),
    Quantization((0.5,) * 4, (0,) * 4, 3),
    None,
)
_PAIRS = (
    "ADD",
    "SUB",
    "MUL",
    "DIV",
    "MAXIMUM",
    "MINIMUM",
    "SQUARED_DIFFERENCE",
    "PRELU",
    "BATCH_MATMUL",
    "CONCATENATION",
)
_INDEXED = ("ARG_MAX", "ARG_MIN", "BROADCAST_TO", "GATHER", "MIRROR_PAD", "PAD", "RESHAPE", "RESIZE_BILINEAR", "SPLIT")
_REDUCED = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REVERSE_V2", "RESIZE_NEAREST_NEIGHBOR", "TILE")
_MANY = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "PADV2", "SLICE", "SPLIT_V")
_BLOCKS = ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
_ARITIES = {
    **dict.fromkeys((*_PAIRS, *_INDEXED, *_REDUCED, "EXPAND_DIMS", "PACK", "BATCH_MATMUL", "TRANSPOSE"), 2),
    **dict.fromkeys((*_MANY, *_BLOCKS), 3),
    "STRIDED_SLICE": 4,
}
OPTIONS = {value: name for name, value in vars(tflite.BuiltinOptions).items() if isinstance(value, int)}


class Drawing:
    """Draws the parts of a model; equal seeds draw equal models."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.writer = ModelWriter("drawn")

    def one_of(self, entries: Sequence[Any]) -> Any:
        return entries[int(self.random.integers(len(entries)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def model(self, kind: str, options_type: int) -> bytes:
        """A graph of one node of operator `kind`, with options of the type `options_type`, mostly."""
        dtype = self.one_of((np.int8, np.int8, np.uint8, np.float32))
        x = self._tensor("x", dtype)
        count = _ARITIES.get(kind, 1) if self.chance(0.85) else self.one_of((1, 2, 3, 4, 5))
        inputs = [x if i == 0 and self.chance(0.8) else self._input(i, dtype) for i in range(count)]
        outputs = [self._output(f"y{i}", dtype) for i in range(self.one_of((*(1,) * 9, 2, 3)))]
        if self.chance(0.1):
            options_type = self.one_of(list(OPTIONS))
        self.writer.operator(getattr(tflite.BuiltinOperator, kind), inputs, outputs, options_type, self._options())
        return self.writer.finish([x, *(i for i in inputs if i >= 0 and i != x and self.chance(0.2))], outputs[:1])

    def _output(self, name: str, dtype: type[np.generic]) -> int:
        """Mostly without a shape, which the operator then gives."""
        if self.chance(0.7):
            return self.writer.tensor(name, (), dtype, self._quantization())
        return self._tensor(name, dtype)

    def _quantization(self) -> Quantization | None:
        return HALF if self.chance(0.7) else self.one_of(_QUANTIZATIONS)

    def _tensor(self, name: str, dtype: type[np.generic]) -> int:
        shape = (1, 8, 8, 4) if self.chance(0.75) else self.one_of((*_SHAPES[:-1], *_LARGE))
        if self.chance(0.05):
            dtype = self.one_of((np.int16, np.int32, np.int64, np.float32, np.uint8))
        return self.writer.tensor(name, shape, dtype, self._quantization())

    def _input(self, index: int, dtype: type[np.generic]) -> int:
        if self.chance(0.05):
            return -1
        if self.chance(0.2):
            return self._tensor(f"x{index}", dtype)
        if self.chance(0.6):
            return self.writer.constant(f"c{index}", self._integers())
        weight: NDArray[Any] = np.ones(self._weight_shape(), dtype)
        return self.writer.constant(f"c{index}", weight, self._quantization())

    def _weight_shape(self) -> tuple[int, ...]:
        return self.one_of(((4, 3, 3, 4), (1, 3, 3, 4), (4, 4), (1, 8, 8, 4), (), (4,), (2, 2, 2, 4)))

    def _integers(self) -> NDArray[Any]:
        count = self.one_of((0, 1, 1, 2, 3, 4, 4, 4, 8))
        entries = np.array(
            [self.one_of(_NUMBERS) for _ in range(count)], dtype=self.one_of((np.int32, np.int32, np.int64))
        )
        if count == 1 and self.chance(0.3):
            return entries.reshape(())
        return entries.reshape(4, 2) if count == 8 else entries

    def _options(self) -> Callable[[Builder], int] | None:
        """A table of any numbers: in every schema these are fields of 1 to 4 bytes, or offsets."""
        if self.chance(0.05):
            return None
        entries = [self.one_of((0, 0, 1, 1, 1, *_NUMBERS)) for _ in range(9)]
        plain = self.chance(0.7)

        def write(builder: Builder) -> int:
            builder.StartObject(len(entries))
            for slot, entry in enumerate(entries):
                builder.PrependInt32Slot(slot, min(abs(entry), 2) if plain else entry, 0)
            return builder.EndObject()

        return write


def options_of(kind: str) -> int:
    """The number of the options' type that an operator is meant to have, 0 where its name does not say."""
    words = "".join(word.capitalize() for word in kind.split("_"))
    special = {"Conv2d": "Conv2D", "DepthwiseConv2d": "DepthwiseConv2D", "Mean": "Reducer", "Sum": "Reducer"}
    special |= {"ReduceMax": "Reducer", "ReduceMin": "Reducer", "ReduceProd": "Reducer", "BatchMatmul": "BatchMatMul"}
    special |= {"AveragePool2d": "Pool2D", "MaxPool2d": "Pool2D", "L2Normalization": "L2Norm", "SplitV": "SplitV"}
    name = f"{special.get(words, words)}Options"
    return int(getattr(tflite.BuiltinOptions, name, 0))
