"""Kernels as text: what is written parses, and says what the vector step reads."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.ir.phase_pass import check_vector
from qdialect.lowering.ir.strides import View
from qdialect.lowering.linalg_to_vector.to_vector import to_vector
from qdialect.lowering.qnn_to_linalg.program.kernel_text import KernelText, Loops, Operand, Tag
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Value


def kernel_with_a_sum() -> KernelText:
    """``out[i] = sum_k x[2 i + k] + 1`` on overlapping windows."""
    kernel = KernelText()
    data, output = kernel.buffer("data", "i8", 16), kernel.buffer("output", "i32", 6)
    bias = kernel.scalar("bias", "i32")
    window = kernel.read(data, View((6, 3), (2, 1), 1))
    start = kernel.filled((6,), "i32", 0, Tag(0, "sum_fill"))
    operands, sums = [Operand(window, ("i", "k"))], Operand(start, ("i",))
    body = kernel.body(operands, sums)
    total = body.add(body.output, body.cast("arith.extui", body.inputs[0], "i32"))
    loops = Loops(("i",), ("k",))
    acc = Operand(kernel.generic(loops, operands, sums, body, total, Tag(0, "sum", (0, 1))), ("i",))
    destination, where = kernel.write(output, View((6,), (1,)))
    body = kernel.body([acc])
    shifted = body.add(body.add(body.inputs[0], bias), body.constant(1, "i32"))
    done = kernel.generic(Loops(("i",)), [acc], Operand(destination, ("i",)), body, shifted, Tag(0, "root", (3,)))
    kernel.store(done, where)
    return kernel


@dataclass(frozen=True)
class Parsed:
    """A kernel's ops; an op does not keep its module alive."""

    module: ir.Module

    def __iter__(self) -> Iterator[ir.Operation]:
        for op in self.module.body.operations[0].regions[0].blocks[0].operations:
            yield op.operation


def parsed(text: str) -> Parsed:
    return Parsed(parse(text))


def test_only_destinations_are_writable() -> None:
    kernel = parsed(kernel_with_a_sum().render("k"))
    reads = [op for op in kernel if op.name == "bufferization.to_tensor"]
    assert ["writable" in op.attributes for op in reads] == [False, True]


def test_a_kernel_does_not_depend_on_its_name() -> None:
    text = kernel_with_a_sum().render("one")
    assert text.replace("@one", "@two") == kernel_with_a_sum().render("two")


def test_constants_are_shared_by_the_function() -> None:
    kernel = KernelText()
    first, second = kernel.body(), kernel.body()
    assert first.constant(7, "i32") == second.constant(7, "i32")
    assert len({first.constant(7, "i32"), first.constant(7, "i64"), first.constant(8, "i32")}) == 3
    text = kernel.render("k")
    assert text.count("arith.constant 7 : i32") == 1
    assert len(list(parsed(text))) == 4


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_constants_are_exact(value: float) -> None:
    kernel = KernelText()
    kernel.constant(value, "f32")
    written = parsed(kernel.render("k"))
    assert [ir.FloatAttr(op.attributes["value"]).value for op in written if op.name == "arith.constant"] == [value]


def test_a_cast_to_the_same_type_is_nothing() -> None:
    body, wide = KernelText().body(), Value("%v", "i32")
    assert body.cast("arith.extsi", wide, "i32") == wide
    assert body.lines == []
    assert body.cast("arith.extsi", Value("%v", "i8"), "i32") == Value("%v1", "i32")
    assert body.lines == ["%v1 = arith.extsi %v : i8 to i32"]


def test_operands_of_two_types_are_an_error() -> None:
    body, integer, number = KernelText().body(), Value("%i", "i32"), Value("%f", "f32")
    with pytest.raises(TypeError, match=r"arith\.addi needs operands of one type, but got i32 and f32"):
        body.add(integer, number)
    with pytest.raises(TypeError, match=r"arith\.mulf needs operands of one type, but got f32 and i32"):
        body.multiply(number, integer)
    with pytest.raises(TypeError, match=r"arith\.cmpf needs operands of one type, but got f32 and i32"):
        body.compare("olt", number, integer)
    with pytest.raises(TypeError, match=r"arith\.select needs an i1, but got i32"):
        body.select(integer, number, number)
    with pytest.raises(TypeError, match=r"arith\.select needs operands of one type, but got f32 and i32"):
        body.select(Value("%c", "i1"), number, integer)
    with pytest.raises(TypeError, match=r"arith\.maxsi needs operands of one type, but got i32 and f32"):
        body.clamp(integer, number, number)
    assert body.lines == []


def test_a_table_is_read_at_an_index() -> None:
    kernel = KernelText()
    table = kernel.flat_tensor(kernel.buffer("table", "i8", 256))
    body = kernel.body()
    assert body.extract(table, Value("%i", "index")).type == "i8"
    with pytest.raises(TypeError, match=r"tensor\.extract needs an index, but got i32"):
        body.extract(table, Value("%i", "i32"))


def test_a_generic_yields_the_type_of_its_output() -> None:
    kernel = KernelText()
    output = Operand(kernel.empty((4,), "i8"), ("i",))
    with pytest.raises(TypeError, match="a generic with an output of i8 must yield it, but got i32"):
        kernel.generic(Loops(("i",)), [], output, kernel.body(), Value("%v", "i32"), Tag(0, "root"))


def test_a_loop_over_a_table() -> None:
    kernel = KernelText()
    table, data, output = (
        kernel.buffer("table", "i64", 3),
        kernel.buffer("data", "i8", 64),
        kernel.buffer("out", "i8", 12),
    )
    with kernel.loop(3) as index:
        start = kernel.sum(kernel.position(table, index), kernel.constant(1, "index"))
        source = kernel.read(data, View((4,), (1,)), start)
        target, where = kernel.write(output, View((4,), (1,)), kernel.multiple(index, 4))
        tag = Tag(kernel.next_micro_kernel(), "root", (4,))
        operand = Operand(source, ("i",))
        body = kernel.body([operand])
        twice = body.add(body.inputs[0], body.inputs[0])
        done = kernel.generic(Loops(("i",)), [operand], Operand(target, ("i",)), body, twice, tag)
        kernel.store(done, where)
    text = kernel.render("f")
    module = parse(text)
    assert "strided<[1], offset: ?>" in text
    to_vector(module)
    check_vector(module)
    assert str(module).count("scf.for") >= 1
    assert "vector<4xi8>" in str(module)
