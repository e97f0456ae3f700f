"""Row groups: which ops share a kernel that goes through blocks of rows, and that their results keep every bit."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from together import check_compiled, variants_together

from qdialect import target
from qdialect.context import parse
from qdialect.lowering.pipeline import Phase, lower
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]

TARGETS = dict.fromkeys((target.host().name, "generic"))
ROWS = "rows"


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

    def finish(self, *results: str) -> str:
        arguments = ", ".join(f"{name}: {f32(*shape)}" for name, shape in self.arguments.items())
        types = [f32(*self.shapes[name]) for name in results]
        lines = [*self.lines, f"return {', '.join(results)} : {', '.join(types)}"]
        body = "\n  ".join(lines)
        return f"func.func @main({arguments}) -> ({', '.join(types)}) {{\n  {body}\n}}"


def labels(text: str) -> list[str]:
    found = lower(parse(text), target.GENERIC, Phase.LINALG).labels
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


def check(text: str, *shapes: Sequence[int], names: Sequence[str] = tuple(TARGETS)) -> None:
    module, inputs = parse(text), [numbers(shape, seed) for seed, shape in enumerate(shapes)]
    wanted = interpreter.run(module, inputs)
    for name in names:
        check_compiled(module, name, [inputs], [wanted])


def softmax(*shape: int, axis: int = -1) -> str:
    text = Text(shape)
    return text.finish(text.softmax("%x0", axis))


def layer_norm(*shape: int) -> str:
    text = Text(shape)
    return text.finish(text.layer_norm("%x0"))


@variants_together
@pytest.mark.parametrize("columns", [1, 7, 15, 16, 17, 33, 513])
def test_rows_have_the_bits_of_ops_one_by_one(columns: int) -> None:
    rows = 37 if columns == 513 else 5
    for text in (softmax(rows, columns), layer_norm(rows, columns)):
        assert labels(text) == [ROWS]
        check(text, (rows, columns))


@variants_together
@pytest.mark.parametrize("shape", [(2, 3, 5, 40), (1, 19, 700), (3, 4, 2, 2, 21)])
def test_rows_of_several_dimensions(shape: tuple[int, ...]) -> None:
    assert labels(softmax(*shape)) == [ROWS]
    check(softmax(*shape), shape)


def test_every_kind_of_target_gives_the_same_bits() -> None:
    kinds = [name for name in target.TARGETS if target.TARGETS[name].features <= target.host_features()]
    text = Text((11, 67), (11, 67))
    total = text.float_op("arith.addf", "%x0", "%x1")
    check(text.finish(text.layer_norm(total), text.softmax(total)), (11, 67), (11, 67), names=[*kinds, "avx2,portable"])


def test_threads_share_the_blocks() -> None:
    module, x = parse(softmax(64, 512)), numbers((64, 512))
    (wanted,) = interpreter.run(module, [x])
    assert "omp.parallel" in str(lower(module, target.host(), Phase.VECTOR, threads=2, min_cycles=1).module)
    np.testing.assert_array_equal(compile_module(module, threads=2, min_cycles=1)(x), wanted)


def test_what_others_read_is_stored_and_the_rest_is_scratch_memory() -> None:
    text = Text((64, 512), (64, 512))
    total = text.float_op("arith.addf", "%x0", "%x1")
    found = text.finish(total, text.layer_norm(total))
    assert labels(found) == [ROWS]
    check(found, (64, 512), (64, 512))
    assert lower(parse(found), target.host(), Phase.LINALG).arena_bytes < 64 * 512 * 4 / 2


def test_a_mask_that_all_rows_share_is_read_by_their_kernel() -> None:
    text = Text((2, 3, 8, 24), (1, 1, 1, 24))
    masked = text.float_op("arith.addf", "%x0", text.repeated("%x1", (2, 3, 8, 24)))
    found = text.finish(text.softmax(masked))
    assert labels(found) == [ROWS]
    check(found, (2, 3, 8, 24), (1, 1, 1, 24))


def test_a_mask_of_some_rows_is_added_before_and_never_repeated_in_memory() -> None:
    text = Text((2, 3, 8, 24), (2, 1, 1, 24))
    masked = text.float_op("arith.addf", "%x0", text.repeated("%x1", (2, 3, 8, 24)))
    found = text.finish(text.softmax(masked))
    assert labels(found) == ["arith.addf", ROWS]
    check(found, (2, 3, 8, 24), (2, 1, 1, 24))


def test_what_two_groups_repeat_is_done_by_both() -> None:
    text = Text((9, 24), (9, 24), (24,))
    mask = text.repeated("%x2", (9, 24))
    first = text.softmax(text.float_op("arith.addf", "%x0", mask))
    # The sum over columns keeps the two apart.
    apart = text.softmax(text.float_op("arith.mulf", first, text.reduced("f32_sum", "%x1", 0)))
    second = text.softmax(text.float_op("arith.addf", text.float_op("arith.mulf", "%x1", apart), mask))
    found = text.finish(first, second)
    assert "qnn.broadcast" not in labels(found)
    check(found, (9, 24), (9, 24), (24,))


def test_a_group_is_computed_after_what_it_reads_and_before_what_reads_it() -> None:
    """The second sum reads what was made of the first group's result: it cannot be of the same group."""
    text = Text((8, 40))
    first = text.softmax("%x0")
    across = text.reduced("f32_sum", first, 0)
    found = text.finish(text.softmax(text.float_op("arith.addf", first, across)))
    assert labels(found) == [ROWS, "qnn.f32_sum", ROWS]
    check(found, (8, 40))


@pytest.mark.parametrize("text", [softmax(8, 40, axis=0), softmax(1, 40)], ids=["columns", "one row"])
def test_columns_and_single_rows_are_kernels_of_their_own(text: str) -> None:
    assert ROWS not in labels(text)


def test_a_row_that_is_wanted_in_other_rows_is_not_taken_apart() -> None:
    """The rows of one tensor are the last dimension of another, which may have spare lanes behind it."""
    text = Text((6, 5, 7))
    row = text.qnn("f32_sum", "%x0", (6, 5), "axes = array<i64: 2>")
    found = text.finish(text.float_op("math.exp", row))
    check(found, (6, 5, 7))
