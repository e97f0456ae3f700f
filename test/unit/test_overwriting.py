"""Fused rows whose result overwrites their data: only if nothing reads it any more."""

from collections.abc import Sequence

import numpy as np
import pytest
from row_texts import labels
from together import check_compiled

from qdialect import targets
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference import interpreter

_ROWS, _COLUMNS = 40, 512
_BYTES = 4 * _ROWS * _COLUMNS
_WHOLE, _ROW = f"tensor<{_ROWS}x{_COLUMNS}xf32>", f"tensor<{_ROWS}xf32>"


def text_of(lines: Sequence[str], results: Sequence[tuple[str, str]]) -> str:
    """A function of %a and %b; `%x` and `%t` are products, whose memory others may take."""
    names, types = (", ".join(column) for column in zip(*results, strict=True))
    known = f'"qnn.constant"() {{value = dense<0.01> : tensor<{_COLUMNS}x{_COLUMNS}xf32>}} : ()'
    operands = f"({_WHOLE}, tensor<{_COLUMNS}x{_COLUMNS}xf32>) -> {_WHOLE}"
    products = [f'%{to} = "qnn.f32_matmul"(%{of}, %w) : {operands}' for to, of in (("x", "a"), ("t", "b"))]
    body = [f"%w = {known} -> tensor<{_COLUMNS}x{_COLUMNS}xf32>", *products, *lines]
    last = [f'%end = "qnn.f32_matmul"(%y, %w) : {operands}', f"func.return {names}, %end : {types}, {_WHOLE}"]
    return "\n".join([f"func.func @main(%a: {_WHOLE}, %b: {_WHOLE}) -> ({types}, {_WHOLE}) {{", *body, *last, "}"])


def smallest(of: str, name: str = "low") -> str:
    return f'%{name} = "qnn.f32_min"(%{of}) {{axes = array<i64: 1>}} : ({_WHOLE}) -> {_ROW}'


def sum_of(to: str, one: str, two: str) -> str:
    return f"%{to} = arith.addf %{one}, %{two} : {_WHOLE}"


LOW = ("%low", _ROW)
FREE = [
    ([sum_of("y", "x", "x"), smallest("y")], [LOW]),
    ([sum_of("y", "x", "t"), smallest("y")], [LOW]),
    # Read before by a kernel of its own, and by an op whose result such a kernel reads.
    ([smallest("x"), sum_of("y", "x", "t"), smallest("y", "other")], [LOW, ("%other", _ROW)]),
    ([sum_of("s", "x", "t"), smallest("s"), sum_of("y", "s", "s"), smallest("y", "other")], [LOW, ("%other", _ROW)]),
]
TAKEN = [
    # Read once more afterwards, directly or by an op that is computed inside another.
    ([sum_of("y", "x", "x"), smallest("y"), smallest("x", "other")], [LOW, ("%other", _ROW)]),
    ([sum_of("y", "x", "x"), smallest("y"), sum_of("z", "x", "y"), smallest("z", "other")], [LOW, ("%other", _ROW)]),
    (
        [
            sum_of("s", "x", "x"),
            sum_of("y", "x", "x"),
            smallest("y"),
            sum_of("r", "s", "y"),
            sum_of("z", "r", "s"),
            smallest("z", "other"),
        ],
        [LOW, ("%other", _ROW)],
    ),
    # Returned.
    ([sum_of("y", "x", "x"), smallest("y")], [LOW, ("%x", _WHOLE)]),
]


def in_arena(text: str, threads: int = 1) -> int:
    """Buffers as large as the data that live at once."""
    return round(lower(parse(text), targets.host(), Phase.LINALG, threads=threads).arena_bytes / _BYTES)


@pytest.mark.parametrize(("lines", "results"), FREE)
def test_a_result_takes_the_memory_of_what_was_read_last(lines: list[str], results: list[tuple[str, str]]) -> None:
    text = text_of(lines, results)
    assert "rows" in labels(text)
    assert in_arena(text) < in_arena(text, threads=2)
    check(text)


@pytest.mark.parametrize(("lines", "results"), TAKEN)
def test_what_is_read_again_keeps_its_memory(lines: list[str], results: list[tuple[str, str]]) -> None:
    text = text_of(lines, results)
    assert in_arena(text) == in_arena(text, threads=2)
    check(text)


def test_no_exponentials_lie_in_a_result_that_overwrites_what_is_still_read() -> None:
    # The shares are added to the data, in whose memory the sum may lie: its exponentials may not lie there before.
    column = f"tensor<{_ROWS}x1xf32>"
    shape = f"{{shape = array<i64: {_ROWS}, {_COLUMNS}>}}"
    lines = [
        f"%e = math.exp %x : {_WHOLE}",
        f'%total = "qnn.f32_sum"(%e) {{axes = array<i64: 1>, keep_dims = true}} : ({_WHOLE}) -> {column}',
        f'%spread = "qnn.broadcast"(%total) {shape} : ({column}) -> {_WHOLE}',
        f"%share = arith.divf %e, %spread : {_WHOLE}",
        sum_of("y", "share", "x"),
        smallest("y"),
    ]
    text = text_of(lines, [LOW])
    assert "rows" in labels(text)
    assert in_arena(text) < in_arena(text, threads=2)
    check(text)


def check(text: str) -> None:
    random = np.random.default_rng(0)
    inputs = [random.standard_normal((_ROWS, _COLUMNS)).astype(np.float32) for _ in range(2)]
    wanted = interpreter.run(parse(text), inputs)
    check_compiled(parse(text), "host", [inputs], [wanted])
