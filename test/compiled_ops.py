"""Modules of one op, compiled for every kind of CPU and compared with the reference."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from graphs import graph
from numpy.typing import NDArray
from together import check_compiled, is_chosen

from qdialect import targets
from qdialect.dialect import build
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter

Array = NDArray[Any]
Attributes = dict[str, Any]
EIGHT_BIT = ("ui8", "i8")
INTEGERS = ("ui8", "i8", "i16", "ui16", "i32")
_HOST = targets.host().name
_TARGETS = dict.fromkeys((_HOST, "generic"))


def tensor(shape: Sequence[int], element: str) -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def ends(element: str) -> tuple[int, int]:
    return ELEMENT_RANGES[element]


def drawn(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if dtype.kind == "f":
        return np.asarray(rng.normal(size=shape) * 10, dtype=dtype)
    info = np.iinfo(dtype)
    values = rng.integers(info.min, int(info.max) + 1, shape)
    # Small and large numbers alike.
    return np.asarray(values >> rng.integers(0, dtype.itemsize * 8 - 7, shape), dtype=dtype)


def drawn_inputs(module: ir.Module) -> list[Array]:
    rng = np.random.default_rng(1)
    arguments = module.body.operations[0].regions[0].blocks[0].arguments
    return [drawn(NUMPY_DTYPES[element_of(one.type)], shape_of(one.type), rng) for one in arguments]


def check(module: ir.Module, *rounds: Sequence[Array]) -> None:
    """Compiled for the host, and half of many variants for any CPU too, `module` gives what the interpreter gives.

    Each of `rounds` is the inputs of a call; without any they are drawn.
    """
    inputs = rounds or [drawn_inputs(module)]
    wanted = [interpreter.run(module, arrays) for arrays in inputs]
    for name in _TARGETS if is_chosen() else [_HOST]:
        check_compiled(module, name, inputs, wanted)


def check_op(
    op: Any, types: Sequence[str], element: str, inputs: Sequence[Array] | None = None, **attributes: Any
) -> None:
    check_variants(op, types, element, [attributes], inputs)


def check_variants(
    op: Any, types: Sequence[str], element: str, variants: Sequence[Attributes], inputs: Sequence[Array] | None = None
) -> None:
    """One module with an op for each of `variants`, the attributes: compiling it takes less time than one for each."""

    def body(*operands: ir.Value) -> list[ir.Value]:
        return [build(op, *operands, element=element, **attributes).output for attributes in variants]

    check(graph(types, body), *([inputs] if inputs else []))


def quantization(source: str, result: str, scales: tuple[float, float] = (0.05, 0.03)) -> Attributes:
    return {
        "input_scale": scales[0],
        "input_zero_point": ends(source)[1],
        "output_scale": scales[1],
        "output_zero_point": ends(result)[0],
    }


TABLE = np.random.default_rng(0).permutation(256).astype(np.uint8)


def window(case: tuple[Any, ...], element: str) -> Attributes:
    _, kernel, strides, padding = case
    low, high = ends(element)
    return {"kernel": kernel, "strides": strides, "padding": padding, "output_min": low + 1, "output_max": high - 3}


def softmax(element: str, axis: int, arithmetic: str, scale: float) -> Attributes:
    output: dict[str, Any] = {"output_scale": 1 / 256, "output_zero_point": ends(element)[0]}
    return {"axis": axis, "input_scale": scale, "beta": 1.0, "arithmetic": arithmetic, **output}
