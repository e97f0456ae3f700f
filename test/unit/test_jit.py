"""Machine code in this process: calling it, keeping it alive, and what is refused."""

import ctypes
import gc
import weakref

import pytest

from qdialect import targets
from qdialect.bench import throughput
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.runtime.jit import MachineCode
from qdialect.support.diagnostics import CompileError
from qdialect.targets import TARGETS

ADD = """
llvm.func @add(%from: !llvm.ptr, %what: i64) {
  %old = llvm.load %from : !llvm.ptr -> i64
  %new = llvm.add %old, %what : i64
  llvm.store %new, %from : i64, !llvm.ptr
  llvm.return
}
"""


def machine_code(text: str) -> MachineCode:
    with make_context():
        return MachineCode(ir.Module.parse(text))


def test_a_bound_call_has_values_that_can_be_replaced() -> None:
    first, second = ctypes.c_int64(5), ctypes.c_int64(100)
    bound = machine_code(ADD).bind("add", (ctypes.addressof(first), 1), keep=(first, second))
    bound.call()
    bound.call()
    bound.writer(1)(ctypes.addressof(second))
    bound.call()
    bound.writer(2)(ctypes.addressof(first), 30)
    bound.call()
    assert (first.value, second.value) == (37, 101)


def test_a_bound_call_keeps_all_that_it_needs() -> None:
    total = ctypes.c_int64()
    bound = machine_code(ADD).bind("add", (ctypes.addressof(total), 7))
    gc.collect()
    [ctypes.c_int64(-1) for _ in range(1000)]
    bound.call()
    assert total.value == 7


class Witness:
    """Something whose end can be seen."""


def test_a_call_alone_keeps_machine_code_and_memory() -> None:
    total, witness = ctypes.c_int64(), Witness()
    code = machine_code(ADD)
    alive = [weakref.ref(code), weakref.ref(witness)]
    call = code.bind("add", (ctypes.addressof(total), 7), keep=(witness,)).call
    del code, witness
    gc.collect()
    assert all(one() is not None for one in alive)
    call()
    assert total.value == 7
    del call
    gc.collect()
    assert all(one() is None for one in alive)


def test_a_call_without_any_name() -> None:
    total = ctypes.c_int64()
    for _ in range(20):
        machine_code(ADD).bind("add", (ctypes.addressof(total), 1)).call()
        gc.collect()
    assert total.value == 20


def test_a_writer_keeps_what_it_writes_to() -> None:
    total = ctypes.c_int64()
    bound = machine_code(ADD).bind("add", (0, 5))
    writer, call = bound.writer(1), bound.call
    del bound
    gc.collect()
    writer(ctypes.addressof(total))
    call()
    assert total.value == 5


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_values(count: int) -> None:
    with pytest.raises(CompileError, match=f"function 'add' must be called with 2 values, but got {count}"):
        machine_code(ADD).bind("add", [0] * count)


def test_an_argument_that_is_wider_than_a_value() -> None:
    text = "llvm.func @wide(%x: vector<16xi32>) {\n  llvm.return\n}"
    with pytest.raises(CompileError, match=r"argument 0 of function 'wide' must be an integer of at most 64 bits or a"):
        machine_code(text).bind("wide", [0])


def test_a_result_that_nobody_takes() -> None:
    text = "llvm.func @f(%x: i64) -> i64 {\n  llvm.return %x : i64\n}"
    with pytest.raises(CompileError, match="function 'f' must return nothing to be called, but got i64"):
        machine_code(text).bind("f", [0])


def test_a_declaration_cannot_be_called() -> None:
    text = "llvm.func @elsewhere()\n" + ADD
    with pytest.raises(CompileError, match="module must have a function 'elsewhere' that can be called"):
        machine_code(text).bind("elsewhere", ())


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(CompileError, match="module must have a function 'subtract' that can be called"):
        machine_code(ADD).bind("subtract", ())


def test_a_module_of_another_dialect_is_refused_with_its_diagnostic(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CompileError, match="cannot be turned into machine code") as caught:
        machine_code("func.func @f(%x: index) { return }")
    assert "func.func" in caught.value.render()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", sorted(set(TARGETS) - {"generic"}))
def test_the_rate_of_dot_products_is_that_of_a_core(name: str) -> None:
    chosen = TARGETS[name]
    title = throughput.loop_title(chosen)
    if title is None:
        pytest.skip("this CPU lacks the instructions")
    products = 4 * (16 if chosen.has_vnni or name == "avx512bw" else 4 if name in ("sse4.1", "x86-64") else 8)
    share = 1 if title in ("vpdpbusd", "tdpbusd") else 0.5
    # One instruction each cycle or every second one, at 1 to 7 GHz; two each cycle at most.
    rate = throughput.dot_product_rate(chosen, throughput.Dots.VECTORS)
    assert 0.5 * share * products * 1e9 < rate < 2 * share * products * 7e9


def test_matrix_tiles_have_a_loop_of_their_own() -> None:
    chosen = TARGETS["amxint8"]
    if throughput.loop_title(chosen) is None:
        pytest.skip("this CPU lacks the instructions")
    assert (throughput.loop_title(chosen), throughput.loop_title(chosen, throughput.Dots.VECTORS)) == (
        "tdpbusd",
        "vpdpbusd",
    )
    # 1024 products a cycle instead of 64 or 128.
    assert 2 < throughput.dot_product_rate(chosen) / throughput.dot_product_rate(chosen, throughput.Dots.VECTORS) < 40


def test_targets_without_matrix_tiles_have_one_loop_for_both() -> None:
    for name in ("avx512vbmi", "avxvnni", "avx2", "x86-64"):
        assert throughput.loop_title(TARGETS[name]) == throughput.loop_title(TARGETS[name], throughput.Dots.VECTORS)


@pytest.mark.parametrize("name", ["avx512bw", "avx2", "sse4.1"])
def test_pairs_have_a_loop_of_their_own(name: str) -> None:
    chosen, pairs = TARGETS[name], throughput.Dots.PAIRS
    if throughput.loop_title(chosen) is None:
        pytest.skip("this CPU lacks the instructions")
    assert "pmaddubsw" in (throughput.loop_title(chosen, pairs) or "")
    # Three instructions for as many products as four of words, of which all may start in a cycle.
    assert 0.5 < throughput.dot_product_rate(chosen, pairs) / throughput.dot_product_rate(chosen) < 2.2


@pytest.mark.parametrize("name", ["avx512vbmi", "avxvnni", "x86-64"])
def test_only_targets_that_multiply_words_have_a_loop_of_pairs(name: str) -> None:
    assert throughput.loop_title(TARGETS[name], throughput.Dots.PAIRS) is None


def test_the_rate_of_vpdpbusd_needs_the_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "host_features", lambda: frozenset[str]())
    assert throughput.loop_title(TARGETS["avx512vnni"]) is None
    with pytest.raises(CompileError, match="needs a CPU with avx512bw, avx512f, avx512vl, avx512vnni"):
        throughput.dot_product_rate(TARGETS["avx512vnni"])
    with pytest.raises(CompileError, match="target 'generic' has no dot products"):
        throughput.dot_product_rate(TARGETS["generic"])
