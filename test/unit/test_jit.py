"""Machine code in this process: calling it, keeping it alive, and what is refused."""

import ctypes
import gc

import pytest

from qdialect import target
from qdialect._mlir import ir
from qdialect.context import make_context
from qdialect.diagnostics import CompileError
from qdialect.runtime import peak
from qdialect.runtime.jit import Descriptor, MachineCode

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


def test_a_bound_call_reads_its_arguments_when_it_is_made() -> None:
    total, place, what = ctypes.c_int64(5), ctypes.c_int64(), ctypes.c_int64(1)
    place.value = ctypes.addressof(total)
    call = machine_code(ADD).function("add").bind((place, what), keep=(total,))
    call()
    what.value = 30
    call()
    assert total.value == 36


def test_a_bound_call_keeps_all_that_it_needs() -> None:
    total = ctypes.c_int64()
    call = machine_code(ADD).function("add").bind((ctypes.c_int64(ctypes.addressof(total)), ctypes.c_int64(7)))
    gc.collect()
    [ctypes.c_int64(-1) for _ in range(1000)]
    call()
    assert total.value == 7


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(CompileError, match="module must have a function 'subtract' that can be called"):
        machine_code(ADD).function("subtract")


def test_a_module_of_another_dialect_is_refused_with_its_diagnostic(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CompileError, match="cannot be turned into machine code") as caught:
        machine_code("func.func @f(%x: index) { return }")
    assert "func.func" in caught.value.render()
    assert capfd.readouterr().err == ""


def test_a_descriptor_is_a_memref_of_rank_1() -> None:
    descriptor = Descriptor(9)
    descriptor.point_to(4096)
    assert bytes(descriptor) == b"".join(n.to_bytes(8, "little") for n in (4096, 4096, 0, 9, 1))


@pytest.mark.skipif(not target.host().has_vnni, reason="this CPU lacks AVX-512 VNNI")
def test_the_rate_of_vpdpbusd_is_that_of_a_core() -> None:
    # One instruction of 64 products each cycle or every second one, at 1 to 7 GHz; two each cycle at most.
    assert 0.5 * 64 * 1e9 < peak.vpdpbusd_rate() < 2 * 64 * 7e9


def test_the_rate_of_vpdpbusd_needs_the_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "host_features", lambda: frozenset[str]())
    with pytest.raises(CompileError, match="needs a CPU with avx512vnni"):
        peak.vpdpbusd_rate()
