"""Machine code in this process: calling it, keeping it alive, and what is refused."""

import ctypes
import gc

import pytest

from qdialect import target
from qdialect._mlir import ir
from qdialect.context import make_context
from qdialect.diagnostics import CompileError
from qdialect.runtime import peak
from qdialect.runtime.jit import MachineCode

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


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(CompileError, match="module must have a function 'subtract' that can be called"):
        machine_code(ADD).bind("subtract", ())


def test_a_module_of_another_dialect_is_refused_with_its_diagnostic(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CompileError, match="cannot be turned into machine code") as caught:
        machine_code("func.func @f(%x: index) { return }")
    assert "func.func" in caught.value.render()
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(not target.host().has_vnni, reason="this CPU lacks AVX-512 VNNI")
def test_the_rate_of_vpdpbusd_is_that_of_a_core() -> None:
    # One instruction of 64 products each cycle or every second one, at 1 to 7 GHz; two each cycle at most.
    assert 0.5 * 64 * 1e9 < peak.vpdpbusd_rate() < 2 * 64 * 7e9


def test_the_rate_of_vpdpbusd_needs_the_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "host_features", lambda: frozenset[str]())
    with pytest.raises(CompileError, match="needs a CPU with avx512vnni"):
        peak.vpdpbusd_rate()
