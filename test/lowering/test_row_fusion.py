"""Row fusion: which ops share a loop over blocks of rows, and their views."""

from collections.abc import Sequence

import numpy as np
import pytest
from compiled_ops import WIDTHS, check_compiled, variants_together
from op_texts import Text, labels, numbers

from qdialect import targets
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.conversions import row_fusion
from qdialect.lowering.qnn_to_linalg.graph import row_fusion as fused_rows
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

TARGETS = dict.fromkeys((targets.host().name, "generic"))
ROWS = "rows"


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
@pytest.mark.parametrize("columns", [1, 7, 15, 17, 513])
def test_rows_have_the_bits_of_ops_one_by_one(columns: int) -> None:
    rows = 37 if columns == 513 else 5
    for text in (softmax(rows, columns), layer_norm(rows, columns)):
        # Rows of one element have no reductions.
        assert columns == 1 or labels(text) == [ROWS]
        check(text, (rows, columns))


@variants_together
@pytest.mark.parametrize("shape", [(2, 3, 5, 40), (3, 4, 2, 2, 21)])
def test_rows_of_several_dimensions(shape: tuple[int, ...]) -> None:
    assert labels(softmax(*shape)) == [ROWS]
    check(softmax(*shape), shape)


@variants_together
@pytest.mark.parametrize("before", [(1, 1, 4, 4), (4, 4), (1, 4, 1, 4)])
def test_rows_that_another_op_reads_as_a_whole_are_not_fused_with_it(before: tuple[int, ...]) -> None:
    """A mask of as many rows as there are matrices, which each matrix reads whole."""
    shape = (1, 4, 4, 4)
    text = Text(shape, before)
    mask = text.float_op("arith.addf", "%x1", "%x1")
    scores = text.float_op("arith.addf", text.product("%x0", "%x0"), text.repeated(mask, shape))
    check(text.finish(text.product(text.softmax(scores), "%x0")), shape, before)


@pytest.mark.parametrize("shape", [(5, 256), (1, 3, 513), (2, 5, 259)])
def test_extremes_of_a_tensor_are_found_in_the_kernel_of_its_rows(shape: tuple[int, ...]) -> None:
    text = Text(shape, shape)
    total = text.float_op("arith.addf", "%x0", "%x1")
    axes, ones = f"axes = array<i64: {', '.join(map(str, range(len(shape))))}>", (1,) * len(shape)
    kept = [text.qnn(op, total, ones, f"{axes}, keep_dims = true") for op in ("f32_max", "f32_min")]
    whole = text.finish(*kept)
    assert labels(whole) == [ROWS, "qnn.f32_max", "qnn.f32_min"]
    check(whole, shape, shape)
    rng = np.random.default_rng(3)
    zeros = [rng.choice(np.array([0, -0.0], np.float32), shape) for _ in range(2)]
    ordinary = [rng.normal(size=shape).astype(np.float32) for _ in range(2)]
    module = parse(whole)
    for inputs in (zeros, [-np.abs(zero) for zero in zeros], ordinary):
        check_compiled(module, targets.host().name, [inputs], [interpreter.run(module, inputs)])


def test_vectors_of_every_width_give_the_same_bits() -> None:
    text = Text((11, 67), (11, 67))
    total = text.float_op("arith.addf", "%x0", "%x1")
    check(
        text.finish(text.layer_norm(total), text.softmax(total)), (11, 67), (11, 67), names=[*WIDTHS, "avx2,portable"]
    )


def test_values_that_others_read_are_stored_and_the_rest_is_scratch_memory() -> None:
    text = Text((64, 512), (64, 512))
    total = text.float_op("arith.addf", "%x0", "%x1")
    found = text.finish(total, text.layer_norm(total))
    assert labels(found) == [ROWS]
    check(found, (64, 512), (64, 512))
    assert lower(parse(found), targets.host(), Phase.LINALG).arena_bytes < 64 * 512 * 4 / 2


def test_a_mask_that_all_rows_share_is_read_by_their_kernel() -> None:
    text = Text((2, 3, 8, 24), (1, 1, 1, 24))
    masked = text.float_op("arith.addf", "%x0", text.repeated("%x1", (2, 3, 8, 24)))
    found = text.finish(text.softmax(masked))
    assert labels(found) == [ROWS]
    check(found, (2, 3, 8, 24), (1, 1, 1, 24))


@pytest.mark.parametrize("is_read_early", [True, False])
def test_rows_are_computed_after_what_they_read_and_before_what_reads_them(is_read_early: bool) -> None:
    """A member of rows is read before they can be computed, or by other rows that could start before them."""
    text = Text((2, 3, 6), (6, 2, 3), (2,))
    shared, other = text.float_op("arith.negf", "%x0"), text.float_op("arith.negf", "%x2")
    turned = text.qnn("transpose", "%x1", (2, 3, 6), "permutation = array<i64: 1, 2, 0>")
    early = [text.qnn("transpose", shared, (6, 2, 3), "permutation = array<i64: 2, 0, 1>")] if is_read_early else []
    late = text.float_op("arith.subf", text.reduced("f32_max", shared), turned)
    largest = text.float_op("arith.addf", text.qnn("f32_max", shared, (2,), "axes = array<i64: 1, 2>"), other)
    check(text.finish(late, largest, *early), (2, 3, 6), (6, 2, 3), (2,))


# Heads of an attention are read and written among the columns of all heads, bit for bit, wherever that is right.

HOST = targets.host().name
BY_HEAD, KEY = (0, 2, 1, 3), (0, 2, 3, 1)


def text_of(numbers: tuple[int, ...]) -> str:
    return f"array<i64: {', '.join(map(str, numbers))}>"


class Attention(Text):
    """softmax(Q K) V of `heads` heads, whose columns lie side by side in each row."""

    def __init__(self, rows: int, heads: int, depth: int, width: int, batch: int = 1) -> None:
        self.extents = batch, rows, heads
        super().__init__(*[(batch * rows, heads * columns) for columns in (depth, depth, width)])

    def reshaped(self, x: str, shape: tuple[int, ...]) -> str:
        return self.qnn("reshape", x, shape, f"shape = {text_of(shape)}")

    def transposed(self, x: str, order: tuple[int, ...]) -> str:
        shape = tuple(self.shapes[x][axis] for axis in order)
        return self.qnn("transpose", x, shape, f"permutation = {text_of(order)}")

    def head(self, x: str, order: tuple[int, ...]) -> str:
        batch, rows, heads = self.extents
        return self.transposed(self.reshaped(x, (batch, rows, heads, self.shapes[x][-1] // heads)), order)

    def attend(self, query: str, key: str, value: str) -> str:
        return self.product(self.softmax(self.product(query, key)), value)

    def operands(self, computed: bool = True) -> tuple[str, str, str]:
        q, k, v = (self.float_op("arith.addf", x, x) if computed else x for x in ("%x0", "%x1", "%x2"))
        return self.head(q, BY_HEAD), self.head(k, KEY), self.head(v, BY_HEAD)

    def joined(self, context: str) -> str:
        batch, rows, heads = self.extents
        together = self.transposed(context, BY_HEAD)
        return self.reshaped(together, (batch * rows, heads * self.shapes[context][-1]))


def check_views(text: Attention, whole: str, names: list[str], threads: int = 1) -> None:
    module = parse(whole)
    inputs = [numbers(shape, i) * np.float32(0.1) for i, shape in enumerate(text.arguments.values())]
    wanted = interpreter.run(module, inputs)
    for name in names:
        if threads == 1:
            check_compiled(module, name, [inputs], [wanted])
            continue
        found = compile_module(module, target=name, threads=threads)(*inputs)
        np.testing.assert_array_equal(found, wanted[0])


def transpositions(whole: str) -> int:
    return labels(whole).count("qnn.transpose")


@variants_together
@pytest.mark.parametrize(
    ("rows", "heads", "depth", "width"), [(9, 3, 5, 11), (33, 2, 64, 64), (2, 7, 8, 3), (20, 4, 1, 1), (5, 2, 17, 40)]
)
def test_heads_are_read_and_written_among_all_columns(rows: int, heads: int, depth: int, width: int) -> None:
    text = Attention(rows, heads, depth, width)
    joined = text.joined(text.attend(*text.operands()))
    whole = text.finish(text.float_op("arith.negf", joined))
    assert transpositions(whole) == 1, "that of the key alone"
    check_views(text, whole, [HOST, "generic"])


@variants_together
@pytest.mark.parametrize(("depth", "width"), [(4, 6), (12, 12), (16, 20), (36, 36), (8, 3)])
@pytest.mark.parametrize("is_returned", [False, True])
def test_arrays_of_users_end_with_heads_that_fill_no_vectors(depth: int, width: int, is_returned: bool) -> None:
    text = Attention(5, 3, depth, width)
    joined = text.joined(text.attend(*text.operands(computed=not is_returned)))
    whole = text.finish(joined if is_returned else text.float_op("arith.negf", joined))
    check_views(text, whole, WIDTHS)


def test_large_scores_are_computed_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_rows, "_FAR_BYTES", 1024)
    monkeypatch.setattr(row_fusion, "_PRODUCT_BYTES", 1024)
    text = Attention(37, 2, 5, 24)
    whole = text.finish(text.float_op("arith.negf", text.joined(text.attend(*text.operands()))))
    assert transpositions(whole) == 1
    check_views(text, whole, [HOST])


def test_threads_read_what_others_wrote() -> None:
    text = Attention(64, 4, 64, 64)
    joined = text.joined(text.attend(*text.operands()))
    whole = text.finish(text.layer_norm(text.float_op("arith.addf", joined, "%x2")))
    assert transpositions(whole) == 1
    check_views(text, whole, [HOST], threads=2)


def test_values_that_others_read_are_transposed() -> None:
    text = Attention(9, 3, 8, 8)
    query, key, value = text.operands()
    context = text.attend(query, key, value)
    others = text.float_op("arith.addf", text.float_op("arith.negf", query), value)
    joined = text.float_op("arith.negf", text.joined(context))
    whole = text.finish(joined, text.float_op("arith.addf", others, context))
    assert transpositions(whole) == 4
    check_views(text, whole, [HOST])


def test_heads_of_several_examples_are_transposed() -> None:
    text = Attention(7, 3, 8, 16, batch=2)
    whole = text.finish(text.float_op("arith.negf", text.joined(text.attend(*text.operands()))))
    assert transpositions(whole) == 4
    check_views(text, whole, [HOST])
