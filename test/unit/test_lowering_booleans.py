"""Tensors of i1 at run time: taken and given as bytes of 0 and 1, computed on, moved and kept between kernels."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdialect import targets
from qdialect.ir.context import parse
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]
TARGETS = dict.fromkeys((targets.host().name, "generic"))


def check(text: str, inputs: Sequence[Array], wanted: Array) -> None:
    """Interpreted and compiled, `text` gives `wanted`."""
    module = parse(text)
    (found,) = interpreter.run(module, inputs)
    np.testing.assert_array_equal(found, wanted, strict=True)
    for name in TARGETS:
        np.testing.assert_array_equal(compile_module(module, target=name)(*inputs), wanted, strict=True)


def bits(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(np.bool_)


@pytest.mark.parametrize("shape", [(), (1,), (67,), (3, 5, 7), (2, 3, 5, 4)])
def test_logic_between_arrays(shape: tuple[int, ...]) -> None:
    type_ = f"tensor<{'x'.join([*map(str, shape), 'i1'])}>"
    text = f"""func.func @main(%a: {type_}, %b: {type_}) -> {type_} {{
      %0 = arith.andi %a, %b : {type_}
      %1 = arith.xori %0, %a : {type_}
      %2 = arith.ori %1, %b : {type_}
      return %2 : {type_}
    }}"""
    a, b = bits(*shape), bits(*shape, seed=1)
    check(text, [a, b], ((a & b) ^ a) | b)


MOVEMENTS: dict[str, tuple[str, tuple[int, ...], Callable[[Array], Array]]] = {
    "qnn.reshape": ("shape = [5, 21]", (5, 21), lambda x: x.reshape(5, 21)),
    "qnn.transpose": ("permutation = [2, 0, 1]", (7, 3, 5), lambda x: x.transpose(2, 0, 1)),
    "qnn.slice": ("begin = [1, 0, 2], size = [2, 5, 2], strides = [1, 1, 3]", (2, 5, 2), lambda x: x[1:, :, 2:6:3]),
    "qnn.gather": ("axis = 1, indices = [4, 0, 1, 1, 3, 0, 2]", (3, 7, 7), lambda x: x[:, [4, 0, 1, 1, 3, 0, 2]]),
    "qnn.broadcast": ("shape = [2, 3, 5, 7]", (2, 3, 5, 7), lambda x: np.broadcast_to(x, (2, 3, 5, 7))),
    "qnn.pad": (
        "low = [0, 1, 0], high = [1, 0, 2], value = 1",
        (4, 6, 9),
        lambda x: np.pad(x, ((0, 1), (1, 0), (0, 2)), constant_values=True),
    ),
}


@pytest.mark.parametrize("name", MOVEMENTS)
def test_movements(name: str) -> None:
    attributes, shape, function = MOVEMENTS[name]
    values = attributes.replace("[", "array<i64: ").replace("]", ">")
    before, after = "tensor<3x5x7xi1>", f"tensor<{'x'.join(map(str, shape))}xi1>"
    text = f"""func.func @main(%x: {before}) -> {after} {{
      %0 = "{name}"(%x) {{{values}}} : ({before}) -> {after}
      return %0 : {after}
    }}"""
    x = bits(3, 5, 7)
    check(text, [x], function(x))


def test_a_comparison_is_kept_for_what_is_no_kernel_of_its_own() -> None:
    text = """func.func @main(%x: tensor<3x19xf32>, %y: tensor<3x19xf32>) -> tensor<19x3xi1> {
      %0 = arith.cmpf ogt, %x, %y : tensor<3x19xf32>
      %1 = "qnn.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<3x19xi1>) -> tensor<19x3xi1>
      return %1 : tensor<19x3xi1>
    }"""
    x, y = (np.random.default_rng(seed).normal(size=(3, 19)).astype(np.float32) for seed in range(2))
    check(text, [x, y], (x > y).T)


def test_constants() -> None:
    text = """func.func @main(%x: tensor<5xi1>, %y: tensor<5xi64>) -> tensor<5xi64> {
      %c = "qnn.constant"() {value = dense<[true, false, true, true, false]> : tensor<5xi1>} : () -> tensor<5xi1>
      %s = "qnn.constant"() {value = dense<true> : tensor<5xi1>} : () -> tensor<5xi1>
      %0 = arith.xori %x, %s : tensor<5xi1>
      %1 = arith.andi %0, %c : tensor<5xi1>
      %2 = arith.extui %1 : tensor<5xi1> to tensor<5xi64>
      %3 = arith.addi %2, %y : tensor<5xi64>
      return %3 : tensor<5xi64>
    }"""
    x, y = bits(5), np.arange(5) - 2
    check(text, [x, y], (~x & [True, False, True, True, False]) + y)


def test_a_choice_by_an_argument_that_is_broadcast() -> None:
    text = """func.func @main(%c: tensor<3x1x1xi1>, %x: tensor<3x2x19xf32>) -> tensor<3x2x19xf32> {
      %0 = "qnn.broadcast"(%c) {shape = array<i64: 3, 2, 19>} : (tensor<3x1x1xi1>) -> tensor<3x2x19xi1>
      %z = arith.constant dense<-1.0> : tensor<3x2x19xf32>
      %1 = arith.select %0, %x, %z : tensor<3x2x19xi1>, tensor<3x2x19xf32>
      return %1 : tensor<3x2x19xf32>
    }"""
    c, x = np.array([True, False, True]).reshape(3, 1, 1), np.arange(114, dtype=np.float32).reshape(3, 2, 19)
    check(text, [c, x], np.where(c, x, np.float32(-1)))


def test_any_byte_but_zero_of_an_argument_is_true() -> None:
    text = """func.func @main(%x: tensor<4xi1>) -> tensor<4xi64> {
      %0 = arith.extui %x : tensor<4xi1> to tensor<4xi64>
      return %0 : tensor<4xi64>
    }"""
    given = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    for name in TARGETS:
        found = compile_module(parse(text), target=name)(given)
        np.testing.assert_array_equal(found, [0, 1, 1, 1])
