"""TFLite RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: larger and smaller, corners aligned, centers of half a pixel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tflite
from tflite_graphs import options

from tools.record import litert
from tools.record.drawing import Draw, Type
from tools.record.family import Case, Family
from tools.record.tflite_models import Tensor, given, integers, one_operator, per_tensor

_OPERATOR, _OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
_QUANTIZATION = per_tensor(0.05, 3)
Shape = tuple[int, ...]
# Align corners, half pixel centers.
CENTERS: dict[str, tuple[int, int]] = {"": (0, 0), "corners_": (1, 0), "half_": (0, 1)}
# (image, size); a case is named after the height of the size.
_QUANTIZED: list[tuple[Shape, Shape]] = [((1, 9, 7, 3), (17, 26)), ((1, 6, 11, 5), (4, 3))]
_F32: list[tuple[Shape, Shape]] = [((1, 5, 4, 2), (7, 9))]
_SIZES: dict[Type, list[tuple[Shape, Shape]]] = {np.int8: _QUANTIZED, np.uint8: _QUANTIZED, np.float32: _F32}


def resized(name: str, kind: str, data: Tensor, size: Shape, centers: tuple[int, int]) -> Case:
    """Of an image to (height, width); `kind` is bilinear or nearest, `centers` the operator's two flags."""
    result = Tensor((data.shape[0], *size, data.shape[3]), data.dtype, data.quantization)
    inputs = [data, integers(*size)]
    if kind == "nearest":
        code, options_type = _OPERATOR.RESIZE_NEAREST_NEIGHBOR, _OPTIONS.ResizeNearestNeighborOptions
        return one_operator(name, code, inputs, [result], options_type, options(*centers))
    # Two fields of the past stand before the flags.
    code, options_type = _OPERATOR.RESIZE_BILINEAR, _OPTIONS.ResizeBilinearOptions
    return one_operator(name, code, inputs, [result], options_type, options(0, 0, *centers))


def _draw() -> Iterator[Case]:
    for dtype, sizes in _SIZES.items():
        for centers, flags in CENTERS.items():
            for image, size in sizes:
                for kind in ("bilinear", "nearest"):
                    name = f"resize_{kind}_{np.dtype(dtype).name}_{centers}{size[0]}"
                    yield resized(name, kind, _image(Draw(name), image, dtype), size, flags)


def _image(draw: Draw, shape: Shape, dtype: Type) -> Tensor:
    return given(draw.normal(shape)) if dtype is np.float32 else given(draw.values(shape, dtype), _QUANTIZATION)


FAMILY = Family("tflite_resize", _draw, litert.reference)
