"""Row fusion: which ops share a kernel that loops over blocks of rows, and that their results keep every bit."""

from collections.abc import Sequence

import numpy as np
import pytest
from row_texts import Text, labels, numbers
from together import check_compiled, variants_together

from qdialect import targets
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import Phase, lower
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
        assert labels(text) == [ROWS]
        check(text, (rows, columns))


@variants_together
@pytest.mark.parametrize("shape", [(2, 3, 5, 40), (3, 4, 2, 2, 21)])
def test_rows_of_several_dimensions(shape: tuple[int, ...]) -> None:
    assert labels(softmax(*shape)) == [ROWS]
    check(softmax(*shape), shape)


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


def test_every_kind_of_target_gives_the_same_bits() -> None:
    kinds = [name for name in targets.TARGETS if targets.TARGETS[name].features <= targets.host_features()]
    text = Text((11, 67), (11, 67))
    total = text.float_op("arith.addf", "%x0", "%x1")
    check(text.finish(text.layer_norm(total), text.softmax(total)), (11, 67), (11, 67), names=[*kinds, "avx2,portable"])


def test_threads_share_the_blocks() -> None:
    module, x = parse(softmax(64, 512)), numbers((64, 512))
    (wanted,) = interpreter.run(module, [x])
    assert "omp.parallel" in str(lower(module, targets.host(), Phase.VECTOR, threads=2, min_cycles=1).module)
    np.testing.assert_array_equal(compile_module(module, threads=2, min_cycles=1)(x), wanted)


def test_what_others_read_is_stored_and_the_rest_is_scratch_memory() -> None:
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


def test_what_is_dequantized_again_elsewhere_is_stored() -> None:
    text = Text((6, 40))
    shape, parameters = "6x40", "scales = array<f64: 0.03>, zero_points = array<i64: 2>, axis = 0 : i64"
    text.lines.append(f'%q = "qnn.quantize"(%x0) {{{parameters}}} : (tensor<{shape}xf32>) -> tensor<{shape}xi8>')
    text.lines.append(f'%v1 = "qnn.dequantize"(%q) {{{parameters}}} : (tensor<{shape}xi8>) -> tensor<{shape}xf32>')
    text.shapes["%v1"] = (6, 40)
    found = text.finish(text.softmax("%v1"), "%v1")
    assert labels(found) == [ROWS, "qnn.dequantize"]
    check(found, (6, 40))


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
    """The rows of one tensor are the last dimension of another, which may have padding lanes."""
    text = Text((6, 5, 7))
    row = text.qnn("f32_sum", "%x0", (6, 5), "axes = array<i64: 2>")
    found = text.finish(text.float_op("math.exp", row))
    check(found, (6, 5, 7))
