"""Python's collector of cyclic garbage stands still while a network is compiled, and no longer."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import qdialect
from qdialect.support.heap import paused_collector

CLIP = """func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
  %y = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  func.return %y : tensor<4xi8>
}"""


def test_the_collector_stands_still_inside() -> None:
    assert gc.isenabled()
    with paused_collector():
        with paused_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_of_a_process_without_one_stays_off() -> None:
    gc.disable()
    try:
        with paused_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_nothing_is_collected_during_a_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def compile_model(*arguments: object, **options: object) -> None:
        del arguments, options
        seen.append(gc.isenabled())

    monkeypatch.setattr("qdialect.driver.compile_model.compile_model", compile_model)
    qdialect.compile(qdialect.parse(CLIP), cache=False)
    assert seen == [False]


def test_a_compilation_lets_the_collector_go_on() -> None:
    executable = qdialect.compile(qdialect.parse(CLIP), cache=False)
    assert gc.isenabled()
    np.testing.assert_array_equal(np.asarray(executable(np.arange(4, dtype=np.int8))), np.arange(4))
    with pytest.raises(qdialect.QDialectError):
        qdialect.compile("missing.tflite", cache=False)
    assert gc.isenabled()


AGED = """
import gc
from qdialect.support.heap import paused_collector

class Node:
    pass

def generations():
    with paused_collector():
        node = Node()
    young, _, old = (any(one is node for one in gc.get_objects(generation)) for generation in (0, 1, 2))
    return young, old

def freed():
    before = sum(isinstance(one, Node) for one in gc.get_objects())
    gc.collect()
    return before - sum(isinstance(one, Node) for one in gc.get_objects())

print(generations(), generations())
with paused_collector():
    node = Node()
    node.own = node
    del node
print(freed())
"""


def test_what_is_there_after_the_first_compilation_is_old(tmp_path: Path) -> None:
    program = tmp_path / "aged.py"
    program.write_text(AGED)
    found = subprocess.run([sys.executable, program], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert found.split("\n")[:2] == ["(False, True) (True, False)", "1"]


def test_what_a_program_has_frozen_stays_frozen(tmp_path: Path) -> None:
    program = tmp_path / "frozen.py"
    program.write_text(
        "import gc\nfrom qdialect.support.heap import paused_collector\ngc.freeze()\nbefore = gc.get_freeze_count()\n"
        "with paused_collector():\n    pass\nassert before == gc.get_freeze_count() > 0\n"
    )
    subprocess.run([sys.executable, program], check=True)


def test_a_forked_process_collects() -> None:
    with paused_collector():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not gc.isenabled()
    assert gc.isenabled()
