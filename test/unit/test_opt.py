"""How `qdialect-opt` ends, whatever becomes of its streams: LLVM's exit codes, never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deadline import HANG

from qdialect.cli.opt import main

GOOD = "func.func @f() {\n  return\n}\n"
COMMAND = [sys.executable, "-m", "qdialect.cli.opt"]


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.mlir"
    path.write_text(GOOD)
    return path


def large(folder: Path) -> Path:
    """A module whose print is longer than the buffer of a pipe."""
    path = folder / "large.mlir"
    path.write_text("".join(f"func.func @function_{i}() {{ return }}\n" for i in range(20000)))
    return path


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path, unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(
        [*COMMAND, large(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_long_print_arrives_whole(tmp_path: Path, unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run([*COMMAND, large(tmp_path)], stdout=subprocess.PIPE, env=environment, check=True, text=True)
    assert done.stdout.count("func.func @function_") == 20000
    assert done.stdout.endswith("}\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [[], ["--help"], ["--list-passes"]])
def test_a_full_disk_is_an_error(good: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COMMAND, good, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "qdialect-opt: error: No space left on device\n")


@pytest.mark.parametrize(
    ("redirection", "stderr"),
    [
        ("good.mlir >&-", "error: cannot write '<stdout>': it is closed\n"),
        ("- <&-", "error: cannot read '<stdin>': it is closed\n"),
        ("missing.mlir 2>&-", ""),
    ],
)
def test_a_closed_stream_is_an_error(good: Path, redirection: str, stderr: str) -> None:
    shell = f"'{sys.executable}' -m qdialect.cli.opt {redirection}"
    done = subprocess.run(shell, shell=True, cwd=good.parent, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, stderr)


def wait_for_a_sleeper(pid: int) -> None:
    """Until a process waits for its input: its imports are done, however busy the machine is."""
    asleep = 0
    for _ in range(600):
        time.sleep(0.1)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0
        if asleep == 10:
            return
    pytest.fail("the command never waited for its input")


def heed_interrupts() -> None:
    """What runs in the background of a shell ignores them, and hands that on."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the state of a process is not in /proc")
def test_an_interrupt_ends_it_quietly() -> None:
    command, pipe = [*COMMAND, "-", "--mlir-timing"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, preexec_fn=heed_interrupts) as process:
        assert process.stderr
        wait_for_a_sleeper(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG) == 130
        assert process.stderr.read() == b""


def test_a_bug_is_one_line_with_its_place(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(arguments: object) -> int:
        raise KeyError(type(arguments).__name__)

    monkeypatch.setattr("qdialect.cli.opt._run", broken)
    assert main([]) == 1
    error = capsys.readouterr().err
    assert error.startswith("qdialect-opt: internal error: KeyError: 'Arguments' (test_opt.py:")
    assert error.count("\n") == 1


def test_a_failed_run_leaves_the_output_alone(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = good.with_name("bad.mlir")
    bad.write_text("func.func @f( {")
    assert main([str(bad), "-o", str(good)]) == 1
    assert good.read_text() == GOOD
    assert sorted(path.name for path in good.parent.iterdir()) == ["bad.mlir", "good.mlir"]
    assert f"{bad}:1:14: error: " in capsys.readouterr().err


def test_an_output_keeps_its_mode_and_its_links(good: Path) -> None:
    target, link = good.with_name("target.mlir"), good.with_name("link.mlir")
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert main([str(good), "-o", str(link)]) == 0
    assert link.is_symlink()
    assert "func.func @f" in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_device_can_be_the_output(good: Path) -> None:
    assert main([str(good), "-o", os.devnull]) == 0
    assert Path(os.devnull).is_char_device()


def test_a_file_name_need_not_be_unicode(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = good.with_name("odd\udcff.mlir")
    odd.write_text(GOOD)
    assert main([str(odd), "-o", str(odd), "--mlir-print-debuginfo"]) == 0
    assert b'odd\xff.mlir":1:1' in odd.read_bytes()
    assert main([str(good.with_name("missing\udcff.mlir"))]) == 1
    assert "cannot read" in capsys.readouterr().err
