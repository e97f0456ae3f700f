"""TFLite operators that cut tensors and stack them: SPLIT, SPLIT_V, SLICE, STRIDED_SLICE, PACK and UNPACK."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import tflite
from tflite_graphs import options

from tools.record import litert
from tools.record.drawing import Draw, Type
from tools.record.family import Case, Family
from tools.record.tflite_models import Tensor, constant, given, integers, one_operator, per_tensor

_OPERATOR, _OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
_QUANTIZATION = per_tensor(0.05, 3)
Shape = tuple[int, ...]
# Where an operator's data stands among its inputs.
_DATA = None


@dataclass(frozen=True)
class _Slicing:
    """An operator whose `inputs` are constants and its data, `_DATA`, once or several times."""

    code: int
    dtype: Type
    shape: Shape
    to: Sequence[Shape]
    inputs: Sequence[Tensor | None]
    options_type: int
    fields: tuple[int, ...] = ()


def _scalar(value: int) -> Tensor:
    return constant(np.array(value, dtype=np.int32))


def _strided(
    dtype: Type, shape: Shape, to: Shape, begin: Shape, end: Shape, strides: Shape, masks: tuple[int, ...]
) -> _Slicing:
    """`masks` are those of begin, end, ellipsis, new axis and shrunk axis."""
    inputs = [_DATA, integers(*begin), integers(*end), integers(*strides)]
    return _Slicing(_OPERATOR.STRIDED_SLICE, dtype, shape, [to], inputs, _OPTIONS.StridedSliceOptions, masks)


_SPLIT, _UNPACK, _PACK = _OPTIONS.SplitOptions, _OPTIONS.UnpackOptions, _OPTIONS.PackOptions
_CASES: dict[str, _Slicing] = {
    "split": _Slicing(_OPERATOR.SPLIT, np.int8, (2, 3, 6), [(2, 3, 2)] * 3, [_scalar(2), _DATA], _SPLIT, (3,)),
    "split_rows_float": _Slicing(_OPERATOR.SPLIT, np.float32, (4, 3), [(2, 3)] * 2, [_scalar(0), _DATA], _SPLIT, (2,)),
    "split_negative_axis": _Slicing(
        _OPERATOR.SPLIT, np.uint8, (1, 3, 4, 8), [(1, 3, 2, 8)] * 2, [_scalar(-2), _DATA], _SPLIT, (2,)
    ),
    "split_v": _Slicing(
        _OPERATOR.SPLIT_V,
        np.uint8,
        (2, 7, 5),
        [(2, 2, 5), (2, 4, 5), (2, 1, 5)],
        [_DATA, integers(2, -1, 1), _scalar(1)],
        _OPTIONS.SplitVOptions,
        (3,),
    ),
    "slice": _Slicing(
        _OPERATOR.SLICE,
        np.int8,
        (2, 5, 7, 3),
        [(2, 3, 5, 2)],
        [_DATA, integers(0, 1, 2, 0), integers(2, 3, -1, 2)],
        _OPTIONS.SliceOptions,
    ),
    "strided_slice": _strided(np.int8, (5, 7, 4), (2, 2, 3), (9, 1, -3), (4, 0, 4), (2, 3, 1), (1, 2, 0, 0, 0)),
    "strided_slice_masks": _strided(
        np.uint8, (5, 7, 4), (3, 7, 1), (1, 0, 0, 2), (4, 0, 0, 3), (1, 1, 1, 1), (0, 0, 2, 4, 8)
    ),
    "strided_slice_back": _strided(np.int8, (5, 7, 4), (5, 3, 3), (0, 0, 3), (0, 1, 0), (-1, -2, -1), (3, 1, 0, 0, 0)),
    "strided_slice_new_first": _strided(np.float32, (5, 7), (1, 2, 7), (0, 1), (0, 4), (1, 2), (0, 0, 0, 1, 0)),
    "unpack": _Slicing(_OPERATOR.UNPACK, np.int8, (2, 3, 4), [(2, 4)] * 3, [_DATA], _UNPACK, (3, 1)),
    "unpack_last": _Slicing(_OPERATOR.UNPACK, np.uint8, (3, 2), [(3,)] * 2, [_DATA], _UNPACK, (2, -1)),
    "pack": _Slicing(_OPERATOR.PACK, np.int8, (2, 5), [(2, 3, 5)], [_DATA] * 3, _PACK, (3, 1)),
    "pack_last": _Slicing(_OPERATOR.PACK, np.uint8, (2, 3, 5), [(2, 3, 5, 2)], [_DATA] * 2, _PACK, (2, -1)),
}


def _draw() -> Iterator[Case]:
    for name, case in _CASES.items():
        draw, is_f32 = Draw(name), case.dtype is np.float32
        values = draw.normal(case.shape) if is_f32 else draw.values(case.shape, case.dtype)
        quantization = None if is_f32 else _QUANTIZATION
        data = given(values, quantization)
        inputs = [tensor or data for tensor in case.inputs]
        results = [Tensor(shape, case.dtype, quantization) for shape in case.to]
        yield one_operator(name, case.code, inputs, results, case.options_type, options(*case.fields))


FAMILY = Family("tflite_slicing", _draw, litert.reference)
