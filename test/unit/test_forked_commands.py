"""A command of a lit test does in a fork what it does in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked_commands import ForkingSubprocess
from forking_process import ForkingProcess

Popen = Callable[..., subprocess.Popen[str]]

SCRIPTS = {
    "output": "import sys; print('one'); print('two', file=sys.stderr)",
    "arguments": "import sys; print(sys.argv[1:], __name__)",
    "input": "print(input())",
    "environment": "import os; print(sorted(os.environ.items()), os.getcwd())",
    "neighbour": "import neighbour; print(neighbour.NAME)",
    "status": "import sys; sys.exit(7)",
    "none": "import sys; sys.exit(None)",
    "message": "import sys; sys.exit('wrong')",
    "crash": "import os; os.abort()",
    "signals": "import signal; print(signal.getsignal(signal.SIGPIPE))",
    "descriptors": "import os; print([number for number in range(3, 30) if os.path.exists(f'/proc/self/fd/{number}')])",
    "encoding": "import sys; print([(s.encoding, s.errors) for s in (sys.stdin, sys.stdout, sys.stderr)])",
    "garbage": "import gc; print(gc.isenabled())",
}


def ended(popen: Popen, args: list[str], folder: Path, **options: Any) -> tuple[int, str, str]:
    """The exit status, stdout and stderr of a command that is started as lit starts it."""
    settings = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"GIVEN": "here"}
    with popen(args, cwd=folder, env=environment, universal_newlines=True, **settings) as process:
        output, errors = process.communicate("first\nsecond\n" if process.stdin else None)
    return process.returncode, output, errors


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script(name: str, tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("NAME = 'beside'")
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS[name])
    args = [sys.executable, str(script), "a b", "-c"]
    assert ended(ForkingSubprocess.Popen, args, tmp_path) == ended(subprocess.Popen, args, tmp_path)


def test_an_exception_is_a_traceback_and_status_one(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise KeyError('missing')")
    status, _, errors = ended(ForkingSubprocess.Popen, [sys.executable, str(script)], tmp_path)
    assert status == 1
    assert errors.endswith("KeyError: 'missing'\n")


@pytest.mark.parametrize("arguments", [["-"], ["-", "--no-such-pass"], ["--version"]])
def test_a_command(arguments: list[str], tmp_path: Path) -> None:
    args = [sys.executable, "-m", "qdialect.cli.opt", *arguments]
    forked, started = (ended(popen, args, tmp_path) for popen in (ForkingSubprocess.Popen, subprocess.Popen))
    assert forked == started
    assert any(text in forked[1] + forked[2] for text in ("<stdin>", "qdialect"))


def test_a_process_that_forks_is_asked(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("def takes(op): raise KeyError('beside')")
    asked = ForkingProcess()
    try:
        for arguments in (["--version"], ["--no-such-pass", "-"], ["-", "--qnn-outline-fused=predicate=neighbour:x"]):
            args = [sys.executable, "-m", "qdialect.cli.opt", *arguments]
            started = subprocess.run(
                args, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            found = asked.run(args, tmp_path)
            assert (found.returncode, found.stdout, found.stderr) == (
                started.returncode,
                started.stdout,
                started.stderr,
            )
    finally:
        asked.close()


def test_filecheck(tmp_path: Path) -> None:
    (tmp_path / "expected").write_text("CHECK: fir\nCHECK: third\n")
    args = [sys.executable, "-m", "filecheck", "expected"]
    forked, started = (ended(popen, args, tmp_path) for popen in (ForkingSubprocess.Popen, subprocess.Popen))
    assert forked == started
    assert forked[0] == 1


def test_both_outputs_into_one_file(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS["output"])
    with (tmp_path / "file").open("w") as file:
        ended(ForkingSubprocess.Popen, [sys.executable, str(script)], tmp_path, stdout=file, stderr=subprocess.STDOUT)
    assert sorted((tmp_path / "file").read_text().split()) == ["one", "two"]


def test_a_pipe_that_is_longer_than_its_buffer(tmp_path: Path) -> None:
    """A command is started while the one before it still writes."""
    writer, reader = tmp_path / "writer.py", tmp_path / "reader.py"
    writer.write_text("print('line\\n' * 100_000)")
    reader.write_text("import sys; print(len(sys.stdin.read()))")
    first = ForkingSubprocess.Popen(
        [sys.executable, str(writer)], env=os.environ, stdout=subprocess.PIPE, universal_newlines=True
    )
    with first:
        assert ended(ForkingSubprocess.Popen, [sys.executable, str(reader)], tmp_path, stdin=first.stdout) == (
            0,
            "500001\n",
            "",
        )


def test_other_programs_are_executed(tmp_path: Path) -> None:
    assert ended(ForkingSubprocess.Popen, ["/bin/sh", "-c", "echo $GIVEN; exit 3"], tmp_path) == (3, "here\n", "")
    one = [sys.executable, "-c", "import sys; print(sys.flags.isolated, 'pytest' in sys.modules)"]
    assert ended(ForkingSubprocess.Popen, one, tmp_path) == (0, "0 False\n", "")
