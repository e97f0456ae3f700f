"""Rows whose results are read again, executables that are copied, pickled and sent to processes, and hot loops."""

import copy
import multiprocessing
import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounds import HANG
from compiled_ops import check_compiled
from numpy.typing import NDArray
from onnx_graphs import ModelBuilder
from op_texts import Text, numbers

import qdialect
from qdialect import targets
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.reference import interpreter
from qdialect.runtime import Executable
from qdialect.support.diagnostics import InputError
from tools.hot_loop import hot_loop

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
    return (text.layer_norm("%x0"),)


def of_two(text: Text) -> tuple[str, ...]:
    raised, moved = text.float_op("math.exp", "%x0"), text.float_op("math.tanh", "%x1")
    sums = [text.reduced("f32_sum", one) for one in (raised, moved)]
    joined = text.float_op("math.exp", text.float_op("arith.mulf", text.float_op("arith.addf", *sums), raised))
    return (text.float_op("arith.divf", text.float_op("arith.addf", joined, moved), text.reduced("f32_max", joined)),)


CASES = (softmax, summed_in_parts, read_again, also_returned, summed_again, subtracted, of_two)


def built(case: Callable[[Text], tuple[str, ...]]) -> ir.Module:
    text = Text(*(SHAPE,) * (2 if case is of_two else 1))
    return parse(text.finish(*case(text)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_bits_are_those_of_the_reference(case: Callable[[Text], tuple[str, ...]]) -> None:
    module = built(case)
    arguments = len(module.body.operations[0].operation.regions[0].blocks[0].arguments)
    inputs = [np.clip(numbers(SHAPE, seed), -4, 4) for seed in range(arguments)]
    wanted = interpreter.run(module, inputs)
    for name in dict.fromkeys((targets.host().name, "avx2", "generic")):
        check_compiled(module, name, [inputs], [wanted])


# An executable that is copied, pickled, or sent to other processes.

CLIP = """func.func @main(%x: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %0 = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %0 : tensor<2x3xi8>
}"""
IMAGE = np.full((2, 3), 100, np.int8)


@pytest.fixture(scope="module")
def executable() -> Executable:
    return qdialect.compile(parse(CLIP), workspaces=3)


def largest(network: Executable, image: NDArray[Any]) -> int:
    found = network(image)
    return int(np.max(found))


def test_a_copy_is_the_executable_itself(executable: Executable) -> None:
    assert copy.copy(executable) is executable
    assert copy.deepcopy([executable])[0] is executable


def test_a_pickled_executable_computes_the_same(executable: Executable) -> None:
    for network in (executable, pickle.loads(pickle.dumps(executable))):
        found: Executable = pickle.loads(pickle.dumps(network))
        assert largest(found, IMAGE) == 9
        assert (found.inputs, found.outputs, found.workspaces) == (executable.inputs, executable.outputs, 3)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_get_executables(executable: Executable, method: str) -> None:
    calls = [(executable, IMAGE), (executable, IMAGE - 95)]
    with multiprocessing.get_context(method).Pool(1) as pool:
        found = pool.starmap_async(operator.call, calls).get(HANG)
    assert [np.asarray(array).tolist() for array in found] == [[[9] * 3] * 2, [[5] * 3] * 2]


def test_bound_calls_are_neither_copied_nor_pickled(executable: Executable) -> None:
    call = executable.bind([IMAGE], [np.empty_like(IMAGE)])
    for made in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a bound call is of arrays of this process"):
            made(call)


def test_open_shapes_are_pickled_with_what_was_compiled(tmp_path: Path) -> None:
    b = ModelBuilder()
    (tmp_path / "model.onnx").write_bytes(
        b.finish(b.node("Relu", b.input("x", ("batch", "seq"), np.float32)), dtype=np.float32)
    )
    network = qdialect.compile(tmp_path / "model.onnx", dims={"seq": (1, 4)})
    network.for_shape({"seq": 2})
    found: Executable = pickle.loads(pickle.dumps(network))
    for shape in ((1, 4), (1, 2)):
        np.testing.assert_array_equal(found(np.ones(shape, np.float32)), np.ones(shape))
    with pytest.raises(InputError, match="network must be compiled for batch=1, seq=3 before it is pickled"):
        found(np.ones((1, 3), np.float32))


# Two nested loops, a jump forwards, padding, and a function without the instruction.
TEXT = """
module.o:     file format elf64-x86-64

0000000000000000 <first>:
   0:\txor    %eax,%eax
   2:\tvpdpbusd %zmm1,%zmm2,%zmm3
   8:\tvpdpbusd (%rdi),%zmm2,%zmm3
   e:\tje     14 <first+0x14>
  10:\tdata16 cs nopw 0x0(%rax,%rax,1)
  14:\tadd    $0x40,%rdi
  18:\tjne    8 <first+0x8>
  1a:\tvpdpbusd %zmm1,%zmm2,%zmm4
  20:\tjb     2 <first+0x2>
  22:\tret

0000000000000030 <second>:
  30:\tinc    %rax
  33:\tjne    30 <second>
  35:\tjmp    *%rax
"""


def test_the_innermost_loop_counts() -> None:
    loop = hot_loop(TEXT, "vpdpbusd")
    assert loop.function == "first"
    assert [one.mnemonic for one in loop.body] == ["vpdpbusd", "je", "add", "jne"]
    assert loop.count("vpdpbusd") == 1
