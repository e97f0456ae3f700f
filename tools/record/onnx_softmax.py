"""Records `test/unit/vectors/onnx_softmax.npz`: rows of QLinearSoftmax that tell a logarithm's precision.

ONNX Runtime scales the entries of its table by t = log(largest float32 / extent) - 5.  Whether t is formed in float32
or in float64 shows in few rows: candidates are drawn until one has been found.  Run it where onnxruntime is installed:

    python tools/record/onnx_softmax.py test/unit/vectors/onnx_softmax.npz
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EXTENTS = (4, 5, 10, 16, 33, 64)
ROWS = 8
_CANDIDATES = 500000
_OUTPUT_SCALE = 1 / 256


def main() -> None:
    """Write the file that the command line names."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for index, (model, codes, wanted) in enumerate(_cases(rng)):
        arrays |= {f"softmax_{index}.model": np.frombuffer(model, dtype=np.uint8)}
        arrays |= {f"softmax_{index}.in0": codes, f"softmax_{index}.out0": wanted}
    np.savez_compressed(sys.argv[1], **arrays)


def _cases(rng: np.random.Generator) -> Iterator[tuple[bytes, Array, Array]]:
    """A model, its input of `ROWS` rows and ONNX Runtime's output for every extent, uint8 and int8 by turns."""
    for index, extent in enumerate(EXTENTS):
        dtype = (np.uint8, np.int8)[index % 2]
        while True:
            scale = float(np.float32(10.0 ** rng.uniform(-2.5, -0.5)))
            codes = _telling_rows(rng, extent, dtype, scale)
            if codes is not None:
                break
        model = _model(extent, dtype, scale)
        options: Any = import_module("onnxruntime")
        session = options.InferenceSession(model, providers=["CPUExecutionProvider"])
        yield model, codes, session.run(None, {"x": codes})[0]


def _telling_rows(rng: np.random.Generator, extent: int, dtype: type[np.generic], scale: float) -> Array | None:
    """`ROWS` rows with those first that tell, None where none of the candidates does."""
    info = np.iinfo(np.dtype(dtype).name)
    codes = rng.integers(info.min, info.max + 1, (_CANDIDATES // extent, extent)).astype(dtype)
    single, double = (_codes(codes, scale, is_single=is_single) for is_single in (True, False))
    tells = np.any(single != double, axis=1)
    return codes[np.argsort(~tells, kind="stable")][:ROWS] if tells.any() else None


def _codes(codes: Array, scale: float, *, is_single: bool) -> Array:
    """Rounded shares of 256, whose logarithm is formed in float32 or in float64."""
    logarithm = math.log(float(np.finfo(np.float32).max / np.float32(codes.shape[1])))
    reserved = float(np.float32(logarithm) - np.float32(5)) if is_single else logarithm - 5
    entries = np.array([math.exp((reserved / scale - d) * scale) for d in range(256)]).astype(np.float32)
    terms = entries[codes.max(axis=1, keepdims=True).astype(int) - codes]
    return np.rint(terms * np.float32(1 / _OUTPUT_SCALE) / np.add.accumulate(terms, axis=1)[:, -1:])


def _model(extent: int, dtype: type[np.generic], scale: float) -> bytes:
    helper: Any = import_module("onnx.helper")
    element: int = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    low = int(np.iinfo(np.dtype(dtype).name).min)
    parameters = [("s", scale), ("z", low), ("out_s", _OUTPUT_SCALE), ("out_z", low)]
    constants = [
        helper.make_tensor(name, 1 if name.endswith("s") else element, [], [value]) for name, value in parameters
    ]
    names = ["x", *(name for name, _ in parameters)]
    node = helper.make_node("QLinearSoftmax", names, ["y"], domain="com.microsoft", axis=-1, opset=13)
    ends = [helper.make_tensor_value_info(name, element, [ROWS, extent]) for name in ("x", "y")]
    graph = helper.make_graph([node], "softmax", ends[:1], ends[1:], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


if __name__ == "__main__":
    main()
