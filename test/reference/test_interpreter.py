"""The interpreter: every op has a meaning, attributes reach the kernels, and what it refuses."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdialect.dialect import OPS
from qdialect.ir.context import parse
from qdialect.reference import interpreter
from qdialect.reference.evaluators import EVALUATORS
from qdialect.support.diagnostics import CompileError, InputError

U8 = "tensor<1x4xui8>"


def function(body: str, argument: str = U8, result: str = U8) -> str:
    return f"func.func @main(%x: {argument}) -> {result} {{\n{body}\nfunc.return %y : {result}\n}}"


def quantized(*values: int, dtype: type[np.integer[Any]] = np.uint8) -> NDArray[Any]:
    return np.array([values]).astype(dtype)


def test_every_op_of_the_dialect_has_an_evaluator() -> None:
    assert {op.OPERATION_NAME for op in OPS} <= EVALUATORS.keys()


def test_observe_sees_every_value() -> None:
    seen: list[tuple[str, Any]] = []
    body = f"""%c = "qnn.clip"(%x) {{min = 2 : i64, max = 9 : i64}} : ({U8}) -> {U8}
    %y = "qnn.reshape"(%c) {{shape = array<i64: 1, 4>}} : ({U8}) -> {U8}"""
    interpreter.run(
        parse(function(body)), [quantized(0, 5, 9, 10)], observe=lambda op, v: seen.append((op.name, v.tolist()))
    )
    assert seen == [("qnn.clip", [[2, 5, 9, 9]]), ("qnn.reshape", [[2, 5, 9, 9]])]


def test_an_op_without_evaluator_is_named_with_its_place_before_anything_runs() -> None:
    module = parse(
        function(f"%y = tensor.cast %x : {U8} to {U8}\n%z = math.tan %f : tensor<1xf32>", U8).replace(
            "{\n", "{\n%f = arith.constant dense<1.0> : tensor<1xf32>\n", 1
        )
    )
    with pytest.raises(CompileError) as caught:
        interpreter.run(module, [])
    notes = [str(note) for note in caught.value.diagnostics[0].notes]
    assert notes == [
        "-:3:6: note: 'tensor.cast' op has no reference meaning",
        "-:4:6: note: 'math.tan' op has no reference meaning",
    ]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "function @main must be called with 1 arrays, but got 0"),
        ([quantized(1, 2, 3, 4, dtype=np.int8)], "input 'image' must be uint8[1, 4], but got int8[1, 4]"),
        ([quantized(1, 2, 3)], "input 'image' must be uint8[1, 4], but got uint8[1, 3]"),
    ],
)
def test_inputs_are_checked(inputs: list[NDArray[Any]], message: str) -> None:
    text = f'func.func @main(%x: {U8} {{qnn.name = "image"}}) -> {U8} {{ func.return %x : {U8} }}'
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        interpreter.run(parse(text), inputs)


def test_a_module_without_main_is_refused() -> None:
    with pytest.raises(CompileError, match="module must have a function @main"):
        interpreter.run(parse("module {}"), [])
