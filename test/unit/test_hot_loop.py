"""tools/hot_loop.py: which instructions of a disassembly are the hot loop; and object files for other CPUs."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import qdialect
from qdialect import targets
from qdialect.aot.object_file import object_code
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.support.diagnostics import CompileError, QDialectError

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "hot_loop.py"
DENSE = Path(__file__).resolve().parents[1] / "lit" / "target" / "hot-loop-one-row.mlir"

# Two nested loops, a jump forwards, what fills space, and a function without the instruction.
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


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hot_loop", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["hot_loop"] = module
    spec.loader.exec_module(module)
    return module


def test_the_innermost_loop_counts(tool: ModuleType) -> None:
    loop = tool.hot_loop(TEXT, "vpdpbusd")
    assert loop.function == "first"
    assert [one.mnemonic for one in loop.body] == ["vpdpbusd", "je", "add", "jne"]
    assert loop.count("vpdpbusd") == 1


def test_a_loop_without_the_instruction_is_not_hot(tool: ModuleType) -> None:
    assert tool.hot_loop(TEXT, "inc").function == "second"
    with pytest.raises(QDialectError, match="no loop has vpmulld"):
        tool.hot_loop(TEXT, "vpmulld")


def test_a_smaller_share_is_said_and_fails() -> None:
    command = [sys.executable, str(SCRIPT), str(DENSE), "--at-least", "1"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "share >= 1.0: no" in ran.stdout


@pytest.mark.parametrize(("name", "register"), [("generic", "xmm"), ("avx512vnni", "zmm")])
def test_an_object_has_the_registers_of_its_target(tool: ModuleType, name: str, register: str) -> None:
    chosen = targets.resolve(name)
    text = tool.disassembled(object_code(lower(qdialect.read_model(DENSE), chosen).module, chosen))
    assert [kind for kind in ("xmm", "ymm", "zmm") if kind in text][-1] == register


def test_what_is_not_of_the_llvm_dialect_is_no_object(capfd: pytest.CaptureFixture[str]) -> None:
    module = lower(qdialect.read_model(DENSE), targets.GENERIC, Phase.X86).module
    with pytest.raises(CompileError, match="cannot be turned into machine code"):
        object_code(module, targets.GENERIC)
    assert capfd.readouterr().err == ""
