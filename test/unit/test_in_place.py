"""Results of rows in the place of operands: which these are, and that the bits are those of the reference."""

from collections.abc import Callable

import numpy as np
import pytest
from row_texts import Text, numbers
from together import check_compiled

from qdialect import targets
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import Phase, compile_to
from qdialect.lowering.qnn_to_linalg.graph.fusion_groups import FusionGroups
from qdialect.lowering.qnn_to_linalg.graph.in_place import in_place_results
from qdialect.reference import interpreter

SHAPE = (7, 48)


def divided(text: Text) -> tuple[str, str]:
    """Exponentials, and their shares of a row."""
    raised = text.float_op("math.exp", "%x0")
    return raised, text.float_op("arith.divf", raised, text.reduced("f32_sum", raised))


def softmax(text: Text) -> tuple[str, ...]:
    return (divided(text)[1],)


def summed_in_parts(text: Text) -> tuple[str, ...]:
    """The sum reads the exponentials under another shape."""
    raised = text.float_op("math.exp", "%x0")
    parts = text.qnn("reshape", raised, (7, 3, 16), "shape = array<i64: 7, 3, 16>")
    total = text.qnn("f32_sum", parts, (7,), "axes = array<i64: 1, 2>")
    spread = text.repeated(text.qnn("reshape", total, (7, 1), "shape = array<i64: 7, 1>"), SHAPE)
    return (text.float_op("arith.divf", raised, spread),)


def read_again(text: Text) -> tuple[str, ...]:
    """The exponentials are read after their shares are written."""
    raised, shares = divided(text)
    least = text.float_op("arith.subf", shares, text.reduced("f32_min", shares))
    return (text.float_op("arith.addf", least, raised),)


def also_returned(text: Text) -> tuple[str, ...]:
    return divided(text)


def summed_again(text: Text) -> tuple[str, ...]:
    """A sum of the exponentials is taken after their shares."""
    raised, shares = divided(text)
    return (text.float_op("arith.addf", text.reduced("f32_max", shares), text.reduced("f32_max", raised)),)


def subtracted(text: Text) -> tuple[str, ...]:
    """What takes few instructions is not worth it."""
    return (text.layer_norm("%x0"),)


def of_two(text: Text) -> tuple[str, ...]:
    """A result takes the place of one operand alone, and a chain of them that of the first."""
    raised, moved = text.float_op("math.exp", "%x0"), text.float_op("math.tanh", "%x1")
    sums = [text.reduced("f32_sum", one) for one in (raised, moved)]
    joined = text.float_op("math.exp", text.float_op("arith.mulf", text.float_op("arith.addf", *sums), raised))
    return (text.float_op("arith.divf", text.float_op("arith.addf", joined, moved), text.reduced("f32_max", joined)),)


CASES: dict[Callable[[Text], tuple[str, ...]], int] = {
    softmax: 1,
    summed_in_parts: 1,
    read_again: 1,
    also_returned: 0,
    summed_again: 0,
    subtracted: 0,
    of_two: 2,
}


def built(case: Callable[[Text], tuple[str, ...]]) -> ir.Module:
    text = Text(*(SHAPE,) * (2 if case is of_two else 1))
    return parse(text.finish(*case(text)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_results_take_the_place_of_what_is_read_last(case: Callable[[Text], tuple[str, ...]]) -> None:
    module = built(case)
    operations = [op.operation for op in module.body.operations[0].operation.regions[0].blocks[0].operations]
    found = in_place_results(operations, FusionGroups(operations))
    assert len(found) == CASES[case]
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_bits_are_those_of_the_reference(case: Callable[[Text], tuple[str, ...]]) -> None:
    module = built(case)
    arguments = len(module.body.operations[0].operation.regions[0].blocks[0].arguments)
    inputs = [np.clip(numbers(SHAPE, seed), -4, 4) for seed in range(arguments)]
    wanted = interpreter.run(module, inputs)
    for name in dict.fromkeys((targets.host().name, "avx2", "generic")):
        check_compiled(module, name, [inputs], [wanted])


def test_a_softmax_has_no_memory_for_exponentials() -> None:
    text = str(compile_to(built(softmax), Phase.LINALG, targets.GENERIC))
    assert text.count("qnn.scratch") == 1, "that of the sums"
