"""Functions of rows of float32 numbers as text: softmax, layer normalization, products."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect import targets
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import Phase, lower

Array = NDArray[Any]


def f32(*shape: int) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


class Text:
    """The text of a function of f32 tensors, op by op."""

    def __init__(self, *arguments: tuple[int, ...]) -> None:
        self.shapes = {f"%x{i}": shape for i, shape in enumerate(arguments)}
        self.arguments = dict(self.shapes)
        self.lines: list[str] = []

    def _new(self, shape: tuple[int, ...], line: str) -> str:
        name = f"%v{len(self.lines)}"
        self.shapes[name] = shape
        self.lines.append(f"{name} = {line}")
        return name

    def float_op(self, op: str, *operands: str) -> str:
        shape = self.shapes[operands[0]]
        return self._new(shape, f"{op} {', '.join(operands)} : {f32(*shape)}")

    def qnn(self, op: str, operand: str, shape: tuple[int, ...], attributes: str) -> str:
        return self._new(
            shape, f'"qnn.{op}"({operand}) {{{attributes}}} : ({f32(*self.shapes[operand])}) -> {f32(*shape)}'
        )

    def reduced(self, op: str, operand: str, axis: int = -1) -> str:
        """A reduction along an axis, repeated to the shape that it had."""
        shape = self.shapes[operand]
        axis %= len(shape)
        one = self.qnn(
            op, operand, (*shape[:axis], 1, *shape[axis + 1 :]), f"axes = array<i64: {axis}>, keep_dims = true"
        )
        return self.repeated(one, shape)

    def repeated(self, operand: str, shape: tuple[int, ...]) -> str:
        return self.qnn("broadcast", operand, shape, f"shape = array<i64: {', '.join(map(str, shape))}>")

    def constant(self, value: float, shape: tuple[int, ...]) -> str:
        return self._new(shape, f"arith.constant dense<{value:e}> : {f32(*shape)}")

    def softmax(self, x: str, axis: int = -1) -> str:
        powers = self.float_op("math.exp", self.float_op("arith.subf", x, self.reduced("f32_max", x, axis)))
        return self.float_op("arith.divf", powers, self.reduced("f32_sum", powers, axis))

    def layer_norm(self, x: str) -> str:
        shape = self.shapes[x]
        count = self.constant(shape[-1], shape)
        centred = self.float_op("arith.subf", x, self.float_op("arith.divf", self.reduced("f32_sum", x), count))
        squares = self.reduced("f32_sum", self.float_op("arith.mulf", centred, centred))
        variance = self.float_op("arith.addf", self.float_op("arith.divf", squares, count), self.constant(1e-5, shape))
        return self.float_op("arith.divf", centred, self.float_op("math.sqrt", variance))

    def product(self, data: str, matrix: str) -> str:
        before, after = self.shapes[data], self.shapes[matrix]
        shape = (*before[:-1], after[-1])
        types = f"({f32(*before)}, {f32(*after)}) -> {f32(*shape)}"
        return self._new(shape, f'"qnn.f32_matmul"({data}, {matrix}) : {types}')

    def finish(self, *results: str) -> str:
        arguments = ", ".join(f"{name}: {f32(*shape)}" for name, shape in self.arguments.items())
        types = [f32(*self.shapes[name]) for name in results]
        lines = [*self.lines, f"return {', '.join(results)} : {', '.join(types)}"]
        body = "\n  ".join(lines)
        return f"func.func @main({arguments}) -> ({', '.join(types)}) {{\n  {body}\n}}"


def labels(text: str) -> list[str]:
    found = lower(parse(text), targets.GENERIC, Phase.LINALG).labels
    return [label for label in found if not label.startswith(("input", "output"))]


def numbers(shape: Sequence[int], seed: int = 0) -> Array:
    """Numbers of every size; the first rows are masked by minus infinity, in part or as a whole, or have a NaN."""
    rng = np.random.default_rng(seed)
    found = rng.normal(size=shape).astype(np.float32) * rng.choice([1, 30], size=shape).astype(np.float32)
    rows = found.reshape(-1, shape[-1])
    rows[-1] *= np.float32(1e36)
    rows[0, : shape[-1] // 2] = -np.inf
    rows[1 % len(rows), -1:] = np.nan
    rows[2 % len(rows)] = -np.inf
    return found
