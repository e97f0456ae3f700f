"""Writes modules of `tosa` ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ELEMENTS = {"bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "float32": "f32"}


class TosaText:
    """Collects the ops of ``@main``; values are names, and `types` knows theirs."""

    def __init__(self, *arguments: str) -> None:
        self.types = {f"%x{i}": type_ for i, type_ in enumerate(arguments)}
        self._arguments = ", ".join(f"{name}: {type_}" for name, type_ in self.types.items())
        self._lines: list[str] = []

    def op(self, name: str, operands: Sequence[str], attributes: str, result: str) -> str:
        """Append ``%new = tosa.name operands {attributes}`` and return the new name."""
        new = f"%{len(self.types)}"
        types = ", ".join(self.types[operand] for operand in operands)
        text = f"{name} {', '.join(operands)} {{{attributes}}} : ({types}) -> {result}"
        self._lines.append(f"  {new} = tosa.{text}")
        self.types[new] = result
        return new

    def constant(self, values: Any, dtype: str) -> str:
        """A constant of `dtype`, of at least one dimension."""
        array: NDArray[Any] = np.atleast_1d(np.array(values, dtype=dtype))
        type_ = f"tensor<{'x'.join(map(str, array.shape))}x{_ELEMENTS[dtype]}>"
        return self._bare(f'"tosa.const"() <{{values = dense<{_elements(array)}> : {type_}}}> : () -> {type_}', type_)

    def shape(self, *extents: int) -> str:
        """A constant shape."""
        type_ = f"!tosa.shape<{len(extents)}>"
        values = f"values = dense<{list(extents)}> : tensor<{len(extents)}xindex>"
        return self._bare(f"tosa.const_shape {{{values}}} : () -> {type_}", type_)

    def shape_op(self, name: str, operands: Sequence[str], rank: int) -> str:
        """A shape that is computed."""
        types = ", ".join(self.types[operand] for operand in operands)
        return self._bare(
            f"tosa.{name} {', '.join(operands)} : ({types}) -> !tosa.shape<{rank}>", f"!tosa.shape<{rank}>"
        )

    def shape_dim(self, value: str, axis: int) -> str:
        """An extent of a tensor."""
        text = f"tosa.dim {value} {{axis = {axis} : i32}} : ({self.types[value]}) -> !tosa.shape<1>"
        return self._bare(text, "!tosa.shape<1>")

    def _bare(self, text: str, type_: str) -> str:
        new = f"%{len(self.types)}"
        self._lines.append(f"  {new} = {text}")
        self.types[new] = type_
        return new

    def rescale(
        self,
        value: str,
        result: str,
        pairs: Sequence[tuple[int, int]],
        zero_points: tuple[int, int] = (0, 0),
        mode: str = "SINGLE_ROUND",
        unsigned: tuple[bool, bool] = (False, False),
        scale32: bool = True,
    ) -> str:
        """A rescale by (multiplier, shift) for all or for each channel."""
        multipliers = self.constant([q for q, _ in pairs], "int32" if scale32 else "int16")
        shifts = self.constant([s for _, s in pairs], "int8")
        points = [
            self.constant([np.int64(point).astype(f"int{width_of(type_)}")], f"int{width_of(type_)}")
            for point, type_ in zip(zero_points, (self.types[value], result), strict=True)
        ]
        flags = {"per_channel": len(pairs) > 1, "input_unsigned": unsigned[0], "output_unsigned": unsigned[1]}
        flags["scale32"] = scale32
        text = ", ".join(f"{name} = {str(value).lower()}" for name, value in flags.items())
        operands = (value, multipliers, shifts, *points)
        return self.op("rescale", operands, f"rounding_mode = {mode}, {text}", result)

    def render(self, *results: str) -> str:
        """The module."""
        types = ", ".join(self.types[result] for result in results)
        body = "\n".join(self._lines)
        return (
            f"func.func @main({self._arguments}) -> ({types}) {{\n{body}\n  return {', '.join(results)} : {types}\n}}"
        )


def _hexadecimal(bits: int) -> str:
    return f"0x{bits:08X}"


def _elements(array: NDArray[Any]) -> str:
    """As MLIR writes them; floats by their bits, so that NaN and infinities are among them."""
    if array.dtype.kind == "f":
        array = np.vectorize(_hexadecimal, otypes=[object])(array.view(np.uint32))
    return str(array.tolist()).lower().replace("'", "")


def width_of(type_: str) -> int:
    """Bits of the elements of a tensor type."""
    return int(type_.rpartition("i")[2].rstrip(">"))
