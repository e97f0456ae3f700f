"""Heads of an attention are read and written among the columns of all heads, bit for bit, wherever that is right."""

import numpy as np
import pytest
from row_texts import Text, labels, numbers
from together import check_compiled, variants_together

from qdialect import targets
from qdialect.ir.context import parse
from qdialect.lowering.qnn_to_linalg.conversions import row_fusion
from qdialect.lowering.qnn_to_linalg.graph import row_fusion as fused_rows
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

HOST = targets.host().name
KINDS = [name for name in targets.TARGETS if targets.TARGETS[name].features <= targets.host_features()]
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


def check(text: Attention, whole: str, names: list[str], threads: int = 1) -> None:
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
    check(text, whole, [HOST, "generic"])


def test_every_kind_of_target_gives_the_same_bits() -> None:
    text = Attention(19, 3, 21, 24)
    whole = text.finish(text.float_op("arith.negf", text.joined(text.attend(*text.operands()))))
    check(text, whole, KINDS)


def test_large_scores_are_computed_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_rows, "_FAR_BYTES", 1024)
    monkeypatch.setattr(row_fusion, "_PRODUCT_BYTES", 1024)
    text = Attention(37, 2, 5, 24)
    whole = text.finish(text.float_op("arith.negf", text.joined(text.attend(*text.operands()))))
    assert transpositions(whole) == 1
    check(text, whole, [HOST])


def test_threads_read_what_others_wrote() -> None:
    text = Attention(64, 4, 64, 64)
    joined = text.joined(text.attend(*text.operands()))
    whole = text.finish(text.layer_norm(text.float_op("arith.addf", joined, "%x2")))
    assert transpositions(whole) == 1
    check(text, whole, [HOST], threads=2)


@pytest.mark.parametrize("depth", [5, 8])
def test_heads_are_read_and_written_in_arrays_of_users(depth: int) -> None:
    text = Attention(9, 3, depth, depth)
    whole = text.finish(text.transposed(text.attend(*text.operands(computed=False)), BY_HEAD))
    assert transpositions(whole) == 1
    check(text, whole, [HOST, "generic"])


def test_what_others_read_is_transposed() -> None:
    text = Attention(9, 3, 8, 8)
    query, key, value = text.operands()
    context = text.attend(query, key, value)
    others = text.float_op("arith.addf", text.float_op("arith.negf", query), value)
    joined = text.float_op("arith.negf", text.joined(context))
    whole = text.finish(joined, text.float_op("arith.addf", others, context))
    assert transpositions(whole) == 4
    check(text, whole, [HOST])


def test_heads_of_several_examples_are_transposed() -> None:
    text = Attention(7, 3, 8, 16, batch=2)
    whole = text.finish(text.float_op("arith.negf", text.joined(text.attend(*text.operands()))))
    assert transpositions(whole) == 4
    check(text, whole, [HOST])


def test_columns_that_are_moved_apart_are_transposed() -> None:
    text = Attention(8, 3, 8, 8)
    _, key, value = text.operands()
    x = text.reshaped(text.float_op("arith.addf", "%x0", "%x0"), (1, 8, 3, 8))
    query = text.transposed(x, KEY)
    context = text.attend(query, key, value)
    whole = text.finish(text.float_op("arith.negf", text.transposed(context, KEY)))
    assert transpositions(whole) == 3
    check(text, whole, [HOST])
