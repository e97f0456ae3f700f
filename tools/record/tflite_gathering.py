"""TFLite operators that gather elements: GATHER, MIRROR_PAD, TILE, REVERSE_V2, BROADCAST_TO, space, depth and batch."""

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


@dataclass(frozen=True)
class _Movement:
    """An operator on one tensor; `constants` are its inputs behind it, `fields` its options."""

    code: int
    dtype: Type
    shape: Shape
    to: Shape
    constants: Sequence[Tensor] = ()
    options_type: int = _OPTIONS.NONE
    fields: tuple[int, ...] = ()


def _pairs(*pairs: tuple[int, int]) -> Tensor:
    return integers(*pairs)


_ROWS = constant(np.array([5, 1, 3, 0, 2, 4, 4]))
_SCALAR = constant(np.array(2, dtype=np.int32))
_REFLECTED = _pairs((0, 0), (1, 2), (3, 1))
_REPEATED = _pairs((0, 0), (3, 2), (1, 4), (0, 1))
_GATHER, _MIRROR, _REVERSE = _OPTIONS.GatherOptions, _OPTIONS.MirrorPadOptions, _OPTIONS.ReverseV2Options
_TO_BATCH, _TO_SPACE = _OPTIONS.SpaceToBatchNDOptions, _OPTIONS.BatchToSpaceNDOptions
_TO_DEPTH, _FROM_DEPTH = _OPTIONS.SpaceToDepthOptions, _OPTIONS.DepthToSpaceOptions
_MOVEMENTS: dict[str, _Movement] = {
    "gather": _Movement(
        _OPERATOR.GATHER, np.int8, (2, 7, 5), (2, 2, 2, 5), [integers([3, 0], [6, 6])], _GATHER, (1, 0)
    ),
    "gather_scalar": _Movement(_OPERATOR.GATHER, np.uint8, (2, 7, 5), (2, 7), [_SCALAR], _GATHER, (-1, 0)),
    "gather_rows": _Movement(_OPERATOR.GATHER, np.float32, (6, 7), (7, 7), [_ROWS], _GATHER, (0, 0)),
    "mirror_pad_reflect": _Movement(_OPERATOR.MIRROR_PAD, np.int8, (2, 5, 4), (2, 8, 8), [_REFLECTED], _MIRROR, (0,)),
    "mirror_pad_symmetric": _Movement(
        _OPERATOR.MIRROR_PAD, np.uint8, (1, 3, 4, 2), (1, 8, 9, 3), [_REPEATED], _MIRROR, (1,)
    ),
    "tile": _Movement(_OPERATOR.TILE, np.uint8, (2, 3, 4), (2, 9, 8), [integers(1, 3, 2)], _OPTIONS.TileOptions),
    "reverse": _Movement(_OPERATOR.REVERSE_V2, np.int8, (2, 3, 4), (2, 3, 4), [integers(1)], _REVERSE),
    "reverse_last": _Movement(_OPERATOR.REVERSE_V2, np.uint8, (2, 3, 4), (2, 3, 4), [integers(2)], _REVERSE),
    "broadcast_to": _Movement(
        _OPERATOR.BROADCAST_TO, np.int8, (3, 1, 4), (2, 3, 5, 4), [integers(2, 3, 5, 4)], _OPTIONS.BroadcastToOptions
    ),
    "depth_to_space": _Movement(_OPERATOR.DEPTH_TO_SPACE, np.int8, (2, 3, 4, 12), (2, 6, 8, 3), (), _FROM_DEPTH, (2,)),
    "depth_to_space_float": _Movement(
        _OPERATOR.DEPTH_TO_SPACE, np.float32, (1, 2, 3, 9), (1, 6, 9, 1), (), _FROM_DEPTH, (3,)
    ),
    "space_to_depth": _Movement(_OPERATOR.SPACE_TO_DEPTH, np.uint8, (2, 4, 6, 3), (2, 2, 3, 12), (), _TO_DEPTH, (2,)),
    "space_to_batch": _Movement(
        _OPERATOR.SPACE_TO_BATCH_ND,
        np.int8,
        (2, 5, 6, 3),
        (12, 4, 3, 3),
        [integers(2, 3), _pairs((1, 2), (0, 3))],
        _TO_BATCH,
    ),
    "space_to_batch_row": _Movement(
        _OPERATOR.SPACE_TO_BATCH_ND, np.uint8, (2, 6, 3), (4, 4, 3), [integers(2), _pairs((0, 2))], _TO_BATCH
    ),
    "batch_to_space": _Movement(
        _OPERATOR.BATCH_TO_SPACE_ND,
        np.uint8,
        (12, 2, 3, 3),
        (2, 3, 7, 3),
        [integers(2, 3), _pairs((1, 0), (0, 2))],
        _TO_SPACE,
    ),
    "batch_to_space_row": _Movement(
        _OPERATOR.BATCH_TO_SPACE_ND, np.int8, (4, 3, 3), (2, 6, 3), [integers(2), _pairs((0, 0))], _TO_SPACE
    ),
}


def _draw() -> Iterator[Case]:
    for name, movement in _MOVEMENTS.items():
        draw, dtype = Draw(name), movement.dtype
        is_f32 = dtype is np.float32
        values = draw.normal(movement.shape) if is_f32 else draw.values(movement.shape, dtype)
        quantization = None if is_f32 else _QUANTIZATION
        inputs = [given(values, quantization), *movement.constants]
        result = Tensor(movement.to, dtype, quantization)
        fields = options(*movement.fields)
        yield one_operator(name, movement.code, inputs, [result], movement.options_type, fields)


FAMILY = Family("tflite_gathering", _draw, litert.reference)
