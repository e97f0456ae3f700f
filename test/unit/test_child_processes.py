"""Child processes: what a stranger's folder holds is not run, and what others print is no answer."""

import os
import sys
from pathlib import Path

import pytest

import qdialect
from qdialect.ir import untrusted_input
from qdialect.ir.module_text import bytecode as written
from qdialect.support import child_processes
from qdialect.support.child_processes import ChildError, answer, tool_output
from qdialect.support.diagnostics import ParseError

FUNCTIONS = """
import os, sys
def talk(content, *arguments):
    print("printed by Python", flush=True)
    os.write(1, b"printed by C")
    return content + " ".join(arguments).encode()
def leave(content):
    print("half an answer", flush=True)
    os._exit(0)
def fail(content):
    raise RuntimeError("no luck")
def end(content):
    os.kill(os.getpid(), 11)
def wait(content):
    import time
    time.sleep(600)
def path(content):
    return "\\n".join(sys.path).encode()
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that a child can import."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "talking.py").write_text(FUNCTIONS)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return "talking"


def test_bytecode_in_a_strangers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = qdialect.parse("func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> { return %x : tensor<2xi8> }")
    (tmp_path / "m.mlirbc").write_bytes(written(module))
    for name in ("numpy", "qdialect", "torch_mlir", "subprocess", "sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", ".", *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "numpy.py"))
    assert str(qdialect.parse(Path("m.mlirbc"))) == str(module)
    assert not (tmp_path / "ran").exists()


def test_what_is_printed_is_no_answer(functions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(f"{functions}:talk", b"an answer", ["and", "more"], seconds=60) == b"an answerand more"
    monkeypatch.setattr(sys, "path", ["", "relative", *sys.path])
    found = answer(f"{functions}:path", b"", [], seconds=60).decode().split("\n")
    assert all(map(os.path.isabs, found))
    assert [path for path in sys.path if os.path.isabs(path)] == found


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("leave", "status 0 and without an answer"),
        ("fail", "status 1 .*RuntimeError: no luck"),
        ("end", "status -11"),
    ],
)
def test_a_child_without_its_answer(functions: str, function: str, reason: str) -> None:
    with pytest.raises(ChildError, match=reason) as caught:
        answer(f"{functions}:{function}", b"", [], seconds=60)
    assert caught.value.is_crash == (function == "end")


def test_a_child_that_does_not_end(functions: str) -> None:
    with pytest.raises(ChildError, match=r"it did not end in 0 seconds") as caught:
        answer(f"{functions}:wait", b"", [], seconds=0.2)
    assert caught.value.is_crash


def test_python_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(child_processes.sys, "executable", str(tmp_path / "absent"))
    with pytest.raises(ParseError, match=r"bytecode is read in a process of its own, but cannot start Python"):
        qdialect.parse(untrusted_input.BYTECODE_MAGIC)


def test_a_tool_that_fails(tmp_path: Path) -> None:
    with pytest.raises(ChildError, match="No such file or directory"):
        tool_output([str(tmp_path / "absent")], tmp_path)
    with pytest.raises(ChildError, match="the last line"):
        tool_output(["/bin/sh", "-c", "echo first >&2; echo the last line >&2; exit 3"], tmp_path)
    # Whatever it prints, in whatever encoding.
    assert tool_output(["/bin/sh", "-c", r"printf '\377 text'"], tmp_path) == "\ufffd text"
