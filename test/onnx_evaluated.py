"""What ONNX operators give at run time: by the package's reference, interpreted and compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from compiled_ops import check_compiled
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx_graphs import ModelBuilder

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
WIDE = (np.int32, np.int64)
SIGNED = (np.int8, np.int16, *WIDE)
INTEGERS = (*SIGNED, np.uint8, np.uint16)
TYPES = (*INTEGERS, np.float32, np.bool_)


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def drawn(shape: Sequence[int], dtype: Any, seed: int = 0) -> Array:
    """Numbers of which many are equal, and both ends of the type."""
    rng = np.random.default_rng(seed)
    if dtype is np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype is np.float32:
        return (rng.integers(-9, 9, shape) / 2).astype(dtype)
    limits = np.iinfo(dtype)
    found = rng.integers(max(limits.min, -5), 6, shape).astype(dtype)
    if found.size > 3:
        found.flat[1], found.flat[3] = limits.min, limits.max
    return found


def found_by(content: bytes, *inputs: Array) -> tuple[Array, ...]:
    """What the interpreter and compiled code give."""
    module = import_onnx(content)
    wanted = interpreter.run(module, inputs)
    check_compiled(module, "host", [inputs], [wanted])
    return wanted


def run_both(content: bytes, *inputs: Array) -> Array:
    """The only result, of both."""
    (found,) = found_by(content, *inputs)
    return found


def expected(content: bytes, inputs: dict[str, Array]) -> list[Array]:
    evaluator: Any = ReferenceEvaluator(ModelProto.FromString(content))
    with np.errstate(all="ignore"):
        results: Any = evaluator.run(None, inputs)
    return [np.asarray(result) for result in results]


def check(
    kind: str, inputs: Sequence[Array], constants: int = 0, outputs: int = 1, version: int = 18, **attributes: Any
) -> tuple[Array, ...]:
    """The last `constants` inputs are known."""
    model = ModelBuilder()
    free = len(inputs) - constants
    names = [model.input(f"x{i}", array.shape, array.dtype.type) for i, array in enumerate(inputs[:free])]
    names += [model.constant(array) for array in inputs[free:]]
    results = [f"y{i}" for i in range(outputs)]
    model.node_of_many(kind, names, results, **attributes)
    return check_model(model, results, dict(zip(names, inputs[:free], strict=False)), version)


def check_model(
    model: ModelBuilder, results: Sequence[str], inputs: dict[str, Array], version: int = 18
) -> tuple[Array, ...]:
    """The reference, the interpreter and every target give the same `results` for `inputs`, which have names."""
    content = model.finish(*results, dtype=np.float32, version=version)
    wanted = expected(content, inputs)
    found = found_by(content, *inputs.values())
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
    return found


def refused(content: bytes) -> str:
    with pytest.raises(ImportModelError) as caught:
        import_onnx(content)
    return caught.value.render()
