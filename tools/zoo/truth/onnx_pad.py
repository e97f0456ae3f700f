"""ONNX Pad, of which onnx's own evaluator lacks negative pads: those remove elements."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

Array = NDArray[Any]
Mode = Literal["constant", "edge", "reflect", "wrap"]


class Pad(OpRun):
    # Up to opset 10, pads and value are attributes.
    def _run(
        self,
        x: Array,
        pads: Array,
        value: Array | float | None = None,
        axes: Array | None = None,
        mode: Mode | None = None,
    ) -> tuple[Array, ...]:
        widths = np.zeros((x.ndim, 2), np.int64)
        widths[slice(None) if axes is None else np.asarray(axes)] = np.asarray(pads).reshape(2, -1).T
        removed = np.maximum(-widths, 0)
        kept = tuple(slice(low, extent - high) for (low, high), extent in zip(removed, x.shape, strict=True))
        added, constant = np.maximum(widths, 0), 0 if value is None else np.asarray(value).item()
        if mode in (None, "constant"):
            return (np.pad(x[kept], added, constant_values=constant),)
        return (np.pad(x[kept], added, mode=mode),)
